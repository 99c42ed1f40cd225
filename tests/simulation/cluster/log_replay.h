// The logs of all masters, replayed by a parser of its own over the reference model of pages: what a cluster's pages
// are, and which of its transactions have ended, according to the bytes that its Log Stores hold.
//
// The framing of a Log Store's files is the product's (StoreLog); the log's records, the changes in them and the order
// among the logs are parsed and judged here and in tests/multi_master/reference.
//
// Throws std::runtime_error where bytes cannot be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "multi_master/names.h"
#include "multi_master/vs_clock.h"
#include "tests/multi_master/reference/page_model.h"

namespace dbx::sim {

// A master's log as one Log Store has it.
struct StoredBytes {
  uint64_t end = 0;                 // the store has all below
  std::vector<std::byte> bytes;     // from 0 to `end`
  std::vector<uint64_t> part_ends;  // where epochs of it were sealed, ascending
};

// The end of a flush: its time, and by master what it builds upon.
struct ReplayedLfb {
  uint64_t time = 0;
  std::vector<uint64_t> stamp;
};

struct LogReplay {
  enum class End : uint8_t { kCommitted = 1, kAborted = 2, kReadOnly = 3 };

  mm::reference::ModelPages pages;
  std::map<mm::TxnName, End> ends;
  std::vector<std::vector<ReplayedLfb>> lfbs;  // by log
  uint64_t records = 0;
  uint64_t splits = 0;
};

// A master that has applied the logs up to these times has applied a flush before one that it builds upon, or a part of
// a flush: which. Nothing: all is in order.
std::string WhyNotClosed(const LogReplay& replay, const mm::VsVector& applied);

// `logs`: by master; each as two Log Stores have it at least. `pages`: as they were loaded.
LogReplay ReplayLogs(const std::vector<StoredBytes>& logs, mm::reference::ModelPages pages);

// Of three stores' copies: what two of them have. Throws where two that are there contradict each other.
StoredBytes WhatTwoHave(std::vector<StoredBytes> copies);

}  // namespace dbx::sim
