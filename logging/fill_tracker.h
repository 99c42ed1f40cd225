// How a log stream learns which of its places are filled, where its fillers' words do not show it (log_stream.h).
//
// Attached to a stream by a scheme, before the stream's writer starts. Fillers call the tracker by its concrete type;
// the virtual calls here are the writer's, once per flush.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace dbx {

// A place in the log. Having one is not being durable.
struct LogPlace {
  Lsn lsn{};
  uint32_t bytes = 0;
  Lsn end() const { return lsn + bytes; }
};

// Threads: the stream's writer; in place of it, the thread that starts and stops it.
class FillTracker {
 public:
  virtual ~FillTracker() = default;

  // Before the writer starts and after it stops. After Stop nothing is filled any more.
  virtual void Start() {}
  virtual void Stop() {}

  // The writer has filled a place of its own.
  virtual void FilledByWriter(const LogPlace& place) = 0;

  // Every place below is filled. Never inside a record.
  virtual Lsn FilledUntil() const = 0;

  // Advances FilledUntil over all places filled before the call.
  virtual void CatchUp() = 0;

  // The writer is about to wait for the device: FilledUntil may move on meanwhile.
  virtual void LookAhead() {}
};

}  // namespace dbx
