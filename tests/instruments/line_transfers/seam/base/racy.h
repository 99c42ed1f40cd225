// What base/racy.h is under the instrument: the same copies, which the instrument is told of.
#pragma once

#include <cstddef>

#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

inline void CompilerBarrier() { asm volatile("" ::: "memory"); }

inline void RacyCopy(void* to, const void* from, size_t bytes) { lines::RacyCopyOf(to, from, bytes); }

}  // namespace dbx

#include "tests/fibres/racy_load.h"
