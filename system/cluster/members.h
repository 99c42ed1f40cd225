// The processes of a cluster as their parent sees them: forks them, talks to them, and sees which of them have died.
//
// A run outlives the death of a process as long as enough of its role are left:
//
//   died           left of its role       the run
//   lock process                          ends
//   Log Store      two                    goes on: what two have is durable
//                  fewer                  ends
//   Page Store     one or more            goes on: each has all pages
//                  none                   ends
//   master         one or more            goes on: another one undoes what it left unfinished
//                  none                   ends
//   any, with an error that is not I/O    ends, with the error's status: others would meet it, too
//
// Died is a process that a signal has ended, and one that has ended with an error: that of its disk, or that it has
// lost what it cannot be without.
//
// Threads: main's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "multi_master/network.h"
#include "system/cluster/child.h"
#include "system/cluster/children.h"
#include "system/cluster/cluster_result.h"

namespace dbx {

// The table above. `left`: of its role.
bool RunOutlives(mm::Role role, uint32_t left, std::optional<ExitStatus> failed_with);

class Member {
 public:
  Member(mm::NodeId node, const std::function<void(Channel&)>& body) : node_(node), child_(mm::NameOf(node), body) {}

  mm::NodeId node() const { return node_; }
  const std::string& name() const { return child_.name(); }
  bool is_there() const { return state_ == State::kThere; }

 private:
  friend class Members;
  enum class State : uint8_t { kThere, kEnded, kDied };  // kThere -> kEnded: as it was told; kThere -> kDied

  const mm::NodeId node_;
  Child child_;
  State state_ = State::kThere;  // as far as has been seen
  bool may_end_ = false;         // it was told to
  std::string why_killed_;       // by this process
};

class Members {
 public:
  // `directory`: of the logs, for errors. `on_death` is called for each death that the run outlives.
  Members(std::string directory, std::function<void(ProcessDeath& death)> on_death)
      : directory_(std::move(directory)), on_death_(std::move(on_death)) {}

  Member& Add(mm::NodeId node, const std::function<void(Channel&)>& body) { return members_.emplace_back(node, body); }
  // Takes their ports, and tells all the addresses: first those that serve masters, and masters begin when all serve.
  void Connect();
  // What the run is doing, for those that die.
  void SetPhase(const char* phase) { phase_ = phase; }

  // Those of a role that are there.
  std::vector<Member*> There(mm::Role role);
  // False: it is not there.
  bool Tell(Member& member, const std::string& word);
  void Tell(const std::vector<Member*>& members, const std::string& word) {
    for (Member* member : members) Tell(*member, word);
  }
  // Nothing: none came in time, or it is not there. Throws Error as Look.
  template <class T>
  std::optional<T> Receive(Member& member, std::chrono::milliseconds time) {
    std::optional<T> value;
    Use(member, [&](Channel& channel) { value = channel.ReceiveValue<T>(time); });
    return value;
  }
  std::optional<std::string> ReceiveText(Member& member, std::chrono::milliseconds time) {
    std::optional<std::string> text;
    Use(member, [&](Channel& channel) { text = channel.ReceiveText(time); });
    return text;
  }
  // Sees to those that have ended. Throws the Error that ends the run.
  void Look();
  // Tells it to end; it may send values before it does (Last), and is then waited for.
  void TellToEnd(Member& member);
  void AwaitEndOf(Member& member);
  void End(Member& member) {
    TellToEnd(member);
    AwaitEndOf(member);
  }
  // A value of one that was told to end. Nothing: it has died.
  template <class T>
  std::optional<T> Last(Member& member) {
    const std::optional<T> last = Receive<T>(member, kEndTime);
    if (member.is_there() && !last) DoesNotAnswer(member);
    return last;
  }
  // It may be stopped, or cut off: it ends now, and has died for this reason.
  void Kill(Member& member, const std::string& why);
  [[noreturn]] void DoesNotAnswer(const Member& member);

  std::deque<ProcessDeath>& deaths() { return deaths_; }

 private:
  static constexpr std::chrono::milliseconds kEndTime{20'000};

  // False: it is not there.
  bool Use(Member& member, const std::function<void(Channel&)>& use);
  // The next value of one that starts. Nothing: it has died.
  template <class T>
  std::optional<T> AwaitAtStart(Member& member) {
    std::optional<T> value;
    while (member.is_there() && !value) {
      value = Receive<T>(member, kPoll);
      Look();
      const std::chrono::nanoseconds waited(host::MonotonicNanos() - begin_nanos_);
      if (!value && waited > kStartTime) DoesNotAnswer(member);
    }
    return value;
  }
  void OnDeath(const Member& member);
  [[noreturn]] void EndRun(const Member& member, const Error& why);

  const std::string directory_;
  const std::function<void(ProcessDeath& death)> on_death_;
  const char* phase_ = "start";
  std::deque<Member> members_;
  uint64_t begin_nanos_ = 0;
  std::deque<ProcessDeath> deaths_;
};

}  // namespace dbx
