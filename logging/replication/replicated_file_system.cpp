#include "logging/replication/replicated_file_system.h"

#include <algorithm>
#include <deque>

#include "logging/format.h"

namespace dbx {
namespace {

// A file of the run, by its number on the connection.
class SentFile {
 public:
  SentFile(ReplicaStream& stream, uint32_t number) : stream_(stream), number_(number) {}
  ~SentFile() {
    stream_.Tell(FrameKind::kClose, number_, [](Frame&) {});
  }
  SentFile(const SentFile&) = delete;
  SentFile& operator=(const SentFile&) = delete;

  bool is_synchronous() const { return stream_.is_synchronous(); }
  uint64_t applied() const { return stream_.applied(); }
  void AwaitApplied(uint64_t frame) const { stream_.AwaitApplied(frame); }
  void ThrowIfLost() const { stream_.ThrowIfLost(); }
  uint64_t Put(FrameKind kind, bool confirm) const {
    return stream_.Put(kind, number_, confirm, [](Frame&) {});
  }

  struct Range {
    uint64_t offset;
    const std::byte* from;
    size_t bytes;
  };
  // As many frames as they need; `confirm`, of the last one, whose number is returned. Empties `ranges`.
  uint64_t PutRanges(std::vector<Range>& ranges, bool confirm) const {
    uint64_t last = ReplicaStream::kNotSent;
    for (size_t next = 0; next < ranges.size();) {
      last = stream_.Put(FrameKind::kWrite, number_, /*confirm=*/false, [&](Frame& frame) {
        while (next < ranges.size() && AddWhatFits(frame, ranges[next])) ++next;
        if (confirm && next == ranges.size()) frame.Confirm();
      });
      if (last == ReplicaStream::kNotSent) break;
    }
    ranges.clear();
    return last;
  }

 private:
  static constexpr size_t kRangeHeaderBytes = 16;

  // In whole blocks, as devices take, unless it is all. True: it is all.
  static bool AddWhatFits(Frame& frame, Range& range) {
    const size_t used = frame.body_bytes() + kRangeHeaderBytes;
    const size_t room = used < kFrameBodyBytesMax ? kFrameBodyBytesMax - used : 0;
    const size_t bytes = range.bytes <= room ? range.bytes : room / format::kBlockBytes * format::kBlockBytes;
    if (bytes > 0) frame.AddRange(range.offset, range.from, bytes);
    range = {range.offset + bytes, range.from + bytes, range.bytes - bytes};
    return range.bytes == 0;
  }

  ReplicaStream& stream_;
  const uint32_t number_;
};

class ReplicatedDevice final : public BlockDevice {
 public:
  ReplicatedDevice(std::unique_ptr<BlockDevice> file, ReplicaStream& stream, uint32_t number)
      : file_(std::move(file)), sent_(stream, number) {}

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    file_->StartWrite(offset, data);
    in_flight_.push_back({offset, data.data(), data.size()});
  }

  uint64_t Complete(bool wait) override {
    durable_ = file_->Complete(wait);
    SendDurable();
    if (!sent_.is_synchronous()) return durable_;
    sent_.ThrowIfLost();
    if (wait && !unconfirmed_.empty()) sent_.AwaitApplied(unconfirmed_.back().frame);
    while (!unconfirmed_.empty() && unconfirmed_.front().frame < sent_.applied()) unconfirmed_.pop_front();
    return unconfirmed_.empty() ? durable_ : std::min(durable_, unconfirmed_.front().offset);
  }

  size_t Read(uint64_t offset, std::span<std::byte> to) override { return file_->Read(offset, to); }
  uint64_t SkipHole(uint64_t offset) override { return file_->SkipHole(offset); }
  size_t disks() const override { return file_->disks(); }
  bool is_memory() const override { return file_->is_memory(); }
  uint64_t SizeBytes() override { return file_->SizeBytes(); }
  const std::string& path() const override { return file_->path(); }
  std::string PlaceOf(uint64_t offset) const override { return file_->PlaceOf(offset); }

 private:
  struct Unconfirmed {
    uint64_t offset;  // where it begins
    uint64_t frame;
  };

