// A file system in memory that crashes as real ones may, for tests (models FileSystem).
//
// Only synced state is durable:
//   bytes      a write is pending, sector by sector, until a sync of its file that began after the write was complete
//   sizes      preallocation and growth are pending until the file is synced
//              where a file is rewritten, or a page of it written, in place a sector is old or new, never torn: devices
//              write sectors whole. A page has several: it may be torn
//              blocks that are freed are old or zeros, each sector by itself
//   memory     of a file that is mapped, a word of 8 bytes is old or new, until its line was written back and drained
//   entries    creation, renaming and removal of a name are pending until its directory is synced; a rename is one step
//
// Crash takes an image at any moment, while the run goes on: the durable part with a choice of the pending part, by
// policy and seed. An image is a value, cheap to copy, and a new FaultyFileSystem starts from it with everything in it
// durable, so that a recovery of an image can crash again. AfterKill gives the state after the end of the process
// alone: pending bytes stay pending, so that the power can fail after another process has read them.
//
// A StartWrite is complete, in the page cache, when Complete finds it; a stalled file's writes are not until Resume. A
// failed write or sync fails its device for good, as block_device.h says; of a failed write any part may have arrived.
// A failed sync is Linux's: the pages that it was to write are marked clean. Readers still see them, no later sync
// writes them, no crash makes them durable, and DropCaches discards them. Every operation on names can fail, too,
// look-ups included. Operations that change something are counted, and the power can be cut before the k-th: it and all
// later ones fail without effect.
//
// A lock holds as long as its holder keeps it; an image has none, as the processes that held them have ended.
//
// Threads: all functions are safe to call from any; one mutex guards all state. Nothing here sleeps; Complete(true) on
// a stalled file blocks until Resume.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "logging/device/file_system.h"
#include "tests/logging/device/sparse_bytes.h"

namespace dbx {

class FaultyFileSystem final : public FileSystem {
 public:
  static constexpr size_t kSectorBytes = 512;

  // What a crash does to pending state.
  enum class Crash {
    kDurableOnly,  // all of it is lost
    kAllPending,   // all of it arrived
    kSubset,       // any sector and any entry did or did not
    kReordered,    // any whole write and any entry did or did not, whatever their order was
    kTorn,         // every sector is old, new, zeroed or garbage; any entry did or did not arrive
    kTruncated,    // all of it arrived, but files end anywhere between their durable and their new size
  };
  static constexpr Crash kCrashes[] = {Crash::kDurableOnly, Crash::kAllPending, Crash::kSubset,
                                       Crash::kReordered,   Crash::kTorn,       Crash::kTruncated};

  enum class Operation {
    kMakeDirectory,
    kRemoveDirectory,
    kCreate,
    kRemove,
    kRename,
    kSyncDirectory,
    kAllocate,
    kWrite,
    kSync,
    kDiscard,
    kRead,
    // These change nothing.
    kList,
    kKindOf,
    kIdentityOf,
    kLock,
    kOpen,
    kDescribe,
    // For Fail: any of them but those that reach the bytes of a file (allocate, write, sync, discard,
    // read).
    kAnyOnNames
  };

  // The contents of a disk, by path. Empty: an empty file system.
  struct Image {
    std::vector<std::string> directories;
    std::map<std::string, SparseBytes> files;
  };

  bool drains_are_slow = false;  // as memory that is mapped says (storage/persistent_memory.h)

  FaultyFileSystem() : FaultyFileSystem(Image{}) {}
  explicit FaultyFileSystem(const Image& image);
  ~FaultyFileSystem() override;

