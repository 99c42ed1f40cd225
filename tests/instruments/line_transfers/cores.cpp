#include "tests/instruments/line_transfers/cores.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/fibres/exceptions.h"
#include "tests/instruments/line_transfers/coherence.h"

namespace dbx::lines {
namespace {

constexpr uint64_t kPicosPerNano = 1000;
constexpr size_t kStackBytes = size_t{1} << 20;
// A fibre that wakes up takes the core of one that has used this much more time.
constexpr uint64_t kPreemptPicos = 1'000'000 * kPicosPerNano;

using Context = boost::context::fiber;

constexpr uint32_t kNone = UINT32_MAX;

struct Fibre {
  // kReady -> kRunning -> kReady (it lost its core), kBlocked (-> kReady) or kDone.
  enum class State : uint8_t { kReady, kRunning, kBlocked, kDone };

  std::function<void()> body;
  Context context;
  fibres::ExceptionState exceptions;
  State state = State::kReady;
  const void* place = nullptr;  // kBlocked: on what
  uint64_t ready_at = 0;        // kReady: since when; kBlocked: until when at most
  uint64_t used = 0;            // picoseconds on cores
  uint64_t queued = 0;          // kReady: its turn in the queue
  uint32_t core = kNone;        // the last one
};

struct Core {
  uint64_t clock = 0;
  uint64_t since = 0;  // that its fibre runs
  uint32_t fibre = kNone;
};

class Scheduler {
 public:
  explicit Scheduler(const CoresPlan& plan)
      : plan_(plan), cores_(plan.cores == 0 ? kCoresMax : std::min(plan.cores, kCoresMax)) {}

  void Run(std::function<void()> body) {
    Start([this, body = std::move(body)] {
      try {
        body();
      } catch (...) {
        error_ = std::current_exception();
      }
    });
    while (Choose()) Resume();
    if (!stuck_.empty()) Abandon();
    if (error_) std::rethrow_exception(error_);
  }

  FibreId Start(std::function<void()> body) {
    auto fibre = std::make_unique<Fibre>();
    fibre->body = std::move(body);
    fibre->ready_at = clock_picos;
    fibre->queued = ++queued_;
    Fibre* const self = fibre.get();
    fibre->context =
        Context(std::allocator_arg, boost::context::fixedsize_stack(kStackBytes), [this, self](Context&& loop) {
          loop_ = std::move(loop);
          self->body();
          LeaveCore(Fibre::State::kDone);
          WakeAll(self);
          return std::move(loop_);
        });
    fibres_.push_back(std::move(fibre));
    NoteChange();
    return static_cast<FibreId>(fibres_.size() - 1);
  }

  void LoseTurn() { SwitchToLoop(); }

  void Yield(uint64_t nanos) {
    Advance(nanos * kPicosPerNano);
    const bool is_wanted =
        std::any_of(fibres_.begin(), fibres_.end(), [](const auto& f) { return f->state == Fibre::State::kReady; });
    if (is_wanted) LeaveCore(Fibre::State::kReady);
    SwitchToLoop();
  }

  void Block(const void* place, uint64_t nanos) {
    Fibre& me = Current();
    me.place = place;
    const bool ends = nanos < (kForever - clock_picos) / kPicosPerNano;
    const uint64_t until = ends ? clock_picos + nanos * kPicosPerNano : kForever;
    LeaveCore(Fibre::State::kBlocked);
    me.ready_at = until;
    SwitchToLoop();
  }

  bool Wake(const void* place, bool all) {
    bool found = false;
    for (const auto& fibre : fibres_) {
      if (fibre->state != Fibre::State::kBlocked || fibre->place != place) continue;
      MakeReady(*fibre, clock_picos);
      found = true;
      if (!all) break;
    }
    return found;
  }
  bool WakeAll(const void* place) { return Wake(place, true); }

  bool IsDone(FibreId id) const { return fibres_[id]->state == Fibre::State::kDone; }
  const void* PlaceOf(FibreId id) const { return fibres_[id].get(); }
  uint32_t current_core() const { return current_; }

 private:
  Fibre& Current() { return *fibres_[cores_[current_].fibre]; }

  // Fibres have begun to wait, or to be ready.
  void NoteChange() {
    has_changed_ = true;
    turn_ends_at_picos = 0;
  }

  void MakeReady(Fibre& fibre, uint64_t at) {
    fibre.state = Fibre::State::kReady;
    fibre.place = nullptr;
    fibre.ready_at = at;
    fibre.queued = ++queued_;
    NoteChange();
  }