  void SendDurable() {
    std::vector<SentFile::Range> ranges;
    for (; !in_flight_.empty() && in_flight_.front().offset + in_flight_.front().bytes <= durable_;
         in_flight_.pop_front()) {
      ranges.push_back(in_flight_.front());
    }
    if (ranges.empty()) return;
    const uint64_t offset = ranges.front().offset;
    const uint64_t frame = sent_.PutRanges(ranges, sent_.is_synchronous());
    if (sent_.is_synchronous()) unconfirmed_.push_back({offset, frame});
  }

  const std::unique_ptr<BlockDevice> file_;
  const SentFile sent_;
  std::deque<SentFile::Range> in_flight_;  // started, and not durable yet as far as is known
  std::deque<Unconfirmed> unconfirmed_;    // durable here
  uint64_t durable_ = 0;
};

// Pages that are written and not synced may be durable, or not, on either side.
class ReplicatedPages final : public PageFile {
 public:
  ReplicatedPages(std::unique_ptr<PageFile> file, ReplicaStream& stream, uint32_t number)
      : file_(std::move(file)), sent_(stream, number) {}

  void WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    file_->WriteAt(offset, bytes);
    std::vector<SentFile::Range> ranges = {{offset, bytes.data(), bytes.size()}};
    sent_.PutRanges(ranges, /*confirm=*/false);
  }
  void Sync() override {
    file_->Sync();
    const uint64_t frame = sent_.Put(FrameKind::kSync, sent_.is_synchronous());
    if (sent_.is_synchronous()) sent_.AwaitApplied(frame);
  }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<PageFile> file_;
  const SentFile sent_;
};

class ReplicatedWriter final : public PersistentWriter {
 public:
  ReplicatedWriter(std::unique_ptr<PersistentWriter> writer, const std::byte* base, const SentFile& sent, bool waits)
      : writer_(std::move(writer)), base_(base), sent_(sent), waits_(waits) {}

  void WriteBack(const std::byte* from, size_t bytes) override {
    writer_->WriteBack(from, bytes);
    Note(from, bytes);
  }
  bool Stream(std::byte* to, const std::byte* from, size_t bytes) override {
    const bool needs_drain_alone = writer_->Stream(to, from, bytes);
    if (needs_drain_alone) Note(to, bytes);
    return needs_drain_alone;
  }
  // The bytes are taken when they are durable, and under the stream's lock: what other threads have stored since may be
  // among them, and may be durable, as they may be after a power failure.
  void Drain() override {
    writer_->Drain();
    if (ranges_.empty()) return sent_.ThrowIfLost();
    const uint64_t frame = sent_.PutRanges(ranges_, waits_);
    if (waits_) sent_.AwaitApplied(frame);
  }

 private:
  void Note(const std::byte* from, size_t bytes) {
    if (bytes == 0) return;
    if (!ranges_.empty() && ranges_.back().from + ranges_.back().bytes == from) {
      ranges_.back().bytes += bytes;
    } else {
      ranges_.push_back({static_cast<uint64_t>(from - base_), from, bytes});
    }
  }

  const std::unique_ptr<PersistentWriter> writer_;
  const std::byte* const base_;
  const SentFile& sent_;
  const bool waits_;
  std::vector<SentFile::Range> ranges_;  // written back since the last Drain
};

class ReplicatedMemory final : public PersistentMemory {
 public:
  ReplicatedMemory(std::unique_ptr<PersistentMemory> memory, ReplicaStream& stream, uint32_t number, bool commits)
      : memory_(std::move(memory)), sent_(stream, number), waits_(commits && stream.is_synchronous()) {}

  std::span<std::byte> bytes() const override { return memory_->bytes(); }
  std::unique_ptr<PersistentWriter> NewWriter() override {
    return std::make_unique<ReplicatedWriter>(memory_->NewWriter(), bytes().data(), sent_, waits_);
  }
  bool drains_are_slow() const override { return waits_ || memory_->drains_are_slow(); }
  std::string kind() const override { return memory_->kind(); }

 private:
  const std::unique_ptr<PersistentMemory> memory_;
  const SentFile sent_;
  const bool waits_;
};

}  // namespace

