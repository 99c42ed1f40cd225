// What lies behind the valid prefix of a log: a torn tail, which recovery cuts, or damage to what had been
// durable, which it refuses (logging/README.md, "What is valid").
//
// No position of a damaged region is trusted: records are searched for at every aligned position. Records
// that were in flight at a crash lie within a ring's length behind the frontier, so two ring lengths are
// searched closely. Valid records further behind could only be the rest of a log that was damaged over more
// than a ring; of that region one piece in sixteen is searched, since it may be gigabytes of preallocated zeros.
//
// Called once per log after the replay; single-threaded.
#pragma once

#include "logging/log_reader.h"

namespace dbx {

struct TailFindings {
  uint64_t cut_bytes = 0;      // from the frontier to the last byte found that is not zero
  uint64_t next_sequence = 0;  // above that of every transaction found
  Stamp highest_stamp{};       // of stamped records found, and of ends of transactions
  Stamp durable_stamp{};       // up to here every log had been durable, as marks say
  ProofPerLog proofs;          // what the records behind the frontier prove
};

// The search ends early once it has proved that `source` itself was durable beyond `frontier`.
TailFindings ExamineTail(const LogSource& source, Lsn frontier);

}  // namespace dbx
