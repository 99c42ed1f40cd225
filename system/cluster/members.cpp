#include "system/cluster/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host.h"

namespace dbx {
namespace {

using std::chrono::milliseconds;

// Why a process that has ended did so, if not as it was told.
std::optional<Error> FailureOf(const Child& child, bool may_end) {
  const std::optional<Error> failure = child.Failure();
  if (failure || may_end) return failure;
  return Error(ExitStatus::kInternal, child.name() + " ended");
}

}  // namespace

bool RunOutlives(mm::Role role, uint32_t left, std::optional<ExitStatus> failed_with) {
  if (failed_with && *failed_with != ExitStatus::kIo) return false;
  switch (role) {
    case mm::Role::kLocks:
      return false;
    case mm::Role::kLogStore:
      return left >= 2;
    case mm::Role::kPageStore:
    case mm::Role::kMaster:
      return left >= 1;
  }
  return false;
}

void Members::Connect() {
  begin_nanos_ = host::MonotonicNanos();
  std::vector<Address> addresses;
  for (Member& member : members_) addresses.push_back({member.node(), AwaitAtStart<uint16_t>(member).value_or(0)});
  // A link to a process that does not serve yet is given up after a while, and a master whose link to the lock process
  // has broken has failed.
  for (const bool masters : {false, true}) {
    const auto for_each = [&](auto&& use) {
      for (Member& member : members_) {
        if ((member.node().role == mm::Role::kMaster) == masters) use(member);
      }
    };
    for_each([&](Member& member) {
      Use(member, [&](Channel& channel) { channel.Send(std::as_bytes(std::span(addresses))); });
    });
    for_each([&](Member& member) { AwaitAtStart<Started>(member); });
  }
  Tell(There(mm::Role::kMaster), kBegin);
}

std::vector<Member*> Members::There(mm::Role role) {
  std::vector<Member*> there;
  for (Member& member : members_) {
    if (member.is_there() && member.node().role == role) there.push_back(&member);
  }
  return there;
}

bool Members::Tell(Member& member, const std::string& word) {
  return Use(member, [&](Channel& channel) { channel.Send(word); });
}

bool Members::Use(Member& member, const std::function<void(Channel&)>& use) {
  if (!member.is_there()) return false;
  try {
    use(member.child_.channel());
    return true;
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kIo) throw;
  }
  // The channel is broken: it has ended, or is about to.
  if (!member.child_.Wait(kEndTime)) DoesNotAnswer(member);
  Look();
  return false;
}

void Members::Look() {
  std::vector<Member*> died;
  for (Member& member : members_) {
    if (!member.is_there() || !member.child_.Wait(milliseconds(0))) continue;
    const bool has_failed = FailureOf(member.child_, member.may_end_).has_value();
    member.state_ = has_failed ? Member::State::kDied : Member::State::kEnded;
    if (has_failed) died.push_back(&member);
  }
  // Others end when they miss one that was killed, and are not the reason.
  std::stable_partition(died.begin(), died.end(), [](Member* member) { return member->child_.WasKilled(); });
  for (Member* member : died) OnDeath(*member);
}

void Members::OnDeath(const Member& member) {
  const Error why = *FailureOf(member.child_, member.may_end_);
  const bool was_killed = member.child_.WasKilled();
  const auto left = std::ranges::count_if(members_, [&](const Member& other) {
    return other.node().role == member.node().role && other.state_ != Member::State::kDied;
  });
  if (!RunOutlives(member.node().role, static_cast<uint32_t>(left),
                   was_killed ? std::nullopt : std::optional(why.status()))) {
    EndRun(member, why);
  }
  ProcessDeath death;
  death.node = member.node();
  death.seconds = static_cast<double>(host::MonotonicNanos() - begin_nanos_) / 1e9;
  death.phase = phase_;
  death.how = member.why_killed_.empty() ? why.what() : member.why_killed_;
  deaths_.push_back(death);
  on_death_(deaths_.back());
}

void Members::EndRun(const Member& member, const Error& why) {
  std::string before;
  for (const ProcessDeath& death : deaths_) {
    if (death.node.role == member.node().role) before += (before.empty() ? "" : ", ") + mm::NameOf(death.node);
  }
  throw Error(why.status(),
              fmt::format("{}{}; all other processes of the cluster were ended, and its logs are in {}", why.what(),
                          before.empty() ? "" : " (lost before: " + before + ")", directory_));
}

void Members::DoesNotAnswer(const Member& member) {
  EndRun(member, Error(ExitStatus::kIo, member.name() + " does not answer"));
}

void Members::TellToEnd(Member& member) {
  member.may_end_ = true;
  Tell(member, kEndOfRun);
}

void Members::Kill(Member& member, const std::string& why) {
  member.why_killed_ = why;
  member.child_.Kill();
  AwaitEndOf(member);
}

void Members::AwaitEndOf(Member& member) {
  const uint64_t begin = host::MonotonicNanos();
  for (Look(); member.is_there(); Look()) {
    if (std::chrono::nanoseconds(host::MonotonicNanos() - begin) > kEndTime) {
      throw Error(ExitStatus::kInternal, member.name() + " did not end");
    }
    host::SleepFor(milliseconds(2));
  }
}

}  // namespace dbx
