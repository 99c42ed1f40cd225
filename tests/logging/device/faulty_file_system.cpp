#include "tests/logging/device/faulty_file_system.h"

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "logging/device/posix_file.h"
#include "logging/device/write_fully.h"

namespace dbx {
namespace {

// Paths are taken as they are spelt; "." and "/" both are the root.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, slash - at);
    if (!part.empty() && part != ".") parts.push_back(part);
    at = slash + 1;
  }
  return parts;
}

std::string NameOf(const std::string& path) {
  const std::vector<std::string> parts = PartsOf(path);
  return parts.empty() ? "" : parts.back();
}

using Operation = FaultyFileSystem::Operation;

bool IsChange(Operation operation) { return operation < Operation::kRead; }

bool IsOnNames(Operation operation) {
  return operation < Operation::kAllocate || (operation > Operation::kRead && operation < Operation::kAnyOnNames);
}

bool Includes(Operation planned, Operation operation) {
  return planned == operation || (planned == Operation::kAnyOnNames && IsOnNames(operation));
}

// The pages of a write of data, each as a write of its own.
template <class Write, class Action>
void ForEachPage(const Write& write, Action&& action) {
  constexpr size_t kPageBytes = 4096;
  for (size_t at = 0; at < write.data->size(); at += kPageBytes) {
    Write page = write;
    const std::span part = std::span(*write.data).subspan(at, std::min(kPageBytes, write.data->size() - at));
    page.offset += at;
    page.data = std::make_shared<const std::vector<std::byte>>(part.begin(), part.end());
    action(std::move(page));
  }
}

}  // namespace

// One open file. Writes to different offsets of it are in order, as block_device.h requires.
class FaultyFileSystem::File final : public BlockDevice {
 public:
  File(FaultyFileSystem& owner, std::string path, InodePtr inode, const DeviceOptions* options)
      : owner_(owner),
        path_(std::move(path)),
        inode_(std::move(inode)),
        writable_(options != nullptr),
        sync_(options == nullptr || options->sync) {}

  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    const Lock lock(owner_.mutex_);
    ThrowIfFailed();
    CHECK(!started_ || offset == started_end_);
    if (!started_) complete_end_ = offset;
    started_ = true;
    started_end_ = offset + data.size();
    FailWith([&] {
      size_t done = 0;
      const auto write_some = [this](uint64_t at, std::span<const std::byte> part) { return WriteSome(at, part); };
      const int error = writable_ ? WriteFully(offset, data, done, write_some) : EBADF;
      if (error != 0) ThrowErrno("write", path_, offset + done, error);
    });
  }

  uint64_t Complete(bool wait) override {
    Lock lock(owner_.mutex_);
    ThrowIfFailed();
    if (complete_end_ == started_end_) return complete_end_;
    if (wait) owner_.resumed_.wait(lock, [this] { return !owner_.IsStalled(path_); });
    if (owner_.IsStalled(path_)) return complete_end_;
    FailWith([&] { owner_.BeginSync(*inode_, path_, complete_end_); });
    // The oldest write alone for one that polls, so that writes behind it stay in flight.
    const uint64_t end = wait || writes_.size() < 2 ? started_end_ : writes_.front();
    while (!writes_.empty() && writes_.front() <= end) writes_.erase(writes_.begin());
    if (sync_ && !owner_.syncs_lie_) MakeDurableUntil(end);
    complete_end_ = end;
    return complete_end_;
  }

  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    const Lock lock(owner_.mutex_);
    ThrowIfFailed();
    TakeStores(*inode_);
    size_t done = 0;
    const int error = ReadFully(offset, to, done, [this](uint64_t at, std::span<std::byte> part) -> int64_t {
      if (owner_.IsInterrupted()) return -EINTR;
      owner_.Begin(Operation::kRead, "read", path_, at);
      return static_cast<int64_t>(inode_->current.Read(at, part.first(owner_.BytesTaken(part.size()))));
    });
    CHECK(error == 0);
    return done;
  }

  uint64_t SizeBytes() override {
    const Lock lock(owner_.mutex_);
    ThrowIfFailed();
    return inode_->current.size();
  }

  const std::string& path() const override { return path_; }

 private:
  // One request, as pwrite would take it. The bytes of a failed request may still arrive.
  int64_t WriteSome(uint64_t at, std::span<const std::byte> part) {
    if (owner_.IsInterrupted()) return -EINTR;
    part = part.first(owner_.BytesTaken(part.size()));
    auto data = std::make_shared<const std::vector<std::byte>>(part.begin(), part.end());
    try {
      owner_.Begin(Operation::kWrite, "write", path_, at);
    } catch (const Error&) {
      if (!owner_.power_is_off()) inode_->pending.push_back({at, std::move(data), false, false});
      throw;
    }
    inode_->current.Write(at, part);
    inode_->pending.push_back({at, std::move(data), false});
    writes_.push_back(at + part.size());
    return static_cast<int64_t>(part.size());
  }

  void MakeDurableUntil(uint64_t end) {
    std::vector<Write> rest;
    for (Write& write : inode_->pending) {
      const bool covered = write.complete || (write.data && write.offset + write.data->size() <= end);
      if (covered) {
        Apply(write, inode_->durable);
      } else {
        rest.push_back(std::move(write));
      }
    }
    inode_->pending = std::move(rest);
  }

  template <class Action>
  void FailWith(Action&& action) {
    try {
      action();
    } catch (const Error& failure) {
      failure_ = failure;
      throw;
    }
  }
  void ThrowIfFailed() const {
    if (failure_) throw Error(*failure_);
  }

  FaultyFileSystem& owner_;
  const std::string path_;
  const InodePtr inode_;
  const bool writable_;
  const bool sync_;
  bool started_ = false;
  uint64_t started_end_ = 0;
  uint64_t complete_end_ = 0;
  std::vector<uint64_t> writes_;  // ends of the writes that are not complete
  std::optional<Error> failure_;
};

