// A file system whose devices take their time, in the virtual time of a simulation: between a write and its sync other
// fibres run, logs overtake each other, and a crash finds writes under way. It has memory when the engine has none.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "logging/backup/anchor_file.h"
#include "logging/device/file_system.h"
#include "system/runs/log_directory.h"
#include "system/runs/row_anchor.h"
#include "tests/simulation/allocation.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {

class SlowFiles final : public FileSystem {
 public:
  // Each sync and each read takes up to `nanos_max`; one in `stall_one_in`, a hundred times as long.
  SlowFiles(FileSystem& files, uint64_t nanos_max, uint32_t stall_one_in)
      : files_(files), nanos_max_(nanos_max), stall_one_in_(stall_one_in) {}

  // From the n-th time on that a device is asked what is complete (1: the next), it says nothing new for so long.
  void StallAt(uint64_t nth, uint64_t nanos) {
    stall_at_ = nth;
    stall_nanos_ = nanos;
  }
  bool has_stalled() const { return stall_at_ != 0 && asked_ >= stall_at_; }

  // Called before each operation on names, before each rewrite or discard of a file by its name, and before each write
  // and sync of a file of pages, with what it is: "rename manifest", "sync of a directory", "write backup".
  std::function<void(const std::string&)> before_operation;

  // Only they may fail without harm: syncs right after the removal of a directory of theirs, and all once the manifest
  // is durable, when only removals are left to sync; and removals once the run is committed, as what is removed is not
  // needed and may come back; and reads and looks at names from then on, which are there to find what else may go.
  // Parts of a backup, files of rows, and their anchors, up to the new name, may find no space: the older ones stay. So
  // may the file system while it frees blocks, which are then freed later.
  uint64_t harmless_failures() const { return harmless_failures_; }

