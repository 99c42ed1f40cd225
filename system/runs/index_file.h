// The frozen secondary indexes of a run with a persistent heap, as its load left them: `indexes.pm`, which a restart
// maps. So it need not look at the rows that they lead to.
//
//   indexes.pm := magic:8 version:u32 checksum:u32 heap_id:u64 bytes:u64 count:u64
//                 (slots:u64 primaries:u64){count}      by index, in the order of the database; in bytes
//                 zero:u64?                             slots begin at multiples of 16
//                 slots{count} primaries{count}         as in storage/secondary_index.h
//                 zeros                                 up to a multiple of 4096
//
// The checksum is a CRC-32C of the file, in which it counts as 0. Threads: one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "logging/device/file_system.h"
#include "storage/database.h"

namespace dbx {

struct IndexFile {
  struct OfIndex {
    std::span<const std::byte> slots, primaries;
  };
  uint64_t heap_id = 0;
  std::vector<OfIndex> indexes;

  // What the bytes of a file say. Throws Error "PLACE@0: why": kCorrupt, kMismatch for another version.
  static IndexFile Decode(std::span<const std::byte> bytes, const std::string& place);
};

// Of all indexes of the database, which are frozen; nothing where it has none. Durable on return. Throws Error (kIo,
// kNoSpace).
void WriteIndexFile(FileSystem& files, const std::string& path, uint64_t heap_id, const Database& database);

// Freezes the indexes of `database`, which have no entries, over what the file has: they need the memory that is
// returned. nullptr: there is no file, and the indexes are as before. Throws Error: kCorrupt, kMismatch (of another
// heap, or of another number of indexes).
std::unique_ptr<PersistentMemory> MapIndexFile(FileSystem& files, const std::string& path, uint64_t heap_id,
                                               Database& database);

}  // namespace dbx
