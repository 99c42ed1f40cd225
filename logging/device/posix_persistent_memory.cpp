#include "logging/device/posix_persistent_memory.h"

#include <cpuid.h>
#include <fcntl.h>
#include <immintrin.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/cache_line.h"
#include "base/error.h"
#include "base/host.h"
#include "logging/device/file_system.h"
#include "logging/device/posix_file.h"

namespace dbx {
namespace {

constexpr uintptr_t kPageBytes = 4096;

// ---- Instructions ----

bool ProcessorHas(FlushInstruction instruction) {
  unsigned eax, ebx = 0, ecx, edx;
  switch (instruction) {
    case FlushInstruction::kClwb:
      return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_CLWB) != 0;
    case FlushInstruction::kClflushopt:
      return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & bit_CLFLUSHOPT) != 0;
    default:
      return true;  // CLFLUSH is part of x86-64
  }
}

// The cache lines of a range.
struct Lines {
  Lines(const std::byte* from, size_t bytes)
      : begin(reinterpret_cast<uintptr_t>(from) / kCacheLineBytes * kCacheLineBytes),
        end(reinterpret_cast<uintptr_t>(from) + bytes) {}
  const uintptr_t begin, end;
};
// Compiled for processors that have the instruction, and called on no other.
__attribute__((target("clwb"))) void Clwb(const std::byte* from, size_t bytes) {
  const Lines lines(from, bytes);
  for (uintptr_t line = lines.begin; line < lines.end; line += kCacheLineBytes) {
    _mm_clwb(reinterpret_cast<void*>(line));
  }
}
__attribute__((target("clflushopt"))) void Clflushopt(const std::byte* from, size_t bytes) {
  const Lines lines(from, bytes);
  for (uintptr_t line = lines.begin; line < lines.end; line += kCacheLineBytes) {
    _mm_clflushopt(reinterpret_cast<void*>(line));
  }
}
void Clflush(const std::byte* from, size_t bytes) {
  const Lines lines(from, bytes);
  for (uintptr_t line = lines.begin; line < lines.end; line += kCacheLineBytes) {
    _mm_clflush(reinterpret_cast<void*>(line));
  }
}
void ByLibrary(const std::byte* from, size_t bytes) { ::pmem_flush(from, bytes); }

using WriteBackLines = void (*)(const std::byte*, size_t);
WriteBackLines FunctionOf(FlushInstruction instruction) {
  switch (instruction) {
    case FlushInstruction::kClwb:
      return Clwb;
    case FlushInstruction::kClflushopt:
      return Clflushopt;
    case FlushInstruction::kClflush:
      return Clflush;
    default:
      return ByLibrary;
  }
}

// ---- Writers ----

class LineWriter final : public PersistentWriter {
 public:
  LineWriter(WriteBackLines write_back, bool streams) : write_back_(write_back), streams_(streams) {}
  void WriteBack(const std::byte* from, size_t bytes) override { write_back_(from, bytes); }
  void Drain() override { _mm_sfence(); }
  bool Stream(std::byte* to, const std::byte* from, size_t bytes) override {
    if (!streams_) return PersistentWriter::Stream(to, from, bytes);
    ::pmem_memcpy(to, from, bytes, PMEM_F_MEM_NODRAIN | PMEM_F_MEM_NONTEMPORAL);
    return true;
  }

 private:
  const WriteBackLines write_back_;
  const bool streams_;
};

// What the writers of one file share. The kernel tells of a failed write of its pages once, to any one of them, and
// takes the pages for clean then: so one sync at a time, and none after a failure.
struct Syncs {
  Mutex mutex;
  std::optional<Error> failure;  // guarded by mutex
};

// Pages of a file are written when they are drained, by one sync from the first to the last of them: the kernel looks
// for dirty pages alone, and flushes the disk once. Other writers' pages in between are written, too.
class PageWriter final : public PersistentWriter {
 public:
  PageWriter(const std::string& path, std::shared_ptr<Syncs> syncs) : path_(path), syncs_(std::move(syncs)) {}

  void WriteBack(const std::byte* from, size_t bytes) override {
    if (bytes == 0) return;
    begin_ = std::min(begin_, reinterpret_cast<uintptr_t>(from) / kPageBytes * kPageBytes);
    end_ = std::max(end_, reinterpret_cast<uintptr_t>(from) + bytes);
  }
  void Drain() override {
    const std::lock_guard lock(syncs_->mutex);
    if (syncs_->failure) throw Error(*syncs_->failure);
    if (begin_ < end_) Sync(begin_, end_ - begin_);
    begin_ = UINTPTR_MAX, end_ = 0;
  }

 private:
  // A failed sync is not retried: the kernel may have dropped the pages.
  void Sync(uintptr_t at, size_t bytes) {
    if (::pmem_msync(reinterpret_cast<void*>(at), bytes) == 0) return;
    const int error = errno;
    try {
      ThrowErrno("sync", path_, error);
    } catch (const Error& failure) {
      syncs_->failure = failure;
      throw;
    }
  }

  const std::string path_;
  const std::shared_ptr<Syncs> syncs_;
  uintptr_t begin_ = UINTPTR_MAX, end_ = 0;  // of what was written back; the first is that of a page
};

