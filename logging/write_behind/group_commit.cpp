#include "logging/write_behind/group_commit.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/spin.h"

namespace dbx {

GroupCommit::GroupCommit(PersistentMemory& heap, GapLog& log, Atomic<uint64_t>& clock, uint32_t workers,
                         uint64_t window)
    : heap_(heap), log_(log), clock_(clock), window_(window), words_(workers), writer_(heap.NewWriter()) {
  CHECK(log.newest().has_value());
  for (uint32_t i = 0; i < workers; ++i) {
    dirty_.push_back(std::make_unique<CachePadded<DirtyTuples>>());
    writers_.push_back(heap.NewWriter());
  }
  Publish(*log.newest());
}

void GroupCommit::Flush(WorkerId worker) {
  DirtyTuples& dirty = dirty_[worker.value()]->value;
  PersistentWriter& writer = *writers_[worker.value()];
  const uint64_t end = dirty.end();
  dirty.WriteBackUntil(end, heap_.bytes().data(), writer);
  writer.Drain();
  dirty.RemoveUntil(end);
}

void GroupCommit::AwaitLimit(Timestamp stamp) {
  for (LongWait wait; stamp.value() >= limit_.load(std::memory_order_acquire); wait.Wait()) Commit();
}

bool GroupCommit::Commit() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (failure_) std::rethrow_exception(failure_);
  try {
    CommitNext();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
  return true;
}

void GroupCommit::CommitNext() {
  // Sequentially consistent, in this order.
  const uint64_t group = collecting_.fetch_add(1) + 1;
  const uint64_t clock = clock_.load();
  std::vector<uint64_t> words;
  words.reserve(words_.size());
  for (const auto& word : words_) words.push_back(word.value.word.load());
  DrainDirty();
  const GapRecord record = NextRecord(clock, words);
  log_.Append(record);
  Publish(record);
  done_.store(group, std::memory_order_release);
}

void GroupCommit::DrainDirty() {
  std::vector<uint64_t> ends;
  ends.reserve(dirty_.size());
  for (const auto& dirty : dirty_) {
    ends.push_back(dirty->value.end());
    dirty->value.WriteBackUntil(ends.back(), heap_.bytes().data(), *writer_);
  }
  writer_->Drain();
  for (size_t i = 0; i < dirty_.size(); ++i) dirty_[i]->value.RemoveUntil(ends[i]);
}

GapRecord GroupCommit::NextRecord(uint64_t clock, const std::vector<uint64_t>& words) const {
  GapRecord record = *log_.newest();
  record.sequence += 1;
  uint64_t covered = clock;
  for (const uint64_t word : words) {
    if (word != 0 && (word & 1) == 0) covered = std::min(covered, (word >> 1) - 1);
  }
  // A worker may announce a bound that it loaded long ago.
  record.c_p = std::max(record.c_p, covered);
  record.c_d = std::max(record.c_d, clock + window_ + 1);
  record.long_runners.clear();
  for (const uint64_t word : words) {
    if ((word & 1) != 0 && word >> 1 <= record.c_p) record.long_runners.push_back({word >> 1});
  }
  return record;
}

void GroupCommit::Publish(const GapRecord& record) {
  uint64_t until = record.c_p;
  for (const LongRunner& runner : record.long_runners) until = std::min(until, runner.stamp - 1);
  limit_.store(record.c_d, std::memory_order_release);
  c_p_.store(record.c_p, std::memory_order_release);
  if (until > durable_until_.load(std::memory_order_relaxed)) durable_until_.store(until, std::memory_order_release);
}

}  // namespace dbx