  std::vector<std::string> List(const std::string& directory) override {
    return LookingAt([&] { return files_.List(directory); });
  }
  Entry KindOf(const std::string& path) override {
    return LookingAt([&] { return files_.KindOf(path); });
  }
  std::string IdentityOf(const std::string& directory) override {
    return LookingAt([&] { return files_.IdentityOf(directory); });
  }
  bool MakeDirectory(const std::string& path) override {
    has_made_directory_ = true;
    return Operate("mkdir", "", [&] { return files_.MakeDirectory(path); });
  }
  void RemoveDirectory(const std::string& path) override {
    MayFail("rmdir", "", born_, [&] {
      files_.RemoveDirectory(path);
      removed_from_ = ParentDirectory(path);
    });
  }
  void Remove(const std::string& path) override {
    MayFail("remove", path, born_, [&] { files_.Remove(path); });
  }
  void Rename(const std::string& from, const std::string& to) override {
    Operate("rename", to, [&] { files_.Rename(from, to); });
    // The manifest of the run that is continued may be redone before.
    born_ |= has_made_directory_ && to.ends_with(std::string("/") + kManifestFileName);
  }
  void SyncDirectory(const std::string& path) override {
    const bool syncs_removal = path == std::exchange(removed_from_, "");
    MayFail("sync of a directory", "", syncs_removal || committed_, [&] { files_.SyncDirectory(path); });
    committed_ |= born_;
  }
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override {
    return LookingAt([&] { return files_.LockDirectory(path, kind); });
  }
  void Rewrite(const std::string& path, uint64_t from, uint64_t to) override {
    Operate("rewrite", path, [&] { files_.Rewrite(path, from, to); });
  }
  bool Discard(const std::string& path, uint64_t from, uint64_t to) override {
    return MayLackSpace(true, [&] { return Operate("discard", path, [&] { return files_.Discard(path, from, to); }); });
  }
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override {
    const bool of_checkpoint = path.ends_with("/" + TemporaryName(kAnchorFileName)) ||
                               path.ends_with("/" + TemporaryName(kRowAnchorFileName)) ||
                               path.find("/rows-") != std::string::npos;
    return MayLackSpace(of_checkpoint, [&] {
      return Operate("create", path,
                     [&] { return std::make_unique<Device>(*this, files_.Create(path, options), of_checkpoint); });
    });
  }
  std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) override {
    return MayLackSpace(true, [&] {
      return Operate("create", path, [&] { return std::make_unique<Pages>(*this, files_.CreatePages(path, durable)); });
    });
  }
  std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path, const PersistentMapping& mapping) override {
    return Operate("map", path, [&] { return std::make_unique<Memory>(*this, files_.MapPersistent(path, mapping)); });
  }
  std::unique_ptr<BlockDevice> Open(const std::string& path) override {
    return LookingAt([&] { return std::make_unique<Device>(*this, files_.Open(path), false); });
  }
  FileBytes Map(const std::string& path) override {
    return LookingAt([&] { return files_.Map(path); });
  }
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override {
    return LookingAt([&] { return files_.Describe(directory, options); });
  }

 private:
  // An operation that may fail, if `harmless`; it throws all the same.
  void MayFail(const char* verb, const std::string& path, bool harmless, auto&& operation) {
    try {
      Operate(verb, path, operation);
    } catch (const Error&) {
      harmless_failures_ += harmless;
      throw;
    }
  }

  // One that may fail for lack of space, if `harmless`.
  template <class Operation>
  std::invoke_result_t<Operation&> MayLackSpace(bool harmless, Operation&& operation) {
    try {
      return operation();
    } catch (const Error& error) {
      harmless_failures_ += harmless && error.status() == ExitStatus::kNoSpace;
      throw;
    }
  }

  class Device final : public BlockDevice {
   public:
    Device(SlowFiles& files, std::unique_ptr<BlockDevice> device, bool of_checkpoint)
        : files_(files), device_(std::move(device)), of_checkpoint_(of_checkpoint) {}
    void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
      Step();
      StartAtOnce(offset, data);
      Step();
    }
    uint64_t Complete(bool wait) override {
      if (files_.StallsNow()) stalled_until_ = NowNanos() + files_.stall_nanos_;
      if (wait) files_.Wait();
      if (wait) SleepFor(NanosStalled());
      if (NanosStalled() == 0) CompleteAtOnce(wait);
      Step();
      return end_;
    }
    size_t Read(uint64_t offset, std::span<std::byte> to) override {
      files_.Wait();
      const Exempt exempt;
      return files_.Reading([&] { return device_->Read(offset, to); });
    }
    uint64_t SizeBytes() override { return device_->SizeBytes(); }
    const std::string& path() const override { return device_->path(); }

   private:
    uint64_t NanosStalled() const {
      const uint64_t now = stalled_until_ == 0 ? 0 : NowNanos();
      return stalled_until_ - std::min(now, stalled_until_);
    }
    void StartAtOnce(uint64_t offset, std::span<const std::byte> data) {
      const Exempt exempt;
      if (!has_started_) end_ = offset;
      has_started_ = true;
      files_.MayLackSpace(of_checkpoint_, [&] { device_->StartWrite(offset, data); });
    }
    void CompleteAtOnce(bool wait) {
      const Exempt exempt;
      end_ = files_.MayLackSpace(of_checkpoint_, [&] { return device_->Complete(wait); });
    }

    SlowFiles& files_;
    std::unique_ptr<BlockDevice> device_;
    const bool of_checkpoint_;  // an anchor under its temporary name, or a file of rows
    bool has_started_ = false;
    uint64_t end_ = 0;  // of what is known to be complete
    uint64_t stalled_until_ = 0;
  };

  class Pages final : public PageFile {
   public:
    Pages(SlowFiles& files, std::unique_ptr<PageFile> pages) : files_(files), pages_(std::move(pages)) {}
    void WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
      AtOnce("write", [&] { pages_->WriteAt(offset, bytes); });
      Step();
    }
    void Sync() override {
      files_.Wait();
      AtOnce("sync", [&] { pages_->Sync(); });
      Step();
    }
    const std::string& path() const override { return pages_->path(); }

   private:
    void AtOnce(const char* verb, auto&& operation) {
      files_.MayLackSpace(true, [&] { files_.Operate(verb, pages_->path(), operation); });
    }

    SlowFiles& files_;
    std::unique_ptr<PageFile> pages_;
  };

  // Its stores take no time, as they are the processor's; a fibre may stop between them and what makes them durable.
  class Memory final : public PersistentMemory {
   public:
    Memory(SlowFiles& files, std::unique_ptr<PersistentMemory> memory) : files_(files), memory_(std::move(memory)) {}
    ~Memory() override {
      const Exempt exempt;
      memory_.reset();
    }
    std::span<std::byte> bytes() const override { return memory_->bytes(); }
    std::unique_ptr<PersistentWriter> NewWriter() override {
      return Exempted([&] { return std::make_unique<Writer>(files_, memory_->NewWriter()); });
    }
    std::string kind() const override { return memory_->kind(); }
    bool drains_are_slow() const override { return drains_are_slow_; }

   private:
    class Writer final : public PersistentWriter {
     public:
      Writer(const SlowFiles& files, std::unique_ptr<PersistentWriter> writer)
          : files_(files), writer_(std::move(writer)) {}
      void WriteBack(const std::byte* from, size_t bytes) override {
        Step();
        const Exempt exempt;
        writer_->WriteBack(from, bytes);
      }
      bool Stream(std::byte* to, const std::byte* from, size_t bytes) override {
        Step();
        const Exempt exempt;
        return writer_->Stream(to, from, bytes);
      }
      void Drain() override {
        files_.Wait();
        Step();
        Exempted([&] { return writer_->Drain(), true; });
        Step();
      }

     private:
      const SlowFiles& files_;
      const std::unique_ptr<PersistentWriter> writer_;
    };

    SlowFiles& files_;
    std::unique_ptr<PersistentMemory> memory_;
    const bool drains_are_slow_ = sim::Random() % 2 == 0;
  };

  // " log", " frozen", " checkpoint", ..., whatever its number and whether it is in its place yet; of a path that says
  // nothing, nothing.
  static std::string KindOfFile(const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.empty() ? "" : " " + name.substr(0, name.find_first_of("-."));
  }

  // An operation on names.
  template <class Operation>
  std::invoke_result_t<Operation&> Operate(const char* verb, const std::string& path, Operation&& operation) {
    Step();
    const Exempt exempt;
    if (before_operation) before_operation(verb + KindOfFile(path));
    return operation();
  }

  template <class Read>
  std::invoke_result_t<Read&> Reading(Read&& read) {
    try {
      return read();
    } catch (const Error&) {
      harmless_failures_ += born_;
      throw;
    }
  }

  // What changes nothing, and takes no time.
  template <class Look>
  std::invoke_result_t<Look&> LookingAt(Look&& look) {
    const Exempt exempt;
    return Reading(look);
  }

  bool StallsNow() { return ++asked_ == stall_at_; }

  void Wait() const {
    if (!Running()) return;
    uint64_t nanos = Random() % (nanos_max_ + 1);
    if (Random() % stall_one_in_ == 0) nanos *= 100;
    SleepFor(nanos);
  }

  FileSystem& files_;
  const uint64_t nanos_max_;
  const uint32_t stall_one_in_;
  uint64_t asked_ = 0;
  uint64_t stall_at_ = 0;  // 0: never
  uint64_t stall_nanos_ = 0;
  std::string removed_from_;
  bool has_made_directory_ = false;
  bool born_ = false;       // its manifest is in its place
  bool committed_ = false;  // durably
  uint64_t harmless_failures_ = 0;
};

}  // namespace dbx::sim
