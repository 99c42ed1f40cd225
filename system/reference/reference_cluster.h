// The reference replay of a cluster of masters (multi_master/): what the logs of all masters leave, from the files of
// their Log Stores. Its own parser of frames, records and changes, its own pages, written from multi_master/README.md.
//
// It trusts: the workload's load (the rows that a cluster starts from are those of a Database), and CRC32C. It does not
// trust the order in which masters, Page Stores or a recovery apply flushes: it has no clocks. It takes all changes of
// a page together, and orders them by the version that each names as the one before.
//
//   reference_cluster_logs.cpp    files -> bytes of each log -> records, up to its last LFB
//   reference_cluster_pages.cpp   changes -> pages -> rows without losers; trees are checked
//
// Single-threaded; all is kept in memory.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "system/reference/reference_replay.h"

namespace dbx::reference {

// The files of a cluster.
struct ClusterImage {
  uint64_t cluster = 0;  // id
  uint32_t masters = 0;
  // Of each store, by log, its files in their order. Nothing: the store is not there.
  std::vector<std::optional<std::vector<std::vector<FileImage>>>> stores;
};

struct ClusterReplay {
  std::vector<uint64_t> committed;  // ids of transactions, ascending
  uint64_t changes = 0;
  uint64_t losers = 0;         // transactions without END that have rows
  uint64_t rows_restored = 0;  // theirs
};

// `loaded`: the database as the cluster began with it. `to` has its tables without rows, and gets them. Throws Error
// (kCorrupt, kMismatch) for logs that it refuses.
ClusterReplay ReplayCluster(const ClusterImage& image, const Database& loaded, Database& to);

// ---- Between the two parts ----

using ClusterTxn = std::tuple<uint8_t, uint32_t, uint64_t>;  // master, epoch, number; zeros: none

// One change of a page. The fields that its kind has.
struct ClusterChange {
  uint8_t kind = 0;
  uint64_t page = 0;
  uint64_t lsn = 0;       // time << 4 | master
  uint64_t previous = 0;  // the same
  ClusterTxn writer;
  uint64_t key = 0;  // or a separator
  uint64_t right = 0, left = 0, child = 0, high_key = 0;
  bool present = false;
  uint16_t prefix = 0, suffix = 0, cells = 0;
  uint32_t tree = 0;
  uint8_t level = 0;
  Bytes bytes;
};

struct ClusterLog {
  std::vector<std::byte> bytes;
  std::vector<ClusterChange> changes;                       // refer to the bytes
  std::map<ClusterTxn, std::pair<uint8_t, uint64_t>> ends;  // outcome, id
  std::vector<std::array<uint64_t, 16>> stamps;             // of LFBs
};

// Up to the last LFB.
ClusterLog ReadClusterLog(const ClusterImage& image, uint32_t master);

}  // namespace dbx::reference
