// Threads as fibres of one thread, time as a number: a seed reproduces an interleaving to the last step.
//
// The engine's seam (tests/simulation/seam/base/host.h) calls Step() at every access to an atomic; after a seeded
// number of steps another fibre goes on. Two policies: kRandom chooses any that is ready; kPriority runs the one of
// the highest priority, which drops at a few seeded places and whenever it waits in a loop (Burckhardt et al.,
// "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010). Memory is
// sequentially consistent here; what store buffers may add is explored in tests/models.
//
// Time moves with the steps, and jumps to the next alarm clock when every fibre sleeps. If every fibre waits for
// another one, or the steps exceed their limit, the run is stuck: an error that says where each fibre stands.
//
// Everything here belongs to the one thread that called Simulate.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace dbx::sim {

enum class Policy : uint8_t { kRandom, kPriority };

struct Plan {
  uint64_t seed = 1;
  Policy policy = Policy::kRandom;
  uint32_t steps_per_turn = 50;            // on average; kRandom
  uint32_t priority_changes = 3;           // kPriority
  bool workers_pause = false;              // now and then, for up to 100 us
  uint32_t threads_max = UINT32_MAX;       // that the system gives, one after the other, to the body's own
  bool spurious_wakes = false;             // condition variables return for no reason; hides wake-ups that are lost
  uint64_t steps_expected = 100'000;       // priority changes fall below this
  uint64_t steps_max = uint64_t{1} << 25;  // more: stuck; a run takes some ten thousand, TPC-C a million
};

class Stuck : public std::runtime_error {
  using runtime_error::runtime_error;
};

struct Totals {
  uint64_t steps = 0;
  uint64_t switches = 0;
};
// In the last simulation: whether the system had no more threads.
bool WasAThreadRefused();

// Runs `body` and the threads that it starts until all have ended. Rethrows what leaves `body`. Throws Stuck, after
// which the fibres are abandoned with all that they own.
Totals Simulate(const Plan& plan, std::function<void()> body);

// Calls `action` once, `steps` from now, between two steps and outside any fibre.
void AfterSteps(uint64_t steps, std::function<void()> action);

// A process of several that are simulated at once: its fibres. A fibre's threads belong to its group; the body's is 0.
using Group = uint32_t;

// --- for the seam ---

// Outside a simulation steps never run out.
inline int64_t steps_left = INT64_MAX;
void OutOfSteps();
inline void Step() {
  if (--steps_left < 0) [[unlikely]]
    OutOfSteps();
}

bool Running();
// The current fibre has nothing better to do than to wait for another one, which takes `nanos`.
void YieldTurn(uint64_t nanos);
void SleepFor(uint64_t nanos);
uint64_t NowNanos();
uint64_t Random();
bool WakesSpuriously();
// A worker without work for a while, in some runs.
void MayPause();
// A process is about to decode and apply so many bytes of a master's log. Takes time with virtual cores
// (model/virtual_cores.h) only.
void FollowLog(uint64_t bytes);

using FibreId = uint32_t;
// Throws std::system_error where the plan has no thread to give.
FibreId StartFibre(std::function<void()> body);
void JoinFibre(FibreId id);

// The first fibre of a group, whose other fibres it or they start.
FibreId StartGroup(Group group, std::function<void()> body);
// The end of a process at any moment: its fibres go no further, and are abandoned with all that they own. A fibre that
// waits for one of them to end goes on. Not by a fibre of the group itself; an action of AfterSteps may.
void KillGroup(Group group);

// Blocks until `place` is woken, or for `nanos`; false if the time was up. May return for no reason.
constexpr uint64_t kForever = UINT64_MAX;
bool BlockOn(const void* place, uint64_t nanos = kForever);
void WakeOne(const void* place);
void WakeAll(const void* place);

}  // namespace dbx::sim
