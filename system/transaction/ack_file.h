// A record of the acknowledged transactions that survives the process: a shared mapping of a file. The page cache keeps
// it through SIGKILL (not through a power failure), so a recovery can be checked for every one of them.
//
//   header    4096 bytes: what the file is, run id, workers, bits per worker, bytes of notes, checksum
//   writers   for each worker whole pages: bit s is set once transaction (worker, s) was acknowledged
//   readers   the same for read-only transactions
//   notes     for each worker whole pages, for the workload: those readers' read sets, before acknowledgement
//
// A read-only transaction leaves no record, so no recovery can show that it was there. But the versions that it saw
// must be there: its notes name them. The file is sparse: a region may be far larger than its used part.
// Threads: Acknowledge(id) belongs to one thread at a time for each id.worker(), normally the worker itself.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/host.h"
#include "base/types.h"

namespace dbx {

class AckFile {
 public:
  // For a run. Replaces an ack file of an earlier run; refuses to overwrite anything else (kMismatch). `max_sequence`
  // sequences from `first_sequence` on have a bit; each worker has `note_bytes` for notes, rounded up to whole pages.
  // Throws Error: kIo, kNoSpace, kUsage for a size that no file has.
  static std::unique_ptr<AckFile> Create(const std::string& path, uint64_t run_id, uint32_t workers,
                                         uint64_t max_sequence, uint64_t first_sequence = 0, uint64_t note_bytes = 0);
  // For recovery, read-only. Throws Error: kIo (missing, unreadable), kMismatch (no ack file, or of another run
  // than `run_id`), kCorrupt (header, size).
  static std::unique_ptr<AckFile> Open(const std::string& path, std::optional<uint64_t> run_id = std::nullopt);

  ~AckFile();
  AckFile(const AckFile&) = delete;
  AckFile& operator=(const AckFile&) = delete;

  // A load and a store: no other thread writes the region. Relaxed, as it is read only after the end of the process,
  // and the kernel keeps the stores.
  void Acknowledge(TxnId id, bool wrote = true) {
    // Below the first: wraps, and has no bit.
    const uint64_t sequence = id.sequence() - first_sequence_;
    if (id.worker().value() >= workers_ || sequence >= bits_per_worker_) return CountUnrecorded();
    AtomicRef<uint64_t> word(Words(RegionOf(id.worker().value(), wrote))[sequence / 64]);
    word.store(word.load(std::memory_order_relaxed) | uint64_t{1} << sequence % 64, std::memory_order_relaxed);
  }
  bool HasAcknowledgedReader(TxnId id) const {
    const uint64_t sequence = id.sequence() - first_sequence_;
    if (id.worker().value() >= workers_ || sequence >= bits_per_worker_) return false;
    return (Words(RegionOf(id.worker().value(), false))[sequence / 64] >> sequence % 64 & 1) != 0;
  }
  // Zeros where there is no note.
  std::span<std::byte> NotesOf(WorkerId worker) const {
    const size_t begin = kHeaderBytes + 2 * workers_ * (bits_per_worker_ / 8) + worker.value() * note_bytes_;
    return {memory_ + begin, note_bytes_};
  }

  // Visits the acknowledged writers in ascending order.
  template <class Visit>
  void ForEachAcknowledged(Visit&& visit) const {
    for (uint32_t worker = 0; worker < workers_; ++worker) {
      const uint64_t region = RegionOf(worker, true);
      const uint64_t* words = Words(region);
      for (uint64_t i = NextData(region, 0); i < bits_per_worker_ / 64; i = NextData(region, i + 1)) {
        for (uint64_t word = words[i]; word != 0; word &= word - 1) {
          visit(
              TxnId::Make(WorkerId(worker), first_sequence_ + i * 64 + static_cast<uint64_t>(std::countr_zero(word))));
        }
      }
    }
  }

  uint64_t run_id() const { return run_id_; }
  uint32_t workers() const { return workers_; }
  uint64_t bits_per_worker() const { return bits_per_worker_; }  // max_sequence, rounded up to whole pages
  // Acknowledged transactions for which the file has no bit. If not 0: the check does not cover them.
  uint64_t unrecorded() const;

 private:
  struct Header;
  AckFile() = default;

  Header& header() const { return *reinterpret_cast<Header*>(memory_); }
  // Those of all writers come before those of readers.
  uint64_t RegionOf(uint32_t worker, bool wrote) const { return wrote ? worker : uint64_t{workers_} + worker; }
  uint64_t* Words(uint64_t region) const {
    return reinterpret_cast<uint64_t*>(memory_ + kHeaderBytes + region * (bits_per_worker_ / 8));
  }
  // Names the emptied file by its header, makes it `bytes` long and maps it.
  void Lay(const void* header, size_t header_bytes, uint64_t bytes);
  void Map(bool writable);
  void CountUnrecorded();
  // The first word from `word` on that may hold bits: holes of the file, which read as zeros, are skipped.
  uint64_t NextData(uint64_t region_number, uint64_t word) const;

  static constexpr size_t kHeaderBytes = 4096;

  std::string path_;
  int fd_ = -1;
  std::byte* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  uint64_t run_id_ = 0;
  uint32_t workers_ = 0;
  uint64_t bits_per_worker_ = 0;
  uint64_t first_sequence_ = 0;
  uint64_t note_bytes_ = 0;  // per worker
};

}  // namespace dbx