FaultyFileSystem::FaultyFileSystem(const Image& image) : root_(std::make_shared<Inode>()) {
  root_->is_directory = true;
  const auto put = [this](const std::string& path, InodePtr inode) {
    Inode& parent = *Find(ParentDirectory(path));
    parent.entries[NameOf(path)] = parent.durable_entries[NameOf(path)] = std::move(inode);
  };
  for (const std::string& directory : image.directories) {
    auto inode = std::make_shared<Inode>();
    inode->is_directory = true;
    put(directory, std::move(inode));
  }
  for (const auto& [path, bytes] : image.files) {
    auto inode = std::make_shared<Inode>();
    inode->current = inode->durable = bytes;
    put(path, std::move(inode));
  }
}

FaultyFileSystem::~FaultyFileSystem() = default;

std::vector<std::string> FaultyFileSystem::List(const std::string& directory) {
  const Lock lock(mutex_);
  Begin(Operation::kList, "read directory", directory);
  std::vector<std::string> names;
  for (const auto& [name, inode] : Directory("read directory", directory).entries) names.push_back(name);
  return names;
}

FileSystem::Entry FaultyFileSystem::KindOf(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kKindOf, "look at", path);
  const InodePtr inode = Find(path);
  if (!inode) return Entry::kNone;
  return inode->is_directory ? Entry::kDirectory : Entry::kFile;
}

std::string FaultyFileSystem::IdentityOf(const std::string& directory) {
  const Lock lock(mutex_);
  Begin(Operation::kIdentityOf, "use log directory", directory);
  std::string identity;
  Directory("use log directory", directory);
  for (const std::string& part : PartsOf(directory)) identity += "/" + part;
  return identity;
}

bool FaultyFileSystem::MakeDirectory(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kMakeDirectory, "create directory", path);
  if (Find(path)) return false;
  auto inode = std::make_shared<Inode>();
  inode->is_directory = true;
  ChangeEntries(Directory("create directory", ParentDirectory(path)), {{NameOf(path), std::move(inode)}});
  return true;
}

void FaultyFileSystem::RemoveDirectory(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kRemoveDirectory, "delete", path);
  if (!Directory("delete", path).entries.empty()) ThrowErrno("delete", path, ENOTEMPTY);
  ChangeEntries(Directory("delete", ParentDirectory(path)), {{NameOf(path), nullptr}});
}

void FaultyFileSystem::Remove(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kRemove, "delete", path);
  const InodePtr inode = Find(path);
  if (!inode || inode->is_directory) ThrowErrno("delete", path, inode ? EISDIR : ENOENT);
  ChangeEntries(Directory("delete", ParentDirectory(path)), {{NameOf(path), nullptr}});
}

void FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  const Lock lock(mutex_);
  CHECK(ParentDirectory(from) == ParentDirectory(to));
  Begin(Operation::kRename, "rename", from);
  const InodePtr inode = Find(from);
  if (!inode) ThrowErrno("rename", from, ENOENT);
  ChangeEntries(Directory("rename", ParentDirectory(from)), {{NameOf(from), nullptr}, {NameOf(to), inode}});
}

void FaultyFileSystem::SyncDirectory(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kSyncDirectory, "sync directory", path);
  Inode& directory = Directory("sync directory", path);
  if (syncs_lie_) return;
  directory.durable_entries = directory.entries;
  directory.pending_entries.clear();
}

DirectoryLock FaultyFileSystem::LockDirectory(const std::string& path, LockKind kind) {
  if (const auto before = std::exchange(before_next_lock_, {})) before();
  const Lock lock(mutex_);
  Begin(Operation::kLock, "lock", path);
  Inode& directory = Directory("lock", path);
  const bool exclusive = kind == LockKind::kExclusive;
  if (!directory.exclusive_lock.expired() || (exclusive && !directory.shared_lock.expired())) return nullptr;
  DirectoryLock held = exclusive ? nullptr : directory.shared_lock.lock();
  if (!held) held = std::make_shared<const char>();
  (exclusive ? directory.exclusive_lock : directory.shared_lock) = held;
  return held;
}

void FaultyFileSystem::Rewrite(const std::string& path, uint64_t from, uint64_t to) {
  if (const auto before = std::exchange(before_next_rewrite_, {})) before();
  const Lock lock(mutex_);
  const InodePtr inode = Find(path);
  if (!inode || inode->is_directory) ThrowErrno("open", path, ENOENT);
  to = std::min(to, inode->current.size());
  if (from < to) {
    std::vector<std::byte> bytes(to - from);
    inode->current.Read(from, bytes);
    Begin(Operation::kWrite, "write", path, from);
    auto data = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    inode->pending.push_back({from, std::move(data), true, true, /*in_place=*/true});
  }
  BeginSync(*inode, path);
  if (!syncs_lie_) MakeDurable(*inode);
}

// The steps of CreateFileDevice, and of CreatePageFile, one operation each.
FaultyFileSystem::InodePtr FaultyFileSystem::MakeFile(const std::string& path, uint64_t preallocate_bytes) {
  Begin(Operation::kCreate, "create", path);
  if (Find(path)) ThrowErrno("create", path, EEXIST);
  Inode& parent = Directory("create", ParentDirectory(path));
  auto inode = std::make_shared<Inode>();
  ChangeEntries(parent, {{NameOf(path), inode}});
  try {
    if (preallocate_bytes > 0) {
      Begin(Operation::kAllocate, "allocate", path, preallocate_bytes);
      inode->current.Resize(preallocate_bytes);
      inode->pending.push_back({preallocate_bytes, nullptr});
    }
    BeginSync(*inode, path);
    if (!syncs_lie_) MakeDurable(*inode);
    SyncDirectory(ParentDirectory(path));
  } catch (const Error&) {
    if (!power_is_off()) ChangeEntries(parent, {{NameOf(path), nullptr}});
    throw;
  }
  return inode;
}

std::unique_ptr<BlockDevice> FaultyFileSystem::Create(const std::string& path, const DeviceOptions& options) {
  const Lock lock(mutex_);
  InodePtr inode = MakeFile(path, options.preallocate_bytes);
  return std::make_unique<File>(*this, options.named.empty() ? path : options.named, std::move(inode), &options);
}

std::unique_ptr<BlockDevice> FaultyFileSystem::Open(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kOpen, "open", path);
  InodePtr inode = Find(path);
  if (!inode) ThrowErrno("open", path, ENOENT);
  if (inode->is_directory) throw Error(ExitStatus::kIo, "cannot open " + path + ": not a regular file");
  return std::make_unique<File>(*this, path, std::move(inode), nullptr);
}

