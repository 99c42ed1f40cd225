// Builds the files of a backup byte by byte, for tests: frames of pages, and the anchor that names them. As with
// LogBuilder, everything that a test may want to be wrong can be given. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "logging/format.h"

namespace dbx {

// The packed images of a page: presence bits in whole words of 8 bytes, then for each slot its key and its tuple,
// padded with zeros to whole words.
class BuiltPage {
 public:
  BuiltPage(uint32_t rows_per_page, uint32_t tuple_bytes)
      : rows_per_page_(rows_per_page),
        tuple_bytes_(tuple_bytes),
        bits_bytes_((rows_per_page + 63) / 64 * 8),
        slot_bytes_(8 + (tuple_bytes + 7) / 8 * 8),
        bytes_(bits_bytes_ + rows_per_page * slot_bytes_) {}

  // The rest of the tuple is zeros.
  BuiltPage& Put(uint32_t slot, uint64_t key, std::string_view tuple) {
    bytes_[slot / 8] |= std::byte{1} << slot % 8;
    std::memcpy(&bytes_[bits_bytes_ + slot * slot_bytes_], &key, sizeof key);
    std::memcpy(&bytes_[bits_bytes_ + slot * slot_bytes_ + sizeof key], tuple.data(), tuple.size());
    return *this;
  }

  uint32_t rows_per_page() const { return rows_per_page_; }
  uint32_t tuple_bytes() const { return tuple_bytes_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  size_t frame_bytes() const {
    const size_t bytes = sizeof(format::BackupFrame) + bytes_.size();
    return (bytes + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes;
  }

 private:
  uint32_t rows_per_page_;
  uint32_t tuple_bytes_;
  size_t bits_bytes_;
  size_t slot_bytes_;
  std::vector<std::byte> bytes_;
};

// A header that fits the page.
inline format::BackupFrame FrameOf(uint64_t run_id, uint32_t copy, uint16_t table, uint32_t page, uint32_t number,
                                   const BuiltPage& images) {
  format::BackupFrame frame{};
  frame.salt = format::Salt(run_id, format::kBackupSalt + copy);
  frame.page = page;
  frame.number = number;
  frame.table = table;
  frame.copy = static_cast<uint16_t>(copy);
  frame.rows_per_page = images.rows_per_page();
  frame.tuple_bytes = images.tuple_bytes();
  return frame;
}

// Writes the frame at its place in a part of `parts`; the checksum is made right, and returned: those of all pages of a
// table, combined by XOR, stand in the anchor.
inline uint32_t PutFrame(std::vector<std::byte>& part, uint32_t parts, format::BackupFrame frame,
                         const BuiltPage& images) {
  const size_t bytes = images.frame_bytes(), at = frame.page / parts * bytes;
  if (part.size() < at + bytes) part.resize(at + bytes);
  const std::span<std::byte> to = std::span(part).subspan(at, bytes);
  std::memset(to.data(), 0, bytes);
  std::memcpy(to.data() + sizeof frame, images.bytes().data(), images.bytes().size());
  std::memcpy(to.data(), &frame, sizeof frame);
  frame.crc = Crc32c(to.subspan(sizeof frame.crc));
  std::memcpy(to.data(), &frame.crc, sizeof frame.crc);
  return frame.crc;
}

inline std::string BackupName(uint32_t copy, uint32_t table, uint32_t part) {
  char name[64];
  std::snprintf(name, sizeof name, "backup-%c-%02u-%02u.bak", copy == 0 ? 'a' : 'b', table, part);
  return name;
}

struct BuiltAnchor {
  uint64_t database_id = 0xDB;  // LogBuilder's
  uint64_t run_id = 0;
  uint32_t number = 0;
  uint32_t copy = 0;
  uint32_t method = 0;
  bool truncates = false;
  uint32_t parts = 1;
  std::vector<format::AnchorTable> tables;
  std::vector<uint64_t> begin, end, needed;  // by log
  std::vector<uint64_t> sequences;           // by worker
};

inline std::vector<std::byte> BytesOf(const BuiltAnchor& anchor) {
  format::AnchorFile head{};
  std::memcpy(head.magic, format::kAnchorMagic, sizeof head.magic);
  head.version = format::kVersion;
  head.database_id = anchor.database_id;
  head.run_id = anchor.run_id;
  head.number = anchor.number;
  head.copy = static_cast<uint16_t>(anchor.copy);
  head.method = static_cast<uint8_t>(anchor.method);
  head.truncates = anchor.truncates ? 1 : 0;
  head.part_count = anchor.parts;
  head.log_count = static_cast<uint32_t>(anchor.begin.size());
  head.table_count = static_cast<uint32_t>(anchor.tables.size());
  head.worker_count = static_cast<uint32_t>(anchor.sequences.size());
  for (size_t i = 0; i < anchor.begin.size(); ++i) {
    head.begin[i] = anchor.begin[i];
    head.end[i] = anchor.end[i];
    head.needed[i] = anchor.needed[i];
  }
  const std::span tables = std::as_bytes(std::span(anchor.tables));
  const std::span sequences = std::as_bytes(std::span(anchor.sequences));
  head.bytes = sizeof head + tables.size() + sequences.size();
  std::vector<std::byte> bytes((head.bytes + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  if (!tables.empty()) std::memcpy(&bytes[sizeof head], tables.data(), tables.size());
  if (!sequences.empty()) std::memcpy(&bytes[sizeof head + tables.size()], sequences.data(), sequences.size());
  head.crc = Crc32c(bytes);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

}  // namespace dbx
