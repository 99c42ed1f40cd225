#include "tests/simulation/scheduler.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <system_error>

#include "base/check.h"
#include "tests/fibres/exceptions.h"
#include "tests/simulation/allocation.h"

namespace dbx::sim {
namespace {

constexpr uint64_t kNanosPerStep = 10;
constexpr uint64_t kNanosMax = 60'000'000'000;  // more: stuck; a run takes some hundred milliseconds
constexpr size_t kStackBytes = 256 << 10;

using Context = boost::context::fiber;

enum class State : uint8_t { kReady, kBlocked, kDone };

struct Fibre {
  std::function<void()> body;
  Context context;
  fibres::ExceptionState exceptions;
  bool woken = false;  // by WakeOne or WakeAll, not by the clock
  int64_t priority = 0;
  Group group = 0;
};

// Of a fibre, what is looked at whenever another one goes on: all of them lie side by side.
struct Status {
  const void* place = nullptr;  // kBlocked: on what
  uint64_t wake_at = kForever;  // kBlocked: until when at most
  State state = State::kReady;

  bool BlocksOn(const void* other) const { return state == State::kBlocked && place == other; }
};

struct Alarm {
  uint64_t step;
  std::function<void()> action;
};

class Scheduler {
 public:
  explicit Scheduler(const Plan& plan) : plan_(plan), random_(plan.seed) {
    for (uint32_t i = 0; plan.policy == Policy::kPriority && i < plan.priority_changes; ++i) {
      changes_.push_back(random_() % std::max<uint64_t>(plan.steps_expected, 1));
    }
    std::sort(changes_.rbegin(), changes_.rend());
  }

  Totals Run(std::function<void()> body) {
    Start([this, body = std::move(body)] {
      try {
        body();
      } catch (...) {
        error_ = std::current_exception();
      }
    });
    current_ = 0;
    NewTurn();
    while (Resume()) {
    }
    if (error_) std::rethrow_exception(error_);
    return {steps_, switches_};
  }

  // The first fibre is the body's.
  bool HasThreads() const { return fibres_.size() <= plan_.threads_max; }

  FibreId Start(std::function<void()> body, std::optional<Group> group = {}) {
    const Exempt exempt;
    auto fibre = std::make_unique<Fibre>();
    fibre->body = std::move(body);
    fibre->group = group ? *group : current_ == kNobody ? 0 : Current().group;
    fibre->priority = static_cast<int64_t>(random_() >> 2);
    Fibre* const self = fibre.get();
    const auto id = static_cast<FibreId>(fibres_.size());
    fibre->context =
        Context(std::allocator_arg, boost::context::pooled_fixedsize_stack(stacks_), [this, self, id](Context&& loop) {
          loop_ = std::move(loop);
          self->body();
          status_[id].state = State::kDone;
          WakeAll(self);
          Choose();
          return std::move(loop_);
        });
    fibres_.push_back(std::move(fibre));
    status_.emplace_back();
    return id;
  }

  void Kill(Group group) {
    const Exempt exempt;
    CHECK(in_alarm_ || current_ == kNobody || Current().group != group);
    for (size_t i = 0; i < fibres_.size(); ++i) {
      std::unique_ptr<Fibre>& fibre = fibres_[i];
      if (fibre->group != group || status_[i].state == State::kDone) continue;
      // Its stack holds objects that refer to each other: it is left where it is.
      Fibre* const abandoned = fibre.release();
      fibre = std::make_unique<Fibre>();
      fibre->group = group;
      status_[i].state = State::kDone;
      WakeAll(abandoned);
    }
  }

  // The current fibre's turn is over, whether it can go on or not.
  void EndTurn() {
    const uint32_t before = current_;
    Choose();
    if (current_ == before) return;
    ++switches_;
    SwitchToLoop(*fibres_[before]);
  }

  void OutOfSteps() {
    CountSteps();
    if (!alarms_.empty() && alarms_.back().step <= steps_) {
      SwitchToLoop(Current());  // the loop sees to the alarms and comes back
      NewTurn();
      return;
    }
    if (!changes_.empty() && changes_.back() <= steps_) {
      changes_.pop_back();
      Current().priority = --lowest_priority_;
    }
    CheckThatItEnds();
    EndTurn();
    NewTurn();
  }

  void Yield(uint64_t nanos) {
    CountSteps();
    now_ += nanos;
    Current().priority = --lowest_priority_;
    // A fibre that waits in a loop while all others sleep must let time pass.
    if (ReadyCount() == 1) now_ = std::max(now_, NextWakeTime() == kForever ? now_ : NextWakeTime());
    ++steps_;
    CheckThatItEnds();
    EndTurn();
    NewTurn();
  }

  bool Block(const void* place, uint64_t nanos) {
    CountSteps();
    CheckThatItEnds();
    Fibre& me = Current();
    status_[current_] = {place, nanos >= kForever - now_ ? kForever : now_ + nanos, State::kBlocked};
    me.woken = false;
    EndTurn();
    NewTurn();
    return me.woken;
  }

