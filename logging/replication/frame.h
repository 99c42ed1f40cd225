// What a run sends its replica, and what this answers.
//
//   connection := frame*                         from the run
//   frame      := header body                    integers in the byte order of the processor
//   answer     := frame of kind kApplied or kFailed
//
// A frame is one operation on a file, which the run's own file system has done before the frame was made: what kWrite,
// kSync, kSyncDirectory and the three kinds that create a file stand for is durable there.
// Frames are numbered from 0 on, and are applied in this order; a replica refuses any other number.
//
//   kHello            version:u32 log_directories:u32          the first
//   kMakeDirectory, kSyncDirectory, kRemoveDirectory, kRemove   path
//   kRename           path 0 path
//   kCreate           preallocate_bytes:u64 path   `file` is the number of the new file
//   kCreatePages      path
//   kMap              create_bytes:u64 path
//   kWrite            range*      durable at the replica before the next frame is applied; of a file of pages, by kSync
//   kSync
//   kClose            of `file`
//   kDiscard          from:u64 to:u64 path
//   kEnd              the run has ended by itself
//   path              the number of the log directory as a decimal number, a slash, and the path below that directory
//   range             offset:u64 bytes:u64 byte*
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dbx {

enum class FrameKind : uint16_t {
  kHello = 1,
  kMakeDirectory,
  kSyncDirectory,
  kRemoveDirectory,
  kRemove,
  kRename,
  kCreate,
  kCreatePages,
  kMap,
  kWrite,
  kSync,
  kClose,
  kDiscard,
  kEnd,
  kApplied,  // answer: all frames up to `number`
  kFailed,   // answer: frame `number` was not applied, and none will be; the body says why
};

struct FrameHeader {
  static constexpr uint16_t kConfirm = 1;  // of flags: an answer is waited for

  uint32_t checksum;  // CRC32C of the rest of the header and of the body
  uint32_t body_bytes;
  uint64_t number;
  uint32_t file;  // of those that the connection has created, by number
  FrameKind kind;
  uint16_t flags;
};
static_assert(sizeof(FrameHeader) == 24);

inline constexpr uint32_t kReplicationVersion = 1;
// A longer batch of ranges is several frames.
inline constexpr size_t kFrameBodyBytesMax = 4 << 20;

// A frame in the making: its bytes, from the header on.
class Frame {
 public:
  Frame(FrameKind kind, uint32_t file);

  void Add(const void* bytes, size_t count);
  void AddNumber(uint64_t number) { Add(&number, sizeof number); }
  void AddText(std::string_view text) { Add(text.data(), text.size()); }
  // Of memory that others may be storing to: each aligned word is one that it held.
  void AddRange(uint64_t offset, const std::byte* from, size_t count);

  size_t body_bytes() const { return bytes_.size() - sizeof(FrameHeader); }
  void Confirm() { header().flags |= FrameHeader::kConfirm; }
  void SetNumber(uint64_t number) { header().number = number; }
  // Complete, with its checksum.
  std::span<const std::byte> Sealed();

 private:
  FrameHeader& header() { return *reinterpret_cast<FrameHeader*>(bytes_.data()); }

  std::vector<std::byte> bytes_;
};

class ReplicaChannel;

struct ReceivedFrame {
  FrameHeader header;
  std::vector<std::byte> body;
};

// The next frame. False: the other side has closed the connection. Throws Error: kIo as the channel; kCorrupt where
// the bytes are no frame.
bool ReceiveFrame(ReplicaChannel& channel, ReceivedFrame& frame);

// Reads the parts of a body. Throws Error (kCorrupt) where it is too short.
class FrameReader {
 public:
  explicit FrameReader(std::span<const std::byte> body) : rest_(body) {}

  uint64_t Number() { return Read<uint64_t>(); }
  uint32_t Short() { return Read<uint32_t>(); }
  std::span<const std::byte> Bytes(uint64_t count);
  std::string Rest();
  bool empty() const { return rest_.empty(); }

 private:
  template <class T>
  T Read();

  std::span<const std::byte> rest_;
};

}  // namespace dbx
