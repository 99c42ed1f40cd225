#include "tests/simulation/model/virtual_cores.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <unordered_map>

#include "base/check.h"
#include "tests/fibres/exceptions.h"

namespace dbx::sim {
namespace {

// Times are in picoseconds inside, as a step may take a fraction of a nanosecond.
constexpr uint64_t kPicos = 1000;
constexpr uint64_t kBegin = 1'000'000'000 * kPicos;
constexpr uint64_t kEnd = 600'000'000'000 * kPicos;        // virtual: longer is an error
constexpr uint64_t kLatePicos = 4 * kSliceNanos * kPicos;  // waits for a core: goes before those that were just woken
constexpr size_t kStackBytes = 256 << 10;
constexpr uint64_t kStepsOfTurn = 1 << 16;
constexpr uint32_t kNone = UINT32_MAX;

using Context = boost::context::fiber;

enum class State : uint8_t { kQueued, kHasCore, kBlocked, kDone };

struct Node {
  bool is_timed = false;  // false: any number of cores, and no time
  uint64_t picos_per_step = 0;
  uint64_t nanos_per_log_kib = 0;
  uint32_t idle = 0;
  std::deque<FibreId> woken, used;  // that wait for a core; `used`: after a slice
  uint64_t busy_picos = 0, charged_picos = 0, steps = 0;

  bool HasQueue() const { return !woken.empty() || !used.empty(); }
};

struct Fibre {
  std::function<void()> body;
  Context context;
  fibres::ExceptionState exceptions;
  Group group = 0;
  State state = State::kQueued;
  uint64_t ready_at = 0;        // kQueued
  uint64_t core_since = 0;      // kHasCore
  uint64_t generation = 0;      // events of an older one are void
  const void* place = nullptr;  // kBlocked
  bool was_woken = false;
};

// Of a fibre that has a core: it goes on. Of one that is blocked: its time is up.
struct Event {
  uint64_t at;
  uint64_t number;  // in the order of their making
  FibreId fibre;
  uint64_t generation;

  bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
};

class Scheduler {
 public:
  explicit Scheduler(uint64_t seed) : random_(seed) {}

  Totals Run(std::function<void()> body) {
    Start([this, body = std::move(body)] {
      try {
        body();
      } catch (...) {
        error_ = std::current_exception();
      }
    });
    while (RunNext()) {
    }
    if (error_) std::rethrow_exception(error_);
    return {steps_, switches_};
  }

  void SetNode(Group group, const NodeShape& shape) {
    CHECK(shape.cores > 0);
    Node& node = NodeOf(group);
    node.is_timed = true;
    node.idle = shape.cores;
    node.nanos_per_log_kib = shape.nanos_per_log_kib;
    node.picos_per_step = static_cast<uint64_t>(shape.nanos_per_step * kPicos);
  }
  NodeUse UseOf(Group group) {
    CountSteps();
    const Node& node = NodeOf(group);
    return {node.busy_picos / kPicos, node.charged_picos / kPicos, node.steps};
  }

  FibreId Start(std::function<void()> body, std::optional<Group> group = {}) {
    CountSteps();
    auto fibre = std::make_unique<Fibre>();
    fibre->body = std::move(body);
    fibre->group = group ? *group : current_ == kNone ? 0 : Current().group;
    Fibre* const self = fibre.get();
    const auto id = static_cast<FibreId>(fibres_.size());
    fibre->context =
        Context(std::allocator_arg, boost::context::pooled_fixedsize_stack(stacks_), [this, self, id](Context&& loop) {
          loop_ = std::move(loop);
          self->body();
          CountSteps();
          self->state = State::kDone;
          ++self->generation;
          ++done_;
          WakeAll(self);
          LetCoreGo(NodeOf(self->group));
          return std::move(loop_);
        });
    fibres_.push_back(std::move(fibre));
    MakeReady(id, clock_);
    return id;
  }

  void OutOfSteps() {
    CountSteps();
    if (clock_ < turn_ends_at_) return BeginTurn();
    if (MustLeaveCore()) {
      GiveWay();
    } else {
      GoOnAt(current_, clock_);
    }
    SwitchToLoop();
  }

  void Yield(uint64_t nanos) {
    CountSteps();
    Add(nanos);
    if (NodeOf(Current().group).HasQueue()) {
      GiveWay();
    } else {
      GoOnAt(current_, clock_);
    }
    SwitchToLoop();
  }

  bool Block(const void* place, uint64_t nanos) {
    CountSteps();
    Fibre& me = Current();
    me.state = State::kBlocked;
    me.place = place;
    me.was_woken = false;
    ++me.generation;
    if (place != nullptr) waiting_[place].push_back(current_);
    if (nanos < kEnd / kPicos) Push(current_, clock_ + nanos * kPicos);
    LetCoreGo(NodeOf(me.group));
    SwitchToLoop();
    return me.was_woken;
  }

  void Wake(const void* place, bool all) {
    const auto found = waiting_.find(place);
    if (found == waiting_.end()) return;
    CountSteps();
    do {
      const FibreId id = found->second.front();
      found->second.pop_front();
      Unblock(id, clock_, true);
    } while (all && !found->second.empty());
    if (found->second.empty()) waiting_.erase(found);
  }
  void WakeAll(const void* place) { Wake(place, true); }

