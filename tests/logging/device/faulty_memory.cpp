// Files of a FaultyFileSystem as persistent memory: what was stored and not drained may be lost, word by word.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "logging/device/posix_file.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

constexpr size_t kLineBytes = 64, kPageBytes = 4096, kWordBytes = 8;

using Line = std::array<uint64_t, kLineBytes / kWordBytes>;

// While other threads store to it, as the memory's own controller would.
__attribute__((no_sanitize("thread"))) Line ReadLine(const std::byte* from) {
  Line line;
  for (size_t word = 0; word < line.size(); ++word) {
    line[word] = reinterpret_cast<const uint64_t*>(from)[word];
  }
  return line;
}

}  // namespace

// Memory that is stored to, one for all mappings of a file.
struct FaultyFileSystem::Live {
  explicit Live(size_t size)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, RoundedUp(size))), &std::free),
        size(size),
        taken_at(size / kWordBytes + 1) {
    CHECK(bytes != nullptr);
    std::memset(bytes.get(), 0, RoundedUp(size));
  }
  static size_t RoundedUp(size_t size) { return (size + kPageBytes - 1) / kPageBytes * kPageBytes; }

  const std::unique_ptr<std::byte, decltype(&std::free)> bytes;
  const size_t size;
  // A word is written back in the order of the moments at which its value was taken, whatever the order of drains: a
  // memory controller never puts an older value in place of a newer one. Guarded by the file system's mutex.
  uint64_t moment = 0;
  std::atomic<uint64_t> writers = 0;
  std::vector<uint64_t> taken_at;  // by word, of its durable value
};

void FaultyFileSystem::MakeDurable(Inode& file, size_t at, uint64_t word, uint64_t moment) {
  uint64_t& taken_at = file.live->taken_at[at / kWordBytes];
  if (taken_at >= moment) return;
  taken_at = moment;
  file.durable.Write(at, std::as_bytes(std::span(&word, 1)));
}

class FaultyFileSystem::MemoryWriter final : public PersistentWriter {
 public:
  MemoryWriter(FaultyFileSystem& owner, std::string path, InodePtr inode)
      : owner_(owner), path_(std::move(path)), inode_(std::move(inode)), streams_(++inode_->live->writers % 2 == 0) {}

  // Every second writer of a file streams.
  bool Stream(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    if (streams_) WriteBack(to, bytes);
    return streams_;
  }

  // What the lines hold now is kept until they are drained.
  void WriteBack(const std::byte* from, size_t bytes) override {
    const auto begin = static_cast<size_t>(from - inode_->live->bytes.get());
    CHECK(begin + bytes <= inode_->live->size);
    const Lock lock(owner_.mutex_);
    for (size_t at = begin / kLineBytes * kLineBytes; at < begin + bytes; at += kLineBytes) {
      lines_.push_back({at, ++inode_->live->moment, ReadLine(inode_->live->bytes.get() + at)});
    }
  }
  void Drain() override {
    const Lock lock(owner_.mutex_);
    owner_.Begin(Operation::kSync, "drain", path_);
    if (!owner_.syncs_lie_) {
      for (const WrittenBack& line : lines_) {
        for (size_t word = 0; word < line.words.size(); ++word) {
          MakeDurable(*inode_, line.at + word * kWordBytes, line.words[word], line.moment);
        }
      }
    }
    lines_.clear();
  }

 private:
  struct WrittenBack {
    size_t at;
    uint64_t moment;
    Line words;
  };

  FaultyFileSystem& owner_;
  const std::string path_;
  const InodePtr inode_;
  const bool streams_;
  std::vector<WrittenBack> lines_;
};

class FaultyFileSystem::Memory final : public PersistentMemory {
 public:
  Memory(FaultyFileSystem& owner, std::string path, InodePtr inode)
      : owner_(owner), path_(std::move(path)), inode_(std::move(inode)) {}

  std::span<std::byte> bytes() const override { return {inode_->live->bytes.get(), inode_->live->size}; }
  std::unique_ptr<PersistentWriter> NewWriter() override {
    return std::make_unique<MemoryWriter>(owner_, path_, inode_);
  }
  std::string kind() const override { return "faulty memory"; }
  bool drains_are_slow() const override { return owner_.drains_are_slow; }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
  const InodePtr inode_;
};

