#include "multi_master/lock/lease.h"

#include <algorithm>
#include <mutex>

namespace dbx::mm {

LeaseRequest Lease::Request(uint64_t now_nanos, bool leaves) {
  last_ = LeaseNumber(last_.value() + 1);
  last_sent_nanos_ = now_nanos;
  asked_.emplace_back(last_, now_nanos);
  return {last_, leaves};
}

std::optional<LeaseRequest> Lease::NextRequest(uint64_t now_nanos) {
  const std::lock_guard latch(latch_);
  if (last_.value() > 0 && now_nanos < last_sent_nanos_ + terms_.request_nanos) return std::nullopt;
  return Request(now_nanos, false);
}

LeaseRequest Lease::Leave(uint64_t now_nanos) {
  const std::lock_guard latch(latch_);
  const LeaseRequest request = Request(now_nanos, true);
  leaving_ = request.number;
  return request;
}

void Lease::OnGrant(const LeaseGrant& grant) {
  const std::lock_guard latch(latch_);
  while (!asked_.empty() && asked_.front().first <= grant.number) {
    if (asked_.front().first == grant.number) {
      until_nanos_.store(asked_.front().second + terms_.use_nanos, std::memory_order_release);
    }
    asked_.pop_front();
  }
  if (leaving_.value() > 0 && grant.number == leaving_) has_left_.store(true, std::memory_order_release);
}

bool Leases::OnRequest(MasterId master, const LeaseRequest& request, uint64_t now_nanos) {
  Member& member = members_[master.value()];
  if (member.state != State::kSilent && member.state != State::kLiving) return false;
  member.state = request.leaves ? State::kLeft : State::kLiving;
  member.last_nanos = now_nanos;
  return true;
}

void Leases::OnLinkDown(MasterId master) {
  Member& member = members_[master.value()];
  if (member.state == State::kLiving) member.state = State::kCut;
}

bool Leases::MarkDead(MasterId master) {
  Member& member = members_[master.value()];
  if (member.state == State::kDead || member.state == State::kLeft) return false;
  member.state = State::kDead;
  return true;
}

std::vector<MasterId> Leases::Expired(uint64_t now_nanos) const {
  std::vector<MasterId> expired;
  for (uint8_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (member.state == State::kLeft || member.state == State::kDead) continue;
    const uint64_t term = member.state == State::kSilent ? terms_.start_nanos : terms_.dead_nanos;
    if (now_nanos >= member.last_nanos + term) expired.push_back(MasterId(i));
  }
  return expired;
}

std::optional<MasterId> Leases::FirstLiving() const {
  for (const State state : {State::kLiving, State::kSilent}) {
    for (uint8_t i = 0; i < members_.size(); ++i) {
      if (members_[i].state == state) return MasterId(i);
    }
  }
  return std::nullopt;
}

bool Leases::AllAreDead() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const Member& member) { return member.state == State::kDead; });
}

}  // namespace dbx::mm
