#include "multi_master/master/strict_reads.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {

StrictReads::StrictReads(MasterId self, uint32_t masters, const MasterLog& log, Ask ask)
    : self_(self), masters_(masters), log_(log), ask_(std::move(ask)) {
  CHECK(masters <= kMastersMax);
  for (uint32_t i = 0; i < masters; ++i) is_member_[i] = i != self.value();
}

void StrictReads::Await() {
  std::unique_lock latch(latch_);
  // The answers of a round that is under way may be older than this call.
  const uint64_t round = begun_ + 1;
  wanted_ = std::max(wanted_, round);
  if (begun_ == completed_) {
    BeginRound();
    EndRounds();
  }
  while (completed_ < round && !stopped_) {
    const bool in_time = changed_.wait_for(latch, kAskAgain, [&] { return completed_ >= round || stopped_; });
    if (!in_time) AskRest();
  }
  const VsVector bound = bound_;
  changed_.wait(latch, [&] { return stopped_ || log_.applied().Covers(bound); });
  if (stopped_) throw Error(ExitStatus::kIo, "master " + std::to_string(self_.value()) + " has stopped");
}

void StrictReads::BeginRound() {
  ++begun_;
  is_awaited_ = is_member_;
  AskRest();
}

void StrictReads::EndRounds() {
  while (completed_ < begun_ && std::ranges::find(is_awaited_, true) == is_awaited_.end()) {
    completed_ = begun_;
    bound_ = answers_;
    changed_.notify_all();
    if (wanted_ > begun_) BeginRound();
  }
}

void StrictReads::AskRest() {
  for (uint8_t i = 0; i < kMastersMax; ++i) {
    if (is_awaited_[i]) ask_(MasterId(i), {begun_});
  }
}

bool StrictReads::OnAnswer(MasterId from, const StrictAnswer& answer) {
  const std::lock_guard latch(latch_);
  if (from.value() >= masters_ || from == self_ || answer.round > begun_) return false;
  // An older round, or a question that was sent twice.
  if (answer.round != begun_ || !is_awaited_[from.value()]) return true;
  answers_.RaiseTo(from, answer.durable);
  is_awaited_[from.value()] = false;
  EndRounds();
  return true;
}

void StrictReads::OnApplied() {
  const std::lock_guard latch(latch_);
  changed_.notify_all();
}

void StrictReads::OnMasterDead(MasterId master, VsTime log_end) {
  const std::lock_guard latch(latch_);
  is_member_[master.value()] = false;
  is_awaited_[master.value()] = false;
  answers_.RaiseTo(master, log_end);
  EndRounds();
}

void StrictReads::Stop() {
  const std::lock_guard latch(latch_);
  stopped_ = true;
  changed_.notify_all();
}

uint64_t StrictReads::rounds() const {
  const std::lock_guard latch(latch_);
  return completed_;
}

}  // namespace dbx::mm