  // The current fibre's core is idle from now on.
  void LeaveCore(Fibre::State state) { LeaveCore(cores_[current_], clock_picos, state); }
  void LeaveCore(Core& core, uint64_t now, Fibre::State state) {
    Fibre& fibre = *fibres_[core.fibre];
    fibre.used += now - core.since;
    fibre.state = state;
    fibre.ready_at = now;
    fibre.queued = ++queued_;
    core.clock = now;
    core.fibre = kNone;
    NoteChange();
  }

  void SwitchToLoop() {
    Fibre* const self = running_;
    fibres::Exchange(self->exceptions);
    loop_ = std::move(loop_).resume();
  }

  void Resume() {
    Core& core = cores_[current_];
    running_ = fibres_[core.fibre].get();
    clock_picos = core.clock;
    fibres::Exchange(running_->exceptions);
    running_->context = std::move(running_->context).resume();
    if (core.fibre != kNone && fibres_[core.fibre].get() == running_) core.clock = clock_picos;
  }

  // Chooses the core that goes on. False when all fibres have ended, or none ever will.
  bool Choose() {
    for (;;) {
      const uint64_t now = EarliestClock();
      // Mostly no fibre but the last one has changed, nor has the time for one come.
      if (has_changed_ || now >= next_alarm_) {
        EndSleeps(now);
        if (PlaceAny()) continue;
        next_alarm_ = NextAlarm();
        has_changed_ = false;
      }
      if (now == kForever) break;
      current_ = earliest_;
      turn_ends_at_picos = std::min(second_clock_, next_alarm_) + plan_.quantum_nanos * kPicosPerNano;
      return true;
    }
    const bool all_done =
        std::all_of(fibres_.begin(), fibres_.end(), [](const auto& f) { return f->state == Fibre::State::kDone; });
    if (!all_done) stuck_ = "every thread waits for another one";
    return false;
  }

  // Of the cores that run; and which it is, and the second.
  uint64_t EarliestClock() {
    uint64_t first = kForever;
    second_clock_ = kForever - plan_.quantum_nanos * kPicosPerNano;
    for (uint32_t i = 0; i < cores_used_; ++i) {
      if (cores_[i].fibre == kNone) continue;
      if (cores_[i].clock < first) {
        second_clock_ = std::min(second_clock_, first);
        first = cores_[i].clock;
        earliest_ = i;
      } else {
        second_clock_ = std::min(second_clock_, cores_[i].clock);
      }
    }
    return first;
  }

  // When a sleeping fibre wakes up, or a waiting one may take the core of one whose slice has ended.
  uint64_t NextAlarm() const {
    uint64_t next = kForever - plan_.quantum_nanos * kPicosPerNano;
    bool is_any_ready = false;
    for (const auto& fibre : fibres_) {
      if (fibre->state == Fibre::State::kBlocked) next = std::min(next, fibre->ready_at);
      is_any_ready |= fibre->state == Fibre::State::kReady;
    }
    for (const Core& core : cores_) {
      if (is_any_ready && core.fibre != kNone) next = std::min(next, core.since + SlicePicos());
    }
    return next;
  }
  uint64_t SlicePicos() const { return plan_.slice_nanos * kPicosPerNano; }

  // Of the fibres whose time has come by `now`; if nothing runs, of the first one.
  void EndSleeps(uint64_t now) {
    Fibre* first = nullptr;
    for (const auto& fibre : fibres_) {
      if (fibre->state == Fibre::State::kReady && now == kForever) return;
      if (fibre->state != Fibre::State::kBlocked || fibre->ready_at > now || fibre->ready_at == kForever) continue;
      if (first == nullptr || fibre->ready_at < first->ready_at) first = fibre.get();
    }
    if (first != nullptr) MakeReady(*first, first->ready_at);
  }

  // The one that has been ready for longest comes first.
  bool PlaceAny() {
    ready_.clear();
    for (uint32_t id = 0; id < fibres_.size(); ++id) {
      if (fibres_[id]->state == Fibre::State::kReady) ready_.push_back(id);
    }
    std::sort(ready_.begin(), ready_.end(),
              [this](uint32_t a, uint32_t b) { return fibres_[a]->queued < fibres_[b]->queued; });
    return std::any_of(ready_.begin(), ready_.end(), [this](uint32_t id) { return Place(id); });
  }

