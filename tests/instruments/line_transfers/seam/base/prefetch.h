// What base/prefetch.h is under the instrument, which is told of the lines that are asked for.
#pragma once

#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

inline void Prefetch(const void* address) { lines::OnPrefetch(address, false); }
inline void PrefetchToWrite(const void* address) { lines::OnPrefetch(address, true); }

}  // namespace dbx
