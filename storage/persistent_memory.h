// Memory that outlives the process and the power: a mapped file whose bytes the processor loads and stores.
//
// A store is durable once its cache line has been written back and the write-backs have been drained; until then a
// power failure keeps, of each aligned word of 8 bytes, the durable value or any that was stored since, as the
// processor may write back a line at any time. The end of the process alone loses nothing that was stored.
//
// Models: over libpmem (logging/device/posix_persistent_memory.h), emulated (emulated_file_system.h), and one that
// loses words in tests (FaultyFileSystem). FileSystem::MapPersistent makes them.
//
// Threads: any may load and store, as in other memory; each has a writer of its own for what it makes durable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dbx {

// What writes a line back. kAuto: the best that the processor has.
enum class FlushInstruction : uint8_t { kAuto, kClwb, kClflushopt, kClflush };
inline constexpr std::array<std::string_view, 4> kFlushInstructionNames = {"AUTO", "CLWB", "CLFLUSHOPT", "CLFLUSH"};

constexpr std::optional<FlushInstruction> FlushInstructionNamed(std::string_view name) {
  for (size_t i = 0; i < kFlushInstructionNames.size(); ++i) {
    if (kFlushInstructionNames[i] == name) return static_cast<FlushInstruction>(i);
  }
  return std::nullopt;
}

// Of one thread. Throws Error (kIo) where a device fails, and from then on.
class PersistentWriter {
 public:
  virtual ~PersistentWriter() = default;

  // Begins to make durable what the bytes hold now. They may be stored to again at once.
  virtual void WriteBack(const std::byte* from, size_t bytes) = 0;
  // Stores whole lines, past the caches where a Drain of its own costs next to nothing: then their old contents are not
  // read first, and they need no write-back, only the Drain. False: they are stored, and need a write-back too.
  virtual bool Stream(std::byte* to, const std::byte* from, size_t bytes) {
    std::memcpy(to, from, bytes);
    return false;
  }
  // On return all that this writer has written back is durable; what others have, perhaps.
  virtual void Drain() = 0;
};

class PersistentMemory {
 public:
  virtual ~PersistentMemory() = default;

  // Aligned to pages.
  virtual std::span<std::byte> bytes() const = 0;
  virtual std::unique_ptr<PersistentWriter> NewWriter() = 0;
  // A drain takes as long as a write of a disk, so that a thread that has other work leaves it to one that has none.
  virtual bool drains_are_slow() const = 0;
  // For results: "persistent memory, CLWB", "RAM as a stand-in, CLFLUSHOPT", "a file, msync".
  virtual std::string kind() const = 0;
};

struct PersistentMapping {
  uint64_t create_bytes = 0;  // 0: the file is there. Else it is created, all zeros, with this size
  // Stores stay in this process, and nothing is durable: the file is not changed.
  bool copy_on_write = false;
  FlushInstruction flush = FlushInstruction::kAuto;
  // What was drained is what transactions are acknowledged by: a synchronous replica has it before a Drain returns
  // (logging/replication/replicated_file_system.h).
  bool commits = false;
};

}  // namespace dbx
