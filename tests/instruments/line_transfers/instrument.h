// What the compiled-in callbacks and the seam tell of the engine's accesses: each one is charged to the clock of its
// core, put to the model of coherent caches, and counted by the place in the code that made it.
//
// Charged are: each access; a miss in the private cache; a transfer from another core's cache, an upgrade. A line can
// be transferred once at a time, so cores that want the same one queue for it. A miss on the line after the last one
// that the core missed costs less: processors overlap those (a copied row, a log record).
//
// Nothing is counted or charged before the first transaction begins, nor after the measured interval. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/instruments/line_transfers/coherence.h"
#include "tests/instruments/line_transfers/cores.h"

namespace dbx::lines {

struct Costs {
  double access_nanos = 0.5;     // of each, with what the processor does from one to the next
  double transfer_nanos = 60;    // of a line that another core has written, and of an upgrade
  double miss_nanos = 15;        // of a line that no other core has written
  double following_share = 0.1;  // of a miss or transfer that overlaps with others
  double pause_nanos = 15;
  double yield_nanos = 300;
  double wake_nanos = 1500;   // of another thread
  double write_nanos = 3000;  // of a write to a file, and
  double write_nanos_per_kib = 100;
};

struct InstrumentPlan {
  CoresPlan cores;
  Costs costs;
  CacheShape cache{1024, 16};
};

void SetUp(const InstrumentPlan& plan);
// One JSON object: the counts, by place in the code; and the lines that were transferred most, with how many cores.
std::string ReportText();

// --- for the seam and the callbacks ---

inline bool is_on = false;
void SwitchOn();
inline void OnTransaction() {
  if (!is_on) SwitchOn();
}
void BeginInterval();
void EndInterval();

enum class Kind : uint8_t { kLoad, kStore, kOrderedWrite };

// `at`: the place in the code.
void Access(const void* address, size_t bytes, Kind kind, const void* at);
inline void OnAccess(const void* address, size_t bytes, Kind kind, const void* at) {
  if (is_on) Access(address, bytes, kind, at);
}
inline void OnAtomic(const void* address, size_t bytes, Kind kind, const void* at) {
  if (Running()) MayLoseTurn();
  OnAccess(address, bytes, kind, at);
}
// Copies, and tells of both sides.
void RacyCopyOf(void* to, const void* from, size_t bytes);
// Prefetches: the line is on its way.
void OnPrefetch(const void* address, bool writes);

void OnPause();
void OnYield();
void OnWake();
void OnWrite(size_t bytes);

}  // namespace dbx::lines
