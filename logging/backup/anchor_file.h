// The anchor of a run (differential logging, Lee, Kim, Cha, ICDE 2001, section 3.2): the file that names the newest
// complete backup, and where recovery begins and ends in each log. It is replaced as a whole (WriteFileAtomically), and
// only once the backup and the checkpoint's END records are durable; until then the older one holds.
//
// Encode and Decode are pure. Decode trusts nothing: it checks size, magic, version, checksum and every field, and
// throws Error "FILE@OFFSET: why", kCorrupt, or kMismatch for another version. Threads: no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "logging/backup/backup_files.h"
#include "logging/differential_methods.h"

namespace dbx {

inline constexpr char kAnchorFileName[] = "anchor";  // beside log 0

struct BackupAnchor {
  uint64_t database_id = 0;
  uint64_t run_id = 0;
  uint32_t number = 0;  // of the checkpoint; 0: the backup with which the run begins
  uint32_t copy = 0;    // of the two
  DiffMethod method{};  // of the records in the run's logs
  // The logs are truncated below what is needed, once this anchor is durable: nothing below is ever read.
  bool truncates = false;
  uint32_t parts = 0;
  struct OfTable {
    uint32_t pages;  // that the checkpoint counted
    uint32_t rows_per_page;
    uint32_t tuple_bytes;
    // Of their frames in the backup, combined by XOR: a frame may be whole, and older than the backup.
    uint32_t checksum = 0;
    friend bool operator==(const OfTable&, const OfTable&) = default;
  };
  std::vector<OfTable> tables;
  // By log: where the checkpoint's BEGIN and END start, and below which recovery needs nothing.
  std::vector<Lsn> begin, end, needed;
  // By worker: all of its transactions with lower sequence numbers had ended before the checkpoint.
  std::vector<uint64_t> sequences;

  friend bool operator==(const BackupAnchor&, const BackupAnchor&) = default;
};

std::vector<std::byte> EncodeAnchor(const BackupAnchor& anchor);  // whole blocks
BackupAnchor DecodeAnchor(std::span<const std::byte> bytes, const std::string& path);

// Of the backup that it names, whose part i lies in directories[i].
BackupShape ShapeOf(const BackupAnchor& anchor, std::vector<std::string> directories);
std::vector<uint32_t> PagesOf(const BackupAnchor& anchor);  // by table

}  // namespace dbx