  std::vector<std::string> List(const std::string& directory) override;
  Entry KindOf(const std::string& path) override;
  std::string IdentityOf(const std::string& directory) override;
  bool MakeDirectory(const std::string& path) override;
  void RemoveDirectory(const std::string& path) override;
  void Remove(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void SyncDirectory(const std::string& path) override;
  DirectoryLock LockDirectory(const std::string& path, LockKind kind) override;
  void Rewrite(const std::string& path, uint64_t from, uint64_t to) override;
  bool Discard(const std::string& path, uint64_t from, uint64_t to) override;
  std::unique_ptr<BlockDevice> Create(const std::string& path, const DeviceOptions& options) override;
  std::unique_ptr<PageFile> CreatePages(const std::string& path, bool durable) override;
  std::unique_ptr<PersistentMemory> MapPersistent(const std::string& path, const PersistentMapping& mapping) override;
  std::unique_ptr<BlockDevice> Open(const std::string& path) override;
  FileBytes Map(const std::string& path) override;
  DirectoryKind Describe(const std::string& directory, const DeviceOptions& options) override;

  // The image after a power loss now. The same seed and history give the same image.
  Image CrashImage(Crash crash, uint64_t seed = 0);
  // The image that readers see now, as if all of it were durable.
  Image VisibleImage();
  // The state after a kill of the process now, with the power on. A write in flight has arrived in the page cache or
  // never will. A copy: this one continues and keeps its planned faults and stalls.
  std::unique_ptr<FaultyFileSystem> AfterKill(uint64_t seed = 0);

  // The n-th operation of this kind from now (1: the next) fails with errno value `error`, on a file or directory
  // whose path contains `path`. Once; or for good, that one and all after it.
  void Fail(Operation operation, uint64_t nth, int error, bool for_good = false, std::string path = "");
  // How many of these faults have occurred.
  uint64_t failed_count();
  // Every n-th request of a write or a read stops half-way, every n-th is interrupted before it began. 0: none; 1 would
  // interrupt for ever.
  void Shorten(uint64_t every_nth) { short_every_ = every_nth; }
  void Interrupt(uint64_t every_nth) { interrupt_every_ = every_nth; }
  // How many of these have occurred.
  uint64_t shortened_count();
  uint64_t interrupted_count();
  // The processor writes back lines of mapped memory on its own: of each of `lines` lines, drawn at random, some words
  // are durable from now on.
  void EvictWords(uint64_t seed, size_t lines);
  // What a power failure would leave, at the least, of the word of mapped memory at this address. Nothing: it is no
  // such memory, or that of a private mapping.
  std::optional<uint64_t> DurableWordAt(const void* at);
  // Syncs succeed and do nothing, and so do drains.
  void LieAboutSyncs() { syncs_lie_ = true; }
  // Of the pages that a failing sync was for, some have become durable all the same, as on a device with several
  // requests in flight; the seed decides which. Without this, none has.
  void FailSyncsInPart(uint64_t seed) { fates_.emplace(seed); }
  // Whether readers see bytes that will never reach the disk.
  bool HasLost();
  // How often such a sync lost a page and kept one behind it.
  uint64_t hole_count();
  // The kernel reclaims the page cache: readers no longer see the pages that failed syncs have lost; with a seed, some
  // of them.
  void DropCaches(std::optional<uint64_t> seed = {});

  // Writes to files whose path contains `path` do not complete until Resume.
  void Stall(std::string path);
  void Resume();

  // The k-th operation that changes something (0: the first) and all after it fail with kIo.
  void CutPowerBefore(uint64_t k);
  bool power_is_off();

  // An action of another process just before the next lock is taken.
  void BeforeNextLock(std::function<void()> action) { before_next_lock_ = std::move(action); }
  // The same of the next rewrite.
  void BeforeNextRewrite(std::function<void()> action) { before_next_rewrite_ = std::move(action); }

  // Discard says that it cannot.
  void RefuseDiscards() { refuses_discards_ = true; }

  // Damage: changes a file silently and durably.
  void Change(const std::string& path, const std::function<void(SparseBytes&)>& change);

 private:
  class File;
  class Pages;
  class Memory;
  class MemoryWriter;
  struct Live;
  struct Inode;
  using InodePtr = std::shared_ptr<Inode>;
  // Names to inodes, as a change of a directory: null removes the name. A rename has two.
  using EntryChange = std::vector<std::pair<std::string, InodePtr>>;
  using Entries = std::map<std::string, InodePtr>;
  // A change of a file: data at an offset, or, without data, a size.
  struct Write {
    uint64_t offset = 0;
    std::shared_ptr<const std::vector<std::byte>> data;
    bool complete = true;   // in the page cache: a sync covers it
    bool visible = true;    // to readers; a write that failed is not
    bool in_place = false;  // over bytes that may be durable: each sector is old or new
  };
  struct Inode {
    bool is_directory = false;
    // A file's: the bytes that readers see, the durable ones, and the writes between them: lost to a failed sync, or
    // pending.
    SparseBytes current, durable;
    std::vector<Write> lost, pending;
    std::shared_ptr<Live> live;  // of a file that is or was mapped: what `current` is to others
    // A directory's.
    Entries entries, durable_entries;
    std::vector<EntryChange> pending_entries;
    std::weak_ptr<const void> shared_lock, exclusive_lock;  // expired: not held
  };
  struct Fault {
    Operation operation;
    uint64_t countdown;
    int error;
    bool for_good;
    std::string path;
  };

  using Lock = std::unique_lock<std::recursive_mutex>;

  // A word of mapped memory, unless a newer value of it is durable.
  static void MakeDurable(Inode& file, size_t at, uint64_t word, uint64_t moment);

  // Throws the fault that is due for this operation; counts it.
  void Begin(Operation operation, const char* verb, const std::string& path, std::optional<uint64_t> offset = {});
  // The same of a sync of `file`, which loses the pending writes if it fails.
  void BeginSync(Inode& file, const std::string& path, std::optional<uint64_t> offset = {});
  InodePtr Find(const std::string& path) const;
  Inode& Directory(const char* verb, const std::string& path) const;
  void ChangeEntries(Inode& directory, EntryChange change);
  static void Apply(const EntryChange& change, Entries& entries);
  // Whether the next request of a file is interrupted; if not, how many of its `bytes` it takes.
  bool IsInterrupted();
  size_t BytesTaken(size_t bytes);
  bool IsStalled(const std::string& path) const;
  static void MakeDurable(Inode& file);
  // A new, empty file and its entry, durable.
  InodePtr MakeFile(const std::string& path, uint64_t preallocate_bytes);
  void ForEachFile(const std::function<void(Inode&)>& action);
  void LosePending(Inode& file);
  static void Apply(const Write& write, SparseBytes& bytes);
  // The bytes of a file that readers see.
  static SparseBytes ViewOf(const Inode& file);
  // What was stored to a file as memory becomes what readers of it see.
  static void TakeStores(Inode& file);
  static std::shared_ptr<Live> CopyOf(const std::shared_ptr<Live>& live);
  // Of each word that was stored to and is not durable, by choice, the new value.
  static void ApplyWords(const Live& live, Crash crash, std::mt19937_64& random, SparseBytes& bytes);

  static void Collect(const Inode& directory, const std::string& path, Crash crash, std::mt19937_64& random,
                      Image& image);
  static void CollectVisible(const Inode& directory, const std::string& path, Image& image);
  static SparseBytes CrashedBytes(const Inode& file, Crash crash, std::mt19937_64& random);
  static InodePtr KilledCopy(const InodePtr& inode, std::mt19937_64& random, std::map<InodePtr, InodePtr>& copies);
  static void ApplySectors(const Write& write, Crash crash, std::mt19937_64& random, SparseBytes& bytes);

  std::recursive_mutex mutex_;
  std::condition_variable_any resumed_;
  InodePtr root_;
  std::vector<Fault> faults_;
  std::vector<std::string> stalled_;
  uint64_t changes_ = 0;
  uint64_t failed_ = 0;
  uint64_t power_until_ = UINT64_MAX;
  uint64_t requests_ = 0;
  uint64_t shortened_ = 0;
  uint64_t interrupted_ = 0;
  uint64_t short_every_ = 0;
  uint64_t interrupt_every_ = 0;
  bool syncs_lie_ = false;
  bool refuses_discards_ = false;
  std::optional<std::mt19937_64> fates_;  // of the writes of a failed sync
  uint64_t holes_ = 0;
  std::function<void()> before_next_lock_, before_next_rewrite_;
};

}  // namespace dbx