  void WakeOne(const void* place) {
    const Exempt exempt;
    std::vector<FibreId> waiting;
    for (FibreId i = 0; i < status_.size(); ++i) {
      if (status_[i].BlocksOn(place)) waiting.push_back(i);
    }
    if (!waiting.empty()) MakeReady(waiting[random_() % waiting.size()], true);
  }
  void WakeAll(const void* place) {
    for (FibreId i = 0; i < status_.size(); ++i) {
      if (status_[i].BlocksOn(place)) MakeReady(i, true);
    }
  }

  void AfterSteps(uint64_t steps, std::function<void()> action) {
    const Exempt exempt;
    CountSteps();
    alarms_.push_back({steps_ + steps, std::move(action)});
    std::sort(alarms_.begin(), alarms_.end(), [](const Alarm& a, const Alarm& b) { return a.step > b.step; });
    steps_left = std::min(steps_left, static_cast<int64_t>(steps));
    turn_steps_ = steps_left;
  }

  bool IsDone(FibreId id) const { return status_[id].state == State::kDone; }
  const void* PlaceOf(FibreId id) const { return fibres_[id].get(); }

  uint64_t Now() {
    CountSteps();
    now_ += kNanosPerStep;
    return now_;
  }
  bool WakesSpuriously() { return plan_.spurious_wakes && random_() % 8 == 0; }
  bool WorkersPause() { return plan_.workers_pause && random_() % 4 == 0; }
  uint64_t Random() { return random_(); }

 private:
  Fibre& Current() { return *fibres_[current_]; }

  // One visit of the loop, which runs on the thread's own stack. False when all fibres have ended.
  bool Resume() {
    RunAlarms();
    if (current_ != kNobody && status_[current_].state == State::kDone) ReplaceKilled();
    if (!stuck_.empty()) Abandon();
    if (current_ == kNobody) return false;
    Fibre& fibre = Current();
    fibres::Exchange(fibre.exceptions);
    fibre.context = std::move(fibre.context).resume();
    return true;
  }

  // An action has killed the fibre that would go on.
  void ReplaceKilled() {
    const auto waits = [](const Status& fibre) { return fibre.state == State::kBlocked; };
    if (ReadyCount() == 0 && NextWakeTime() == kForever && std::any_of(status_.begin(), status_.end(), waits)) {
      stuck_ = "every fibre that was not killed waits for another one";
      return;
    }
    Choose();
    NewTurn();
  }

  void SwitchToLoop(Fibre& self) {
    fibres::Exchange(self.exceptions);
    loop_ = std::move(loop_).resume();
  }

  void RunAlarms() {
    const Exempt exempt;
    while (!alarms_.empty() && alarms_.back().step <= steps_) {
      const Alarm alarm = std::move(alarms_.back());
      alarms_.pop_back();
      const int64_t left = std::exchange(steps_left, INT64_MAX);
      in_alarm_ = true;
      alarm.action();
      in_alarm_ = false;
      steps_left = left;
    }
  }

  void CountSteps() {
    const int64_t used = turn_steps_ - steps_left;
    steps_ += static_cast<uint64_t>(used);
    now_ += static_cast<uint64_t>(used) * kNanosPerStep;
    turn_steps_ = steps_left;
  }

  void NewTurn() {
    uint64_t turn = plan_.steps_max;
    if (plan_.policy == Policy::kRandom) {
      turn = random_() % (2 * std::max<uint32_t>(plan_.steps_per_turn, 1));
    } else if (!changes_.empty()) {
      turn = changes_.back() > steps_ ? changes_.back() - steps_ : 0;
    }
    if (!alarms_.empty()) turn = std::min(turn, alarms_.back().step > steps_ ? alarms_.back().step - steps_ : 0);
    turn_steps_ = steps_left = static_cast<int64_t>(std::min<uint64_t>(turn, 1 << 16));
  }

  void Choose() {
    const Exempt exempt;
    for (;;) {
      ready_.clear();
      bool all_done = true;
      uint64_t next = kForever;
      for (FibreId i = 0; i < status_.size(); ++i) {
        const Status& fibre = status_[i];
        if (fibre.state == State::kDone) continue;
        all_done = false;
        if (fibre.state == State::kBlocked && fibre.wake_at <= now_) MakeReady(i, false);
        if (fibre.state == State::kReady) {
          ready_.push_back(i);
        } else {
          next = std::min(next, fibre.wake_at);
        }
      }
      if (all_done) {
        current_ = kNobody;
        return;
      }
      if (!ready_.empty()) break;
      if (next == kForever) ThrowStuck("every fibre waits for another one");
      now_ = std::max(now_, next);
    }
    current_ = plan_.policy == Policy::kRandom
                   ? ready_[random_() % ready_.size()]
                   : *std::max_element(ready_.begin(), ready_.end(), [&](uint32_t a, uint32_t b) {
                       return fibres_[a]->priority < fibres_[b]->priority;
                     });
  }

  size_t ReadyCount() const {
    return static_cast<size_t>(
        std::count_if(status_.begin(), status_.end(), [](const Status& of) { return of.state == State::kReady; }));
  }