std::unique_ptr<PersistentMemory> FaultyFileSystem::MapPersistent(const std::string& path,
                                                                  const PersistentMapping& mapping) {
  const Lock lock(mutex_);
  InodePtr inode;
  if (mapping.create_bytes > 0) {
    inode = MakeFile(path, mapping.create_bytes);
  } else {
    Begin(Operation::kOpen, "map", path);
    inode = Find(path);
    if (!inode || inode->is_directory) ThrowErrno("map", path, inode ? EISDIR : ENOENT);
    if (inode->current.size() == 0) ThrowErrno("map", path, ENODATA);
  }
  if (mapping.copy_on_write) {
    TakeStores(*inode);
    auto copy = std::make_shared<Inode>(*inode);
    copy->live = nullptr;
    inode = std::move(copy);
  }
  if (!inode->live) {
    inode->live = std::make_shared<Live>(static_cast<size_t>(inode->current.size()));
    inode->current.Read(0, {inode->live->bytes.get(), inode->live->size});
  }
  return std::make_unique<Memory>(*this, path, std::move(inode));
}

void FaultyFileSystem::TakeStores(Inode& file) {
  if (!file.live) return;
  std::array<std::byte, kLineBytes> line;
  for (size_t at = 0; at + kLineBytes <= file.live->size; at += kLineBytes) {
    const Line now = ReadLine(file.live->bytes.get() + at);
    file.current.Read(at, line);
    if (std::memcmp(line.data(), now.data(), kLineBytes) != 0) file.current.Write(at, std::as_bytes(std::span(now)));
  }
}

std::shared_ptr<FaultyFileSystem::Live> FaultyFileSystem::CopyOf(const std::shared_ptr<Live>& live) {
  if (!live) return nullptr;
  auto copy = std::make_shared<Live>(live->size);
  for (size_t at = 0; at + kLineBytes <= live->size; at += kLineBytes) {
    const Line line = ReadLine(live->bytes.get() + at);
    std::memcpy(copy->bytes.get() + at, line.data(), kLineBytes);
  }
  return copy;
}

void FaultyFileSystem::ApplyWords(const Live& live, Crash crash, std::mt19937_64& random, SparseBytes& bytes) {
  Line durable;
  for (size_t at = 0; at + kLineBytes <= live.size; at += kLineBytes) {
    const Line now = ReadLine(live.bytes.get() + at);
    bytes.Read(at, std::as_writable_bytes(std::span(durable)));
    if (durable == now) continue;
    for (size_t word = 0; word < now.size(); ++word) {
      if (durable[word] == now[word] || (crash != Crash::kAllPending && random() % 2 == 0)) continue;
      bytes.Write(at + word * kWordBytes, std::as_bytes(std::span(&now[word], 1)));
    }
  }
}

void FaultyFileSystem::EvictWords(uint64_t seed, size_t lines) {
  const Lock lock(mutex_);
  std::mt19937_64 random(seed);
  ForEachFile([&](Inode& file) {
    if (!file.live || file.live->size < kLineBytes) return;
    for (size_t i = 0; i < lines; ++i) {
      const size_t at = random() % (file.live->size / kLineBytes) * kLineBytes;
      const Line now = ReadLine(file.live->bytes.get() + at);
      for (size_t word = 0; word < now.size(); ++word) {
        if (random() % 2 == 0) MakeDurable(file, at + word * kWordBytes, now[word], ++file.live->moment);
      }
    }
  });
}

std::optional<uint64_t> FaultyFileSystem::DurableWordAt(const void* at) {
  const Lock lock(mutex_);
  std::optional<uint64_t> durable;
  ForEachFile([&](Inode& file) {
    const auto* const word = static_cast<const std::byte*>(at);
    if (!file.live || word < file.live->bytes.get() || word >= file.live->bytes.get() + file.live->size) return;
    durable = 0;
    const auto offset = static_cast<uint64_t>(word - file.live->bytes.get());
    file.durable.Read(offset, std::as_writable_bytes(std::span(&*durable, 1)));
  });
  return durable;
}

}  // namespace dbx
