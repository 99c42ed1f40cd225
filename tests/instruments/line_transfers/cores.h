// Threads as fibres on cores of their own, each with a clock: an execution-driven simulation of time.
//
// The fibre on the core that is furthest behind goes on, until its clock is a quantum ahead of the next one. It can
// only be interrupted where the engine's threads meet: at accesses to atomics and racy copies (MayLoseTurn), and where
// it waits. Whatever takes time calls Advance. With fewer cores than fibres, a core gives each of its fibres a slice of
// time; a fibre that wakes up goes to an idle core, or to that of a fibre that has used more time than itself.
//
// Deterministic. Everything here belongs to the one thread that called RunOnCores. Times are in picoseconds inside, as
// an access takes less than a nanosecond, and in nanoseconds in the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace dbx::lines {

struct CoresPlan {
  uint32_t cores = 0;              // 0: one for each fibre, as far as there are any
  uint64_t quantum_nanos = 40;     // how far a core may be ahead of the others
  uint64_t slice_nanos = 3000000;  // of a fibre, where others wait for its core
  uint64_t switch_nanos = 2000;    // from one fibre of a core to another, or from an idle core
};

class Stuck : public std::runtime_error {
  using runtime_error::runtime_error;
};

// Runs `body` and the threads that it starts until all have ended. Rethrows what leaves `body`; throws Stuck if every
// fibre waits for another one.
void RunOnCores(const CoresPlan& plan, std::function<void()> body);

bool Running();
// Of the current fibre.
uint32_t CurrentCore();
uint64_t NowPicos();
uint64_t NowNanos();

// The current core's clock, and what it may come to before MayLoseTurn gives way. Written by Advance alone, outside of
// the scheduler.
inline uint64_t clock_picos = 0;
inline uint64_t turn_ends_at_picos = UINT64_MAX;
inline void Advance(uint64_t picos) { clock_picos += picos; }
void LoseTurn();
inline void MayLoseTurn() {
  if (clock_picos > turn_ends_at_picos) [[unlikely]]
    LoseTurn();
}

// Another fibre of the core may run.
void Yield(uint64_t nanos);
void SleepFor(uint64_t nanos);

using FibreId = uint32_t;
FibreId StartFibre(std::function<void()> body);
void JoinFibre(FibreId id);

// Blocks until `place` is woken, or for `nanos`.
constexpr uint64_t kForever = UINT64_MAX;
void BlockOn(const void* place, uint64_t nanos = kForever);
// False if no fibre waits there.
bool WakeOne(const void* place);
bool WakeAll(const void* place);

}  // namespace dbx::lines