std::string ReplicatedFileSystem::SentPathOf(const std::string& path) const {
  std::string sent;
  size_t longest = 0;  // a log directory may lie in another one
  for (size_t i = 0; i < directories_.size(); ++i) {
    const std::string& directory = directories_[i];
    if (!LiesIn(path, directory) || directory.size() < longest) continue;
    longest = directory.size();
    sent = std::to_string(i) + (path == directory ? "/" : path.substr(directory.size()));
  }
  return sent;
}

void ReplicatedFileSystem::PutPath(FrameKind kind, const std::string& path) const {
  stream_.Tell(kind, 0, [&](Frame& frame) { frame.AddText(SentPathOf(path)); });
}

bool ReplicatedFileSystem::MakeDirectory(const std::string& path) {
  if (!files_.MakeDirectory(path)) return false;
  const std::string sent = SentPathOf(path);
  if (sent.empty() || sent.ends_with('/')) return true;
  made_.insert(path);
  PutPath(FrameKind::kMakeDirectory, path);
  return true;
}

void ReplicatedFileSystem::RemoveDirectory(const std::string& path) {
  files_.RemoveDirectory(path);
  if (made_.erase(path) > 0) PutPath(FrameKind::kRemoveDirectory, path);
}

void ReplicatedFileSystem::Remove(const std::string& path) {
  files_.Remove(path);
  if (HasCopy(path)) PutPath(FrameKind::kRemove, path);
}

void ReplicatedFileSystem::Rename(const std::string& from, const std::string& to) {
  files_.Rename(from, to);
  if (!HasCopy(from)) return;
  stream_.Tell(FrameKind::kRename, 0, [&](Frame& frame) {
    frame.AddText(SentPathOf(from));
    frame.Add("", 1);
    frame.AddText(SentPathOf(to));
  });
}

void ReplicatedFileSystem::SyncDirectory(const std::string& path) {
  files_.SyncDirectory(path);
  if (made_.contains(path) || (!made_.empty() && SentPathOf(path).ends_with('/'))) {
    PutPath(FrameKind::kSyncDirectory, path);
  }
}

bool ReplicatedFileSystem::Discard(const std::string& path, uint64_t from, uint64_t to) {
  if (!files_.Discard(path, from, to)) return false;
  if (!HasCopy(path)) return true;
  stream_.Tell(FrameKind::kDiscard, 0, [&](Frame& frame) {
    frame.AddNumber(from);
    frame.AddNumber(to);
    frame.AddText(SentPathOf(path));
  });
  return true;
}

std::unique_ptr<BlockDevice> ReplicatedFileSystem::Create(const std::string& path, const DeviceOptions& options) {
  auto file = files_.Create(path, options);
  if (!HasCopy(path)) return file;
  stream_.Tell(FrameKind::kCreate, next_file_, [&](Frame& frame) {
    frame.AddNumber(options.preallocate_bytes);
    frame.AddText(SentPathOf(path));
  });
  return std::make_unique<ReplicatedDevice>(std::move(file), stream_, next_file_++);
}

std::unique_ptr<PageFile> ReplicatedFileSystem::CreatePages(const std::string& path, bool durable) {
  auto file = files_.CreatePages(path, durable);
  if (!HasCopy(path)) return file;
  stream_.Tell(FrameKind::kCreatePages, next_file_, [&](Frame& frame) { frame.AddText(SentPathOf(path)); });
  return std::make_unique<ReplicatedPages>(std::move(file), stream_, next_file_++);
}

std::unique_ptr<PersistentMemory> ReplicatedFileSystem::MapPersistent(const std::string& path,
                                                                      const PersistentMapping& mapping) {
  auto memory = files_.MapPersistent(path, mapping);
  if (mapping.create_bytes == 0 || !HasCopy(path)) return memory;
  stream_.Tell(FrameKind::kMap, next_file_, [&](Frame& frame) {
    frame.AddNumber(mapping.create_bytes);
    frame.AddText(SentPathOf(path));
  });
  return std::make_unique<ReplicatedMemory>(std::move(memory), stream_, next_file_++, mapping.commits);
}

}  // namespace dbx