  // On its last core if that is idle, or another idle one, or instead of a fibre that has had its share.
  bool Place(uint32_t id) {
    Fibre& fibre = *fibres_[id];
    uint32_t core = fibre.core;
    if (core == kNone || cores_[core].fibre != kNone) {
      const auto idle = std::find_if(cores_.begin(), cores_.end(), [](const Core& c) { return c.fibre == kNone; });
      core = static_cast<uint32_t>(idle - cores_.begin());
    }
    if (core == cores_.size()) core = CoreToTake(fibre);
    if (core == kNone) return false;
    if (cores_[core].fibre != kNone) LeaveCore(cores_[core], cores_[core].clock, Fibre::State::kReady);
    Core& taken = cores_[core];
    taken.clock = taken.since = std::max(taken.clock, fibre.ready_at) + plan_.switch_nanos * kPicosPerNano;
    taken.fibre = id;
    cores_used_ = std::max(cores_used_, core + 1);
    fibre.core = core;
    fibre.state = Fibre::State::kRunning;
    // A long sleep is no claim to catch up on.
    fibre.used = std::max(fibre.used, LeastUsed() - std::min(LeastUsed(), kPreemptPicos + 1));
    return true;
  }

  uint32_t CoreToTake(const Fibre& fibre) const {
    uint32_t taken = kNone;
    uint64_t most = 0;
    for (uint32_t i = 0; i < cores_.size(); ++i) {
      const Core& core = cores_[i];
      const uint64_t used = fibres_[core.fibre]->used + core.clock - core.since;
      const bool had_its_share = used > fibre.used + kPreemptPicos || core.clock - core.since >= SlicePicos();
      if (!had_its_share || used < most) continue;
      most = used;
      taken = i;
    }
    return taken;
  }

  uint64_t LeastUsed() const {
    uint64_t least = kForever;
    for (const Core& core : cores_) {
      if (core.fibre != kNone) least = std::min(least, fibres_[core.fibre]->used);
    }
    return least == kForever ? 0 : least;
  }

  [[noreturn]] void Abandon() {
    // The fibres' stacks hold objects that refer to each other: they are left where they are.
    auto* abandoned = new std::vector<std::unique_ptr<Fibre>>(std::move(fibres_));
    (void)abandoned;
    throw Stuck(stuck_);
  }

  const CoresPlan plan_;
  std::vector<Core> cores_;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  std::vector<uint32_t> ready_;
  Context loop_;
  Fibre* running_ = nullptr;
  uint32_t current_ = 0;
  uint32_t earliest_ = 0;
  uint64_t second_clock_ = 0;
  uint64_t next_alarm_ = 0;
  bool has_changed_ = true;
  uint32_t cores_used_ = 0;  // all others never had a fibre
  uint64_t queued_ = 0;
  std::string stuck_;
  std::exception_ptr error_;
};

Scheduler* scheduler = nullptr;

}  // namespace

void RunOnCores(const CoresPlan& plan, std::function<void()> body) {
  Scheduler own(plan);
  struct Reset {
    ~Reset() {
      scheduler = nullptr;
      turn_ends_at_picos = kForever;
    }
  } reset;
  scheduler = &own;
  own.Run(std::move(body));
}

bool Running() { return scheduler != nullptr; }
uint32_t CurrentCore() { return scheduler->current_core(); }
uint64_t NowPicos() { return clock_picos; }
uint64_t NowNanos() {
  // Outside, when the engine's clock is calibrated, time passes with each look at it.
  if (scheduler == nullptr) Advance(1000 * kPicosPerNano);
  return 1'000'000'000 + clock_picos / kPicosPerNano;
}

void LoseTurn() {
  if (scheduler != nullptr) scheduler->LoseTurn();
}
void Yield(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Yield(nanos);
}
void SleepFor(uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Block(nullptr, nanos);
}
FibreId StartFibre(std::function<void()> body) {
  if (scheduler != nullptr) return scheduler->Start(std::move(body));
  body();
  return 0;
}
void JoinFibre(FibreId id) {
  while (scheduler != nullptr && !scheduler->IsDone(id)) scheduler->Block(scheduler->PlaceOf(id), kForever);
}
void BlockOn(const void* place, uint64_t nanos) {
  if (scheduler != nullptr) scheduler->Block(place, nanos);
}
bool WakeOne(const void* place) { return scheduler != nullptr && scheduler->Wake(place, false); }
bool WakeAll(const void* place) { return scheduler != nullptr && scheduler->Wake(place, true); }

}  // namespace dbx::lines