FileBytes FaultyFileSystem::Map(const std::string& path) {
  const Lock lock(mutex_);
  Begin(Operation::kOpen, "open", path);
  const InodePtr inode = Find(path);
  if (!inode || inode->is_directory) ThrowErrno("open", path, inode ? EISDIR : ENOENT);
  Begin(Operation::kRead, "read", path, 0);
  TakeStores(*inode);
  const auto copy = std::make_shared<const std::vector<std::byte>>(inode->current.All());
  return {copy, *copy};
}

DirectoryKind FaultyFileSystem::Describe(const std::string& directory, const DeviceOptions&) {
  const Lock lock(mutex_);
  Begin(Operation::kDescribe, "look at", directory);
  Directory("look at", directory);
  return {directory, "emulated", "memory", "memory"};
}

FaultyFileSystem::Image FaultyFileSystem::CrashImage(Crash crash, uint64_t seed) {
  const Lock lock(mutex_);
  std::mt19937_64 random(seed);
  Image image;
  Collect(*root_, "", crash, random, image);
  return image;
}

FaultyFileSystem::Image FaultyFileSystem::VisibleImage() {
  const Lock lock(mutex_);
  Image image;
  CollectVisible(*root_, "", image);
  return image;
}

std::unique_ptr<FaultyFileSystem> FaultyFileSystem::AfterKill(uint64_t seed) {
  const Lock lock(mutex_);
  std::mt19937_64 random(seed);
  std::map<InodePtr, InodePtr> copies;
  auto killed = std::make_unique<FaultyFileSystem>();
  killed->root_ = KilledCopy(root_, random, copies);
  return killed;
}

void FaultyFileSystem::Fail(Operation operation, uint64_t nth, int error, bool for_good, std::string path) {
  const Lock lock(mutex_);
  faults_.push_back({operation, nth, error, for_good, std::move(path)});
}

uint64_t FaultyFileSystem::failed_count() {
  const Lock lock(mutex_);
  return failed_;
}

uint64_t FaultyFileSystem::shortened_count() {
  const Lock lock(mutex_);
  return shortened_;
}

uint64_t FaultyFileSystem::interrupted_count() {
  const Lock lock(mutex_);
  return interrupted_;
}

uint64_t FaultyFileSystem::hole_count() {
  const Lock lock(mutex_);
  return holes_;
}

void FaultyFileSystem::DropCaches(std::optional<uint64_t> seed) {
  const Lock lock(mutex_);
  std::mt19937_64 random(seed.value_or(0));
  ForEachFile([&](Inode& file) {
    if (file.lost.empty()) return;
    std::erase_if(file.lost, [&](const Write&) { return !seed || random() % 2 == 0; });
    file.current = ViewOf(file);
  });
}

bool FaultyFileSystem::HasLost() {
  const Lock lock(mutex_);
  bool has_lost = false;
  ForEachFile([&](const Inode& file) { has_lost |= !file.lost.empty(); });
  return has_lost;
}

void FaultyFileSystem::ForEachFile(const std::function<void(Inode&)>& action) {
  std::vector<Inode*> left = {root_.get()};
  while (!left.empty()) {
    Inode& inode = *left.back();
    left.pop_back();
    if (!inode.is_directory) action(inode);
    for (const auto& [name, entry] : inode.entries) left.push_back(entry.get());
  }
}

void FaultyFileSystem::Stall(std::string path) {
  const Lock lock(mutex_);
  stalled_.push_back(std::move(path));
}

void FaultyFileSystem::Resume() {
  const Lock lock(mutex_);
  stalled_.clear();
  resumed_.notify_all();
}

void FaultyFileSystem::CutPowerBefore(uint64_t k) {
  const Lock lock(mutex_);
  power_until_ = k;
}

bool FaultyFileSystem::power_is_off() {
  const Lock lock(mutex_);
  return changes_ >= power_until_;
}

void FaultyFileSystem::Change(const std::string& path, const std::function<void(SparseBytes&)>& change) {
  const Lock lock(mutex_);
  const InodePtr inode = Find(path);
  CHECK(inode != nullptr && !inode->is_directory);
  CHECK(!inode->live);
  change(inode->current);
  inode->durable = inode->current;
  inode->pending.clear();
  inode->lost.clear();
}

