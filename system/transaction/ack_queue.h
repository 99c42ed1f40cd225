// A worker's transactions that are pre-committed (locks released) and not yet acknowledged, oldest first: they wait for
// group commit.
//
// The worker runs further transactions while earlier ones harden; it acknowledges from the front once a commit point is
// durable. Acknowledging in order loses little: points of one worker become durable nearly in order, and the queue
// stays a ring. Owned by one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/types.h"
#include "logging/contract.h"

namespace dbx {

template <LogScheme Log>
class AckQueue {
 public:
  AckQueue(const Log& log, size_t capacity)
      : log_(log), stride_(kHeaderWords + log.point_words()), capacity_(capacity), words_(capacity * stride_) {}

  bool full() const { return count_ == capacity_; }
  bool empty() const { return count_ == 0; }

  using CommitPoint = typename Log::CommitPoint;

  // The commit point of the next transaction, to be set by it; nothing is queued until Push.
  CommitPoint NextPoint() {
    ASSERT(!full());
    return CommitPoint(words_.data() + tail_ * stride_ + kHeaderWords);
  }
  // `own_bytes`: of its records in the logs; 0: it wrote nothing.
  void Push(TxnId id, uint64_t own_bytes, uint64_t begin_ticks) {
    uint64_t* entry = &words_[tail_ * stride_];
    entry[0] = begin_ticks;
    entry[1] = id.value;
    entry[2] = own_bytes;
    tail_ = tail_ + 1 == capacity_ ? 0 : tail_ + 1;
    ++count_;
  }

  // acknowledge(TxnId, uint64_t own_bytes, uint64_t begin_ticks) for every transaction at the front that is durable.
  // True if there were any.
  template <class Acknowledge>
  bool Poll(Acknowledge&& acknowledge) {
    const size_t before = count_;
    while (count_ > 0) {
      uint64_t* entry = &words_[head_ * stride_];
      if (!log_.IsDurable(CommitPoint(entry + kHeaderWords))) break;
      acknowledge(TxnId{entry[1]}, entry[2], entry[0]);
      head_ = head_ + 1 == capacity_ ? 0 : head_ + 1;
      --count_;
    }
    return count_ != before;
  }

 private:
  static constexpr size_t kHeaderWords = 3;

  const Log& log_;
  const size_t stride_;
  const size_t capacity_;
  std::vector<uint64_t> words_;
  size_t head_ = 0;
  size_t tail_ = 0;
  size_t count_ = 0;
};

}  // namespace dbx