  void Charge(uint64_t nanos) {
    CountSteps();
    Add(nanos);
    if (clock_ >= turn_ends_at_) return OutOfSteps();
    CountTurn(NodeOf(Current().group));
  }

  void FollowLog(uint64_t bytes) { Charge(bytes * NodeOf(Current().group).nanos_per_log_kib / 1024); }

  bool IsDone(FibreId id) const { return fibres_[id]->state == State::kDone; }
  const void* PlaceOf(FibreId id) const { return fibres_[id].get(); }
  uint64_t NowNanos() {
    CountSteps();
    return clock_ / kPicos;
  }
  uint64_t Random() { return random_(); }

 private:
  Fibre& Current() { return *fibres_[current_]; }
  Node& NodeOf(Group group) {
    if (group >= nodes_.size()) nodes_.resize(group + 1);
    return nodes_[group];
  }

  void Add(uint64_t nanos) {
    Node& node = NodeOf(Current().group);
    clock_ += nanos * kPicos;
    node.charged_picos += nanos * kPicos;
    node.busy_picos += nanos * kPicos;
  }

  // The next event, on the thread's own stack. False when all fibres have ended.
  bool RunNext() {
    Event event;
    do {
      if (events_.empty()) return AreAllDone();
      event = events_.top();
      events_.pop();
    } while (fibres_[event.fibre]->generation != event.generation);
    if (event.at > kEnd) Abandon("no end after 600 virtual seconds");
    clock_ = event.at;
    Fibre& fibre = *fibres_[event.fibre];
    if (fibre.state == State::kBlocked) {
      if (fibre.place != nullptr) Forget(fibre.place, event.fibre);
      Unblock(event.fibre, event.at, false);
      return true;
    }
    switches_ += std::exchange(current_, event.fibre) != event.fibre;
    BeginTurn();
    fibres::Exchange(fibre.exceptions);
    fibre.context = std::move(fibre.context).resume();
    current_ = kNone;
    return true;
  }

  bool AreAllDone() {
    if (done_ < fibres_.size()) Abandon("every fibre waits for another one");
    return false;
  }
  [[noreturn]] void Abandon(const std::string& why) {
    // Their stacks hold objects that refer to each other: they are left where they are.
    auto* abandoned = new std::vector<std::unique_ptr<Fibre>>(std::move(fibres_));
    (void)abandoned;
    throw Stuck(why);
  }

  void SwitchToLoop() {
    Fibre& self = Current();
    fibres::Exchange(self.exceptions);
    loop_ = std::move(loop_).resume();
  }

  // Until the next event of another fibre, and a little longer.
  void BeginTurn() {
    const Node& node = NodeOf(Current().group);
    turn_ends_at_ = events_.empty() ? kEnd : events_.top().at + kSlackNanos * kPicos;
    if (node.HasQueue()) turn_ends_at_ = std::min(turn_ends_at_, LeavesCoreAt(node));
    CountTurn(node);
  }
  void CountTurn(const Node& node) {
    uint64_t steps = kStepsOfTurn;
    if (node.picos_per_step > 0) {
      const uint64_t left = turn_ends_at_ > clock_ ? turn_ends_at_ - clock_ : 0;
      steps = std::min(steps, left / node.picos_per_step);
    }
    turn_steps_ = steps_left = static_cast<int64_t>(steps);
  }

  // The seam's condition variable does so while it unlocks; then the fibre blocks.
  bool AreStepsSuspended() const { return steps_left > turn_steps_; }
  // What was counted down since the last time is time.
  void CountSteps() {
    if (current_ == kNone || AreStepsSuspended()) return;
    const auto used = static_cast<uint64_t>(turn_steps_ - steps_left);
    turn_steps_ = steps_left;
    steps_ += used;
    Node& node = NodeOf(Current().group);
    node.steps += used;
    if (!node.is_timed) return;
    clock_ += used * node.picos_per_step;
    node.busy_picos += used * node.picos_per_step;
  }

  uint64_t LeavesCoreAt(const Node& node) {
    return Current().core_since + (node.woken.empty() ? kSliceNanos : kWakeSliceNanos) * kPicos;
  }
  bool MustLeaveCore() {
    const Node& node = NodeOf(Current().group);
    return node.HasQueue() && clock_ >= LeavesCoreAt(node);
  }
  // To those that wait for a core; the current fibre waits behind them.
  void GiveWay() {
    Fibre& me = Current();
    me.state = State::kQueued;
    me.ready_at = clock_;
    ++me.generation;
    Node& node = NodeOf(me.group);
    LetCoreGo(node);
    if (node.idle > 0) return Occupy(node, current_, clock_);
    node.used.push_back(current_);
  }