  uint64_t NextWakeTime() const {
    uint64_t next = kForever;
    for (const Status& fibre : status_) {
      if (fibre.state == State::kBlocked) next = std::min(next, fibre.wake_at);
    }
    return next;
  }

  void MakeReady(FibreId id, bool woken) {
    status_[id] = {};
    fibres_[id]->woken = woken;
  }

  // A fibre that only sleeps and looks again makes few steps, but time passes.
  void CheckThatItEnds() {
    if (steps_ > plan_.steps_max || now_ > kNanosMax) {
      ThrowStuck("no end after " + std::to_string(steps_) + " steps, " + std::to_string(now_ / 1'000'000) + " ms");
    }
  }

  // Within a fibre: the loop throws, on its own stack.
  void ThrowStuck(const std::string& why) {
    stuck_ = why + ":";
    for (size_t i = 0; i < fibres_.size(); ++i) {
      const Status& fibre = status_[i];
      if (fibre.state == State::kDone) continue;
      stuck_ += " fibre " + std::to_string(i) +
                (fibre.state == State::kReady ? " runs;"
                 : fibre.wake_at != kForever  ? " sleeps;"
                                              : " waits;");
    }
    SwitchToLoop(Current());
    std::abort();
  }

  [[noreturn]] void Abandon() {
    // The fibres' stacks hold objects that refer to each other: they are left where they are.
    auto* abandoned = new std::vector<std::unique_ptr<Fibre>>(std::move(fibres_));
    (void)abandoned;
    throw Stuck(stuck_);
  }

  static constexpr uint32_t kNobody = UINT32_MAX;
  static inline boost::context::pooled_fixedsize_stack stacks_{kStackBytes};

  const Plan plan_;
  std::mt19937_64 random_;
  std::vector<Alarm> alarms_;      // the next one last
  std::vector<uint64_t> changes_;  // steps, the next one last
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<Status> status_;  // of fibres_
  std::vector<uint32_t> ready_;
  Context loop_;
  uint32_t current_ = kNobody;
  uint64_t now_ = 1'000'000'000;
  uint64_t steps_ = 0;
  uint64_t switches_ = 0;
  int64_t turn_steps_ = 0;  // steps_left when steps_ and now_ were last brought up to date
  int64_t lowest_priority_ = 0;
  bool in_alarm_ = false;
  std::string stuck_;
  std::exception_ptr error_;
};

Scheduler* scheduler = nullptr;
bool was_a_thread_refused = false;

}  // namespace

Totals Simulate(const Plan& plan, std::function<void()> body) {
  Scheduler own(plan);
  struct Reset {
    ~Reset() {
      scheduler = nullptr;
      steps_left = INT64_MAX;
    }
  } reset;
  scheduler = &own;
  was_a_thread_refused = false;
  return own.Run(std::move(body));
}

bool WasAThreadRefused() { return was_a_thread_refused; }

bool Running() { return scheduler != nullptr; }
void OutOfSteps() {
  if (scheduler == nullptr) {
    steps_left = INT64_MAX;
  } else {
    scheduler->OutOfSteps();
  }
}
void AfterSteps(uint64_t steps, std::function<void()> action) { scheduler->AfterSteps(steps, std::move(action)); }
void YieldTurn(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Yield(nanos);
}
void SleepFor(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Block(nullptr, nanos);
}
uint64_t NowNanos() {
  // Before the first simulation the clock is calibrated: time passes with each look at it.
  static uint64_t outside = 1'000'000'000;
  return scheduler != nullptr ? scheduler->Now() : outside += 1000;
}
uint64_t Random() {
  static std::mt19937_64 outside(1);
  return scheduler != nullptr ? scheduler->Random() : outside();
}
bool WakesSpuriously() { return scheduler != nullptr && scheduler->WakesSpuriously(); }

void MayPause() {
  if (scheduler != nullptr && scheduler->WorkersPause()) SleepFor(Random() % 100'000);
}

void FollowLog(uint64_t) {}

FibreId StartFibre(std::function<void()> body) {
  if (scheduler != nullptr && !scheduler->HasThreads()) {
    was_a_thread_refused = true;
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
  if (scheduler != nullptr) return scheduler->Start(std::move(body));
  body();
  return 0;
}
FibreId StartGroup(Group group, std::function<void()> body) { return scheduler->Start(std::move(body), group); }
void KillGroup(Group group) { scheduler->Kill(group); }
void JoinFibre(FibreId id) {
  while (scheduler != nullptr && !scheduler->IsDone(id)) scheduler->Block(scheduler->PlaceOf(id), kForever);
}
bool BlockOn(const void* place, uint64_t nanos) { return scheduler == nullptr || scheduler->Block(place, nanos); }
void WakeOne(const void* place) {
  if (scheduler != nullptr) scheduler->WakeOne(place);
}
void WakeAll(const void* place) {
  if (scheduler != nullptr) scheduler->WakeAll(place);
}

}  // namespace dbx::sim
