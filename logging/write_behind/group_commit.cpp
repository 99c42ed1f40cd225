#include "logging/write_behind/group_commit.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/spin.h"

namespace dbx {

GroupCommit::GroupCommit(PersistentMemory& heap, GapLog& log, Atomic<uint64_t>& clock, uint32_t workers,
                         uint64_t window)
    : heap_(heap),
      log_(log),
      clock_(clock),
      window_(window),
      writer_(heap.NewWriter()),
      words_(workers),
      ends_(workers) {
  CHECK(log.newest().has_value() && log.newest()->last_sequences.size() == workers);
  for (uint32_t i = 0; i < workers; ++i) {
    of_.push_back(std::make_unique<OfWorker>());
    of_.back()->writer = heap.NewWriter();
  }
  Publish(*log.newest());
}

void GroupCommit::Flush(WorkerId worker) {
  OfWorker& own = *of_[worker.value()];
  const uint64_t end = own.dirty.end();
  own.dirty.WriteBackUntil(end, heap_.bytes().data(), *own.writer);
  own.writer->Drain();
  own.dirty.RemoveUntil(end);
}

void GroupCommit::AwaitLimit(Timestamp stamp) {
  for (LongWait wait; stamp.value() >= limit_.load(std::memory_order_acquire); wait.Wait()) Commit();
}

void GroupCommit::CommitUntilRoom(WorkerId worker) {
  for (LongWait wait; of_[worker.value()]->closed.full(); wait.Wait()) Commit();
}

bool GroupCommit::Commit() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  CommitNext([](GapRecord&) {});
  return true;
}

void GroupCommit::End(const std::optional<std::pair<uint64_t, uint64_t>>& digest) {
  const std::lock_guard lock(mutex_);
  CommitNext([&](GapRecord& record) {
    record.clean = true;
    record.digest = digest;
  });
}

void GroupCommit::CommitNext(auto&& finish) {
  if (failure_) std::rethrow_exception(failure_);
  try {
    // Sequentially consistent, in this order.
    const uint64_t group = collecting_.fetch_add(1) + 1;
    const uint64_t clock = clock_.load();
    for (size_t i = 0; i < of_.size(); ++i) words_[i] = of_[i]->word.load();
    // Before the dirty tuples are looked at: no slot has a stamp in a gap by then.
    const bool drop_gaps = drop_gaps_.load(std::memory_order_acquire);
    DrainDirty();
    GapRecord record = NextRecord(clock);
    if (drop_gaps) record.gaps.Clear();
    finish(record);
    log_.Append(record);
    Publish(record);
    done_.store(group, std::memory_order_release);
  } catch (...) {
    failure_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
    throw;
  }
}

void GroupCommit::DrainDirty() {
  for (size_t i = 0; i < of_.size(); ++i) {
    ends_[i] = of_[i]->dirty.end();
    of_[i]->dirty.WriteBackUntil(ends_[i], heap_.bytes().data(), *writer_);
  }
  writer_->Drain();
  for (size_t i = 0; i < of_.size(); ++i) of_[i]->dirty.RemoveUntil(ends_[i]);
}

GapRecord GroupCommit::NextRecord(uint64_t clock) {
  GapRecord record = *log_.newest();
  record.sequence += 1;
  uint64_t covered = clock;
  for (const uint64_t word : words_) {
    if (word != 0 && !IsStamp(word)) covered = std::min(covered, (word >> 1) - 1);
  }
  // A worker may announce a bound that it loaded long ago.
  record.c_p = std::max(record.c_p, covered);
  record.c_d = std::max(record.c_d, clock + window_ + 1);
  record.long_runners.clear();
  for (size_t i = 0; i < of_.size(); ++i) {
    const uint64_t stamp = IsStamp(words_[i]) ? words_[i] >> 1 : 0;
    if (stamp != 0 && stamp <= record.c_p) record.long_runners.push_back({stamp});
    record.last_sequences[i] = of_[i]->closed.RemoveUntil(record.c_p, stamp, record.last_sequences[i]);
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
