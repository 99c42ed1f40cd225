// A file of a Log Store's log of one master, frame by frame: what store_log.h opens, and log_dump prints.
//
//   file    := batch*
//   batch   := frame* zeros           whole blocks; synced as one before anything in it is told to anyone
//   frame   := FrameHeader bytes zeros
//
// Threads: no shared state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "multi_master/names.h"

namespace dbx::mm {

//   kBegin     the first of a file: its number shows where the file before it ends
//   kData      bytes of the log at `at`, without the zeros at the end of `length`
//   kOpen      `epoch` writes from `at` on; what was behind is cut off
//   kFence     no epoch below `epoch` writes
//   kSeal      the log of the epochs below `epoch` ends at `at`; what was behind is cut off
enum class StoreFrame : uint8_t { kBegin = 1, kData = 2, kOpen = 3, kFence = 4, kSeal = 5, kLast = kSeal };

struct FrameHeader {
  uint32_t header_crc;  // CRC32C of the rest of the header
  uint32_t bytes_crc;   // of the bytes behind it
  uint32_t salt;        // of the log (SaltOf): rejects bytes of another one
  uint8_t kind;         // StoreFrame
  uint8_t unused[3];
  uint64_t number;         // of the frame
  uint64_t synced_frames;  // so many were synced
  uint64_t at;             // Lsn
  uint32_t bytes;          // behind the header
  uint32_t length;         // kData: of the log; kBegin: kLogVersion
  uint32_t epoch;
  uint32_t unused_at_end;
};
static_assert(sizeof(FrameHeader) == 56);

inline constexpr uint32_t kFrameBytesMax = 8 << 20;

uint32_t HeaderCrcOf(const FrameHeader& header);
// What a frame with so many bytes behind its header takes.
uint64_t FrameBytes(uint64_t bytes);
// A frame of the log of this salt, by its header.
bool IsFrame(const FrameHeader& header, uint32_t salt);
// The same for a log of any salt.
bool IsFrame(const FrameHeader& header);

struct FoundFrame {
  FrameHeader header;
  uint64_t offset = 0;  // of the header
  std::span<const std::byte> bytes;
};

struct StoreFileEnd {
  uint64_t next_frame = 0;         // the number behind that of the last whole frame
  uint64_t offset = 0;             // behind that frame
  std::optional<uint64_t> bad_at;  // where something that is no frame follows
  bool bad_was_synced = false;     // a later frame shows that the one at `bad_at` had been synced
};

// Visits the whole frames of a file, which are numbered from `first_frame` on, up to the frame `end_frame` or to the
// first that is not whole.
StoreFileEnd ReadStoreFile(std::span<const std::byte> file, uint32_t salt, uint64_t first_frame, uint64_t end_frame,
                           const std::function<void(const FoundFrame&)>& visit);

}  // namespace dbx::mm
