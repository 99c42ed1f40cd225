// Commit points: what must be durable before a transaction is acknowledged, for each scheme. The queue of
// acknowledgements (system/transaction/ack_queue.h) stores a point as words, as many as the scheme's point_words()
// says; a CommitPoint is a typed view of these words. Owned by one worker.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dbx {

// Always durable.
class NoPoint {
 public:
  explicit NoPoint(uint64_t*) {}
};

// One strong integer: an Lsn, an Epoch, a Stamp.
template <class T>
class ScalarPoint {
 public:
  static constexpr size_t kWords = 1;
  explicit ScalarPoint(uint64_t* word) : word_(word) {}

  void Set(T value) const { *word_ = value.value(); }
  T value() const { return T(*word_); }

 private:
  uint64_t* word_;
};

// An LSN for each log, in the order of the logs.
class VectorPoint {
 public:
  explicit VectorPoint(uint64_t* lsns) : lsns_(lsns) {}

  uint64_t* lsns() const { return lsns_; }

 private:
  uint64_t* lsns_;
};

}  // namespace dbx
