// Row checkpoints: online checkpoints of a database whose logs have the rows that transactions wrote (data logging), to
// be replayed in the order of a single log or of LSN vectors. Recovery then starts from the newest one, and the logs
// may be truncated below. The steps of one:
//
//   1 the workers pause between two transactions. Replay would begin at the positions that are reserved now
//   2 they go on, while all rows are copied, as transactions have committed them (row_copier.h), to the files of the
//     older copy
//   3 the files are synced; all that is reserved by then becomes durable
//   4 the anchor (row_anchor.h), durably: now recovery begins with this copy, and the other one may be overwritten
//   5 the logs are truncated below where replay begins, if that was asked for
//
// Why that is right. A row in the files is what some transaction left that committed before step 3, so what it holds
// is durable with the anchor. A transaction whose record lies below the start had ended in step 1: its rows, or what
// overwrote them, are in the files. All others are replayed in their order. A record is whole tuples and deletions, so
// that one whose rows were copied already may be put again: the last one of each row decides. It needs the start to be
// a consistent cut: were a transaction replayed, and one that overwrote its rows was not, the older rows would stay.
// Positions of several logs that are read one after the other are no such cut, hence the pause. With it, too, an LSN
// vector's element that a record does not store, as the anchor before covered it, is below the start: the anchors held
// what was durable, and so reserved by transactions before the pause.
//
// A checkpoint for which there is no space changes nothing: the anchor keeps naming the older copy, and its own files
// are deleted.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/epoch.h"
#include "base/histogram.h"
#include "logging/backup/checkpoint_pace.h"
#include "logging/backup/checkpoint_writer.h"
#include "logging/backup/log_truncation.h"
#include "logging/device/file_system.h"
#include "logging/log_set.h"
#include "storage/database.h"
#include "system/run_control.h"
#include "system/runs/checkpoint.h"
#include "system/runs/row_anchor.h"
#include "system/runs/row_checkpoint_files.h"
#include "system/transaction/row_source.h"

namespace dbx {

class RowCheckpoint : public CheckpointWriter {
 public:
  // All references outlive this. `control` has a place for each worker's number.
  RowCheckpoint(FileSystem& files, const Database& database, LogSet& logs, EpochClock& epochs, RunControl& control,
                std::unique_ptr<RowSource> rows, RowCheckpointFiles where, CheckpointPace pace);

  Outcome Write(const std::function<bool()>& stopped) override;
  const std::string& no_space_because() const override { return no_space_because_; }
  bool cannot_discard() const override { return truncation_.cannot_discard(); }
  void CountInto(CheckpointCounters& counters) const override;

 private:
  struct GivenUp {};

  // Steps 1 to 4 for `next`, which knows its number and copy.
  void TakeSteps(RowAnchor& next, const std::function<bool()>& stopped);
  void TakeStart(RowAnchor& next, const std::function<bool()>& stopped);
  void AwaitPause(const std::function<bool()>& stopped) const;
  std::vector<format::CheckpointPart> CopyRows(uint32_t copy, const std::function<bool()>& stopped);
  void AwaitDurable(const std::vector<Lsn>& positions, const std::function<bool()>& stopped) const;
  void DeleteCopy(uint32_t copy);
  std::string PathOf(uint32_t copy, uint32_t part) const;

  FileSystem& files_;
  const Database& database_;
  LogSet& logs_;
  EpochClock& epochs_;
  RunControl& control_;
  const std::unique_ptr<RowSource> rows_;
  const RowCheckpointFiles where_;
  LogTruncation truncation_;
  CheckpointPace pace_;
  RowAnchor anchor_;  // the durable one; number 0: none
  std::string no_space_because_;
  uint64_t rows_written_ = 0, bytes_written_ = 0;  // in whole copies
  LatencyHistogram pauses_;
};

}  // namespace dbx
