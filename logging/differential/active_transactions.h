// The transactions that are being run, as a fuzzy checkpoint sees them: which have changes in which log, from which LSN
// on. A cache line per worker.
//
// A worker announces a transaction before it reserves the first place for it, and takes the word back once the place of
// its COMMIT or ABORT is filled. A reader that has loaded how far a log is reserved before it loads the words sees the
// word of each transaction that has a place below, unless that transaction has ended: the same argument as in
// log_stream.h.
//
// The log is in the lowest bits of the word, so no two transactions of a worker have the same: in one log the second
// begins behind the first one's end. A reader that finds the word unchanged has therefore read that transaction's id.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/host.h"
#include "base/types.h"
#include "logging/format.h"

namespace dbx {

class ActiveTransactions {
 public:
  explicit ActiveTransactions(uint32_t workers) : words_(workers) {}

  // Whether the LSNs of a run that begins here fit into the words; with half of them left.
  static constexpr bool HasRoomFor(Lsn begin) { return begin.value() < kLsnEnd / 2; }

  // --- by the worker ---

  // The next transaction; all earlier ones of the worker have ended.
  void Begin(uint32_t worker, TxnId id) {
    // Release: a thread that sees it finds the end records of the earlier ones filled.
    words_[worker].sequence.store(id.sequence(), std::memory_order_release);
  }
  // It is about to reserve its first place in `log`, at `first` or behind.
  void Announce(uint32_t worker, TxnId id, uint32_t log, Lsn first) {
    ASSERT(first.value() < kLsnEnd && log < format::kMaxLogs);
    // Release, both: a reader of this id sees that the word before it has gone, and a reader of the word sees the id.
    words_[worker].id.store(id.value, std::memory_order_release);
    words_[worker].word.store(first.value() << kLogBits | log, std::memory_order_release);
  }
  // Its ABORT has been filled; it may be tried again under the same id.
  void Abort(uint32_t worker) { words_[worker].word.store(kNone, std::memory_order_release); }
  // Its COMMIT has been filled. In this order: where a reader finds no word, EndedBelow says that it had ended.
  void Commit(uint32_t worker, TxnId id) {
    words_[worker].sequence.store(id.sequence() + 1, std::memory_order_release);
    words_[worker].word.store(kNone, std::memory_order_release);
  }

  // --- by any thread ---

  // Calls visit(TxnId, log, first) for each.
  void ForEach(auto&& visit) const {
    for (const Words& words : words_) {
      uint64_t word = words.word.load(std::memory_order_acquire);
      while (word != kNone) {
        const TxnId id{words.id.load(std::memory_order_acquire)};
        const uint64_t again = words.word.load(std::memory_order_acquire);
        if (again == word) {
          visit(id, static_cast<uint32_t>(word % format::kMaxLogs), Lsn(word >> kLogBits));
          break;
        }
        word = again;
      }
    }
  }
  // By worker: all of its transactions with lower sequence numbers have ended; and, where ForEach was called before,
  // all that had committed by then have lower ones.
  std::vector<uint64_t> EndedBelow() const {
    std::vector<uint64_t> sequences;
    for (const Words& words : words_) sequences.push_back(words.sequence.load(std::memory_order_acquire));
    return sequences;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  static constexpr int kLogBits = 4;
  static_assert(1 << kLogBits == format::kMaxLogs);
  static constexpr uint64_t kLsnEnd = uint64_t{1} << (64 - kLogBits - 1);

  struct alignas(kNoSharingBytes) Words {
    Atomic<uint64_t> word{kNone};
    Atomic<uint64_t> id{0};
    Atomic<uint64_t> sequence{0};
  };
  std::vector<Words> words_;  // by worker
};

}  // namespace dbx
