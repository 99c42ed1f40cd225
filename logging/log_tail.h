// The bytes behind the valid prefix of a log: a torn tail (torn writes), which recovery cuts, or damage to bytes that
// had been durable, which it refuses (logging/README.md, "What is valid").
//
// No position of a damaged region is trusted: all non-zero bytes, up to the end of the file, are searched for records
// at every aligned position. A sample would do for the damage of a torn flush, which lies within a ring's length behind
// the frontier, but not for that of a disk: a hole of any length may have valid records behind it. The cost is one read
// of the file's preallocated rest, of which zeros are skipped at the speed of memory, and holes that the device reports
// are not even read.
//
// Called once per log after the replay; different logs may be searched by different threads.
#pragma once

#include "logging/log_reader.h"

namespace dbx {

struct TailFindings {
  uint64_t cut_bytes = 0;      // from the frontier to the last byte found that is not zero
  uint64_t next_sequence = 0;  // above that of every transaction found, or named by what was found
  Stamp highest_stamp{};       // of stamped records found, and of ends of transactions
  Stamp durable_stamp{};       // up to here every log had been durable, according to marks
  ProofPerLog proofs;          // evidence from the records behind the frontier
};

// The search ends early once it has proved that `source` itself was durable beyond `frontier`.
TailFindings ExamineTail(const LogSource& source, Lsn frontier);

// Whether the bytes from `from`, where a record starts, to `to` are whole records.
bool RecordsLead(const LogSource& source, Lsn from, Lsn to);

}  // namespace dbx