// Of a mapping that only this process sees.
class NoWriter final : public PersistentWriter {
 public:
  void WriteBack(const std::byte*, size_t) override {}
  void Drain() override {}
};

// ---- Memory ----

class PosixMemory final : public PersistentMemory {
 public:
  enum class Way { kLines, kPages, kNone };

  PosixMemory(std::string path, std::span<std::byte> bytes, Way way, FlushInstruction flush, std::string kind)
      : path_(std::move(path)), bytes_(bytes), way_(way), flush_(flush), kind_(std::move(kind)) {}
  ~PosixMemory() override { ::munmap(bytes_.data(), bytes_.size()); }
  PosixMemory(const PosixMemory&) = delete;
  PosixMemory& operator=(const PosixMemory&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }
  std::string kind() const override { return kind_; }
  bool drains_are_slow() const override { return way_ == Way::kPages; }
  std::unique_ptr<PersistentWriter> NewWriter() override {
    switch (way_) {
      case Way::kLines:
        // A flush instruction that was asked for is what all lines are written back by.
        return std::make_unique<LineWriter>(FunctionOf(flush_), flush_ == FlushInstruction::kAuto);
      case Way::kPages:
        return std::make_unique<PageWriter>(path_, syncs_);
      default:
        return std::make_unique<NoWriter>();
    }
  }

 private:
  const std::string path_;
  const std::span<std::byte> bytes_;
  const Way way_;
  const FlushInstruction flush_;
  const std::string kind_;
  const std::shared_ptr<Syncs> syncs_ = std::make_shared<Syncs>();
};

// What libpmem chooses, for the name of the kind.
FlushInstruction BestOf(FlushInstruction wanted) {
  return wanted == FlushInstruction::kAuto ? FlushInstructions().front() : wanted;
}

bool IsEmpty(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && status.st_size == 0;
}
// Nothing can be mapped of it.
[[noreturn]] void RefuseEmpty(const std::string& path) {
  throw Error(ExitStatus::kCorrupt, "cannot map " + path + "@0: the file is empty");
}

std::unique_ptr<PersistentMemory> MapShared(const std::string& path, const PersistentMapping& mapping) {
  const bool create = mapping.create_bytes > 0;
  size_t bytes = 0;
  int is_pmem = 0;
  // The blocks are allocated: a store never finds the file system full.
  if (!create && IsEmpty(path)) RefuseEmpty(path);
  void* const at =
      ::pmem_map_file(path.c_str(), mapping.create_bytes, create ? PMEM_FILE_CREATE : 0, 0644, &bytes, &is_pmem);
  if (at == nullptr) ThrowErrno(create ? "create" : "map", path, errno);
  const std::span memory(static_cast<std::byte*>(at), bytes);
  const bool is_ram = !is_pmem && FileSystemTypeOf(path).is_ram;
  if (!is_pmem && !is_ram) {
    return std::make_unique<PosixMemory>(path, memory, PosixMemory::Way::kPages, mapping.flush, "a file, msync");
  }
  // Fewer misses of the TLB, where the file system gives large pages.
  (void)::madvise(at, bytes, MADV_HUGEPAGE);
  return std::make_unique<PosixMemory>(
      path, memory, PosixMemory::Way::kLines, mapping.flush,
      std::string(is_pmem ? "persistent memory, " : "RAM as a stand-in, ") + NameOf(BestOf(mapping.flush)));
}

std::unique_ptr<PersistentMemory> MapPrivate(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) ThrowErrno("map", path, errno);
  const off_t bytes = ::lseek(fd.get(), 0, SEEK_END);
  if (bytes < 0) ThrowErrno("map", path, errno);
  if (bytes == 0) RefuseEmpty(path);
  void* const at =
      ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd.get(), 0);
  if (at == MAP_FAILED) ThrowErrno("map", path, errno);
  return std::make_unique<PosixMemory>(path, std::span(static_cast<std::byte*>(at), static_cast<size_t>(bytes)),
                                       PosixMemory::Way::kNone, FlushInstruction::kAuto, "a private copy");
}

}  // namespace

std::vector<FlushInstruction> FlushInstructions() {
  std::vector<FlushInstruction> all;
  for (const auto one : {FlushInstruction::kClwb, FlushInstruction::kClflushopt, FlushInstruction::kClflush}) {
    if (ProcessorHas(one)) all.push_back(one);
  }
  return all;
}

const char* NameOf(FlushInstruction instruction) {
  return kFlushInstructionNames[static_cast<size_t>(instruction)].data();
}

std::unique_ptr<PersistentMemory> MapPosixMemory(const std::string& path, const PersistentMapping& mapping) {
  if (!ProcessorHas(mapping.flush)) {
    throw Error(ExitStatus::kUsage, std::string("this processor has no ") + NameOf(mapping.flush) +
                                        "; doctor names the instructions that it has");
  }
  if (mapping.copy_on_write) return MapPrivate(path);
  if (mapping.create_bytes == 0) return MapShared(path, mapping);
  IgnoreFileSizeSignal();
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) ThrowErrno("create", path, errno);
  try {
    auto memory = MapShared(path, mapping);
    if (::fsync(fd.get()) != 0) ThrowErrno("sync", path, errno);
    SyncDirectory(ParentDirectory(path));
    return memory;
  } catch (const Error&) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace dbx
