// The end of one differential log, found without reading what lies before it, as restart reads the log backward.
//
// A writer's ring is reused only when its contents are durable, so a record anywhere shows that its log was durable up
// to a ring's length below the record's end; a PAD says it itself. So the file is probed at distances that double
// (galloping search), and then halved, for a record far behind; from the start of a record that is proved to have been
// durable the log is read forward to the end of its valid prefix:
//
//     known                                 begin()                    end           file's end
//     |------- read backward only ----------|-- checked, and kept -----|....zeros....|
//            ^     ^           ^                            ^      ^
//            probes                                         records found
//
// Where a probe falls on damage, or into a long record, the search ends early and more is read forward. Whether the log
// ends by a torn tail or by damage is judged as for every log (log_ends.h): the bytes behind the end are all searched.
// Damage below begin() is found by the pass backward.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"
#include "logging/differential/kept_log.h"
#include "logging/log_reader.h"

namespace dbx {

// Where a record starts, at or above `known`, up to which the log was once durable: not far below its end, as a rule. A
// record starts at `known`, or the log ends there, and it was durable up to there. Throws Error(kIo).
Lsn FindDurableStart(const LogSource& source, Lsn known);

class LogEnd {
 public:
  struct Options {
    size_t block_bytes = 1 << 20;
    size_t kept_bytes = 0;  // of records, for the pass backward
  };

  // `known` as for FindDurableStart.
  LogEnd(const LogSource& source, Lsn known, const Options& options)
      : source_(source), known_(known), options_(options), kept_(options.kept_bytes) {}

  // Throws Error.
  void Run();

  const LogSource& source() const { return source_; }
  // After Run. The reader has ended; what it counts begins at begin().
  const LogReader& reader() const { return *reader_; }
  Lsn begin() const { return reader_->source().First(); }
  Lsn end() const { return reader_->position(); }
  // How long it took to read what lies behind begin(), the search excepted.
  uint64_t read_ticks() const { return read_ticks_; }
  // It is used up by its reader.
  KeptLog& kept() { return kept_; }

 private:
  const LogSource source_;
  const Lsn known_;
  const Options options_;
  std::optional<LogReader> reader_;
  KeptLog kept_;
  uint64_t read_ticks_ = 0;
};

}  // namespace dbx