  void LetCoreGo(Node& node) {
    if (!node.is_timed) return;
    if (!node.HasQueue()) {
      ++node.idle;
      return;
    }
    const bool is_late = !node.used.empty() && clock_ > fibres_[node.used.front()]->ready_at + kLatePicos;
    std::deque<FibreId>& queue = node.woken.empty() || is_late ? node.used : node.woken;
    const FibreId next = queue.front();
    queue.pop_front();
    fibres_[next]->core_since = std::max(clock_, fibres_[next]->ready_at);
    GoOnAt(next, fibres_[next]->core_since);
  }
  void Occupy(Node& node, FibreId id, uint64_t at) {
    if (node.is_timed) --node.idle;
    fibres_[id]->core_since = at;
    GoOnAt(id, at);
  }

  void MakeReady(FibreId id, uint64_t at) {
    Fibre& fibre = *fibres_[id];
    fibre.state = State::kQueued;
    fibre.ready_at = at;
    ++fibre.generation;
    Node& node = NodeOf(fibre.group);
    if (!node.is_timed || node.idle > 0) return Occupy(node, id, at);
    node.woken.push_back(id);
    // The current fibre may have to leave its core for it.
    if (current_ != kNone && Current().group == fibre.group && Current().state == State::kHasCore) {
      ShortenTurn(LeavesCoreAt(node));
    }
  }
  void Unblock(FibreId id, uint64_t at, bool was_woken) {
    fibres_[id]->place = nullptr;
    fibres_[id]->was_woken = was_woken;
    MakeReady(id, at);
  }
  void Forget(const void* place, FibreId id) {
    const auto found = waiting_.find(place);
    std::erase(found->second, id);
    if (found->second.empty()) waiting_.erase(found);
  }

  void GoOnAt(FibreId id, uint64_t at) {
    fibres_[id]->state = State::kHasCore;
    ++fibres_[id]->generation;
    Push(id, at);
  }
  void Push(FibreId id, uint64_t at) {
    events_.push({at, events_made_++, id, fibres_[id]->generation});
    if (current_ != kNone) ShortenTurn(at + kSlackNanos * kPicos);
  }
  void ShortenTurn(uint64_t at) {
    if (at >= turn_ends_at_ || AreStepsSuspended()) return;
    turn_ends_at_ = at;
    CountTurn(NodeOf(Current().group));
  }

  static inline boost::context::pooled_fixedsize_stack stacks_{kStackBytes};

  std::mt19937_64 random_;
  std::deque<Node> nodes_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::unordered_map<const void*, std::deque<FibreId>> waiting_;  // in the order in which they began
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t events_made_ = 0;
  Context loop_;
  uint32_t current_ = kNone;
  uint64_t clock_ = kBegin;
  uint64_t turn_ends_at_ = 0;
  int64_t turn_steps_ = 0;  // steps_left when clock_ was last brought up to date
  uint64_t steps_ = 0, switches_ = 0;
  size_t done_ = 0;
  std::exception_ptr error_;
};

Scheduler* scheduler = nullptr;

}  // namespace

Totals Simulate(const Plan& plan, std::function<void()> body) {
  Scheduler own(plan.seed);
  struct Reset {
    ~Reset() {
      scheduler = nullptr;
      steps_left = INT64_MAX;
    }
  } reset;
  scheduler = &own;
  return own.Run(std::move(body));
}

void SetNode(Group group, const NodeShape& shape) { scheduler->SetNode(group, shape); }
NodeUse UseOf(Group group) { return scheduler->UseOf(group); }
void Charge(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Charge(nanos);
}

bool WasAThreadRefused() { return false; }
bool Running() { return scheduler != nullptr; }
void OutOfSteps() {
  if (scheduler == nullptr) {
    steps_left = INT64_MAX;
  } else {
    scheduler->OutOfSteps();
  }
}
void AfterSteps(uint64_t, std::function<void()>) { CHECK(false); }
void KillGroup(Group) { CHECK(false); }
void YieldTurn(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Yield(nanos);
}
void SleepFor(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Block(nullptr, nanos);
}
uint64_t NowNanos() {
  // Before the first simulation the clock is calibrated: time passes with each look at it.
  static uint64_t outside = 1'000'000'000;
  return scheduler != nullptr ? scheduler->NowNanos() : outside += 1000;
}
uint64_t Random() {
  static std::mt19937_64 outside(1);
  return scheduler != nullptr ? scheduler->Random() : outside();
}
bool WakesSpuriously() { return false; }
void MayPause() {}
void FollowLog(uint64_t bytes) {
  if (scheduler != nullptr) scheduler->FollowLog(bytes);
}

FibreId StartFibre(std::function<void()> body) {
  if (scheduler != nullptr) return scheduler->Start(std::move(body));
  body();
  return 0;
}
FibreId StartGroup(Group group, std::function<void()> body) { return scheduler->Start(std::move(body), group); }
void JoinFibre(FibreId id) {
  while (scheduler != nullptr && !scheduler->IsDone(id)) scheduler->Block(scheduler->PlaceOf(id), kForever);
}
bool BlockOn(const void* place, uint64_t nanos) { return scheduler == nullptr || scheduler->Block(place, nanos); }
void WakeOne(const void* place) {
  if (scheduler != nullptr) scheduler->Wake(place, false);
}
void WakeAll(const void* place) {
  if (scheduler != nullptr) scheduler->WakeAll(place);
}

}  // namespace dbx::sim
