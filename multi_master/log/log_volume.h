// What a master's log consists of, for the paper's appendix A ("Impact of VS clocks"): the bytes that times take, and
// what they would take as vectors, which is computed from the counts and never written.
//
//   times here       PAGES 8 (the first change's), 16 a change (its own and the page's previous one), END 8,
//                    LFB 8 (predecessor) + 8 x 16 (stamp)
//   vector clocks    of N masters, N words for each: 16 N a change, 8 N an END. PAGES needs none then, and an LFB only
//                    its predecessor, as its last record has what its stamp says
//   one stamp        the same, but the previous time of the page stays one word: (8 N + 8) a change
//
// So what is compared with is as small as it can be.
#pragma once

#include <cstdint>

#include "multi_master/log/records.h"

namespace dbx::mm {

struct LogVolume {
  uint64_t pages_records = 0;
  uint64_t pages_bytes = 0;    // of these records, with their headers
  uint64_t changes = 0;        // of pages, that they carry
  uint64_t changed_bytes = 0;  // of rows and cells, that the changes carry
  uint64_t ends = 0;
  uint64_t lfbs = 0;
  uint64_t record_bytes = 0;  // of all records but PADs: PAGES, END and LFB
  uint64_t bytes = 0;         // with PADs

  uint64_t time_bytes() const { return 8 * pages_records + 16 * changes + 8 * ends + 8 * kLfbWords * lfbs; }
  uint64_t vector_time_bytes(uint64_t masters) const { return masters * (16 * changes + 8 * ends) + 8 * lfbs; }
  uint64_t one_stamp_time_bytes(uint64_t masters) const {
    return masters * 8 * (changes + ends) + 8 * changes + 8 * lfbs;
  }

  LogVolume& operator+=(const LogVolume& other) {
    pages_records += other.pages_records, pages_bytes += other.pages_bytes, changes += other.changes;
    changed_bytes += other.changed_bytes, ends += other.ends, lfbs += other.lfbs;
    record_bytes += other.record_bytes, bytes += other.bytes;
    return *this;
  }
  LogVolume& operator-=(const LogVolume& before) {
    pages_records -= before.pages_records, pages_bytes -= before.pages_bytes, changes -= before.changes;
    changed_bytes -= before.changed_bytes, ends -= before.ends, lfbs -= before.lfbs;
    record_bytes -= before.record_bytes, bytes -= before.bytes;
    return *this;
  }
};

}  // namespace dbx::mm