void FaultyFileSystem::Begin(Operation operation, const char* verb, const std::string& path,
                             std::optional<uint64_t> offset) {
  const auto fail = [&](int error) {
    if (offset) ThrowErrno(verb, path, *offset, error);
    ThrowErrno(verb, path, error);
  };
  if (IsChange(operation) && changes_ >= power_until_) fail(ENODEV);
  changes_ += IsChange(operation);
  for (Fault& fault : faults_) {
    if (!Includes(fault.operation, operation) || path.find(fault.path) == std::string::npos || fault.countdown == 0)
      continue;
    if (--fault.countdown > 0) continue;
    if (fault.for_good) fault.countdown = 1;
    ++failed_;
    fail(fault.error);
  }
}

void FaultyFileSystem::BeginSync(Inode& file, const std::string& path, std::optional<uint64_t> offset) {
  try {
    Begin(Operation::kSync, "sync", path, offset);
  } catch (const Error&) {
    if (!power_is_off()) LosePending(file);
    throw;
  }
}

FaultyFileSystem::InodePtr FaultyFileSystem::Find(const std::string& path) const {
  InodePtr at = root_;
  for (const std::string& part : PartsOf(path)) {
    const auto entry = at->entries.find(part);
    if (entry == at->entries.end()) return nullptr;
    at = entry->second;
  }
  return at;
}

FaultyFileSystem::Inode& FaultyFileSystem::Directory(const char* verb, const std::string& path) const {
  const InodePtr inode = Find(path);
  if (!inode) ThrowErrno(verb, path, ENOENT);
  if (!inode->is_directory) ThrowErrno(verb, path, ENOTDIR);
  return *inode;
}

void FaultyFileSystem::ChangeEntries(Inode& directory, EntryChange change) {
  Apply(change, directory.entries);
  directory.pending_entries.push_back(std::move(change));
}

void FaultyFileSystem::Apply(const EntryChange& change, Entries& entries) {
  for (const auto& [name, inode] : change) {
    if (inode) {
      entries[name] = inode;
    } else {
      entries.erase(name);
    }
  }
}

bool FaultyFileSystem::IsInterrupted() {
  ++requests_;
  const bool interrupted = interrupt_every_ != 0 && requests_ % interrupt_every_ == 0;
  interrupted_ += interrupted;
  return interrupted;
}

// A whole number of sectors, so that pending writes stay at sector granularity.
size_t FaultyFileSystem::BytesTaken(size_t bytes) {
  const bool is_short = short_every_ != 0 && requests_ % short_every_ == 0;
  if (!is_short || bytes < 2 * kSectorBytes) return bytes;
  ++shortened_;
  return bytes / 2 / kSectorBytes * kSectorBytes;
}

bool FaultyFileSystem::IsStalled(const std::string& path) const {
  return std::any_of(stalled_.begin(), stalled_.end(),
                     [&](const std::string& part) { return path.find(part) != std::string::npos; });
}

void FaultyFileSystem::MakeDurable(Inode& file) {
  for (const Write& write : file.pending) {
    if (write.visible) Apply(write, file.durable);
  }
  file.pending.clear();
}

// Drops the writes that a failed sync was for. A write that had failed before is no page of the cache, and stays as it
// is.
void FaultyFileSystem::LosePending(Inode& file) {
  std::vector<Write> rest;
  bool lost_any = false, has_hole = false;
  const auto lose_some = [&](Write page) {
    const bool kept = fates_ && (*fates_)() % 2 == 0;
    has_hole |= kept && lost_any;
    lost_any |= !kept;
    if (kept) return Apply(page, file.durable);
    file.lost.push_back(std::move(page));
  };
  for (Write& write : file.pending) {
    if (!write.visible) {
      rest.push_back(std::move(write));
    } else if (!write.data) {
      lose_some(std::move(write));
    } else {
      ForEachPage(write, lose_some);
    }
  }
  file.pending = std::move(rest);
  holes_ += has_hole;
}

void FaultyFileSystem::Apply(const Write& write, SparseBytes& bytes) {
  if (write.data) {
    bytes.Write(write.offset, *write.data);
  } else {
    bytes.Resize(std::max(bytes.size(), write.offset));
  }
}

SparseBytes FaultyFileSystem::ViewOf(const Inode& file) {
  if (file.live) return file.current;
  SparseBytes view = file.durable;
  for (const auto* writes : {&file.lost, &file.pending}) {
    for (const Write& write : *writes) {
      if (write.visible) Apply(write, view);
    }
  }
  return view;
}

}  // namespace dbx
