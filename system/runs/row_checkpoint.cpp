#include "system/runs/row_checkpoint.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/host.h"
#include "base/random.h"
#include "base/spin.h"
#include "system/runs/log_directory.h"

namespace dbx {
namespace {

constexpr std::chrono::microseconds kDurableWait{50};

// Workers stay between two transactions for its life.
class Pause {
 public:
  Pause(RunControl& control, LatencyHistogram& lengths)
      : control_(control), lengths_(lengths), begin_(host::MonotonicNanos()) {
    control_.pause.store(true);
  }
  ~Pause() {
    control_.pause.store(false);
    lengths_.Record(host::MonotonicNanos() - begin_);
  }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  RunControl& control_;
  LatencyHistogram& lengths_;
  const uint64_t begin_;
};

}  // namespace

RowCheckpoint::RowCheckpoint(FileSystem& files, const Database& database, LogSet& logs, EpochClock& epochs,
                             RunControl& control, std::unique_ptr<RowSource> rows, RowCheckpointFiles where,
                             CheckpointPace pace)
    : files_(files),
      database_(database),
      logs_(logs),
      epochs_(epochs),
      control_(control),
      rows_(std::move(rows)),
      where_(std::move(where)),
      truncation_(files, where_.truncated, [&logs](uint64_t bytes) { logs.CountDiscarded(bytes); }),
      pace_(pace) {
  CHECK(!control_.ended_below.empty() && !where_.directories.empty());
  anchor_.copy = 1;
}

CheckpointWriter::Outcome RowCheckpoint::Write(const std::function<bool()>& stopped) {
  RowAnchor next;
  next.database_id = where_.database_id;
  next.run_id = where_.run_id;
  next.number = anchor_.number + 1;
  next.copy = 1 - anchor_.copy;
  next.truncates = truncation_.wanted();
  try {
    TakeSteps(next, stopped);
  } catch (const GivenUp&) {
    return Outcome::kGivenUp;
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kNoSpace) throw;
    no_space_because_ = error.what();
    DeleteCopy(next.copy);
    return Outcome::kNoSpace;
  }
  PutTemporaryFileInPlace(files_, where_.anchor_path);
  anchor_ = std::move(next);
  truncation_.Truncate(anchor_.start);
  return Outcome::kComplete;
}

void RowCheckpoint::TakeSteps(RowAnchor& next, const std::function<bool()>& stopped) {
  // No recovery needs that copy.
  DeleteCopy(next.copy);
  TakeStart(next, stopped);
  next.parts = CopyRows(next.copy, stopped);
  for (uint32_t log = 0; log < logs_.count(); ++log) next.end.push_back(logs_.stream(log).reserved_until());
  AwaitDurable(next.end, stopped);
  if (stopped()) throw GivenUp();
  WriteTemporaryFile(files_, where_.anchor_path, EncodeRowAnchor(next));
}

void RowCheckpoint::TakeStart(RowAnchor& next, const std::function<bool()>& stopped) {
  const Pause pause(control_, pauses_);
  AwaitPause(stopped);
  for (uint32_t log = 0; log < logs_.count(); ++log) next.start.push_back(logs_.stream(log).reserved_until());
  for (const auto& ended : control_.ended_below) next.sequences.push_back(ended.value.load());
}

void RowCheckpoint::AwaitPause(const std::function<bool()>& stopped) const {
  SpinWait wait;
  for (uint32_t worker = 0; worker < control_.ended_below.size(); ++worker) {
    while (!epochs_.IsIdle(WorkerId(worker))) {
      if (stopped()) throw GivenUp();
      wait.Wait();
    }
  }
}

std::vector<format::CheckpointPart> RowCheckpoint::CopyRows(uint32_t copy, const std::function<bool()>& stopped) {
  const auto parts = static_cast<uint32_t>(where_.directories.size());
  std::vector<std::unique_ptr<CheckpointPartWriter>> writers;
  for (uint32_t part = 0; part < parts; ++part) {
    writers.push_back(std::make_unique<CheckpointPartWriter>(
        files_, PathOf(copy, part), where_.device,
        CheckpointIdentity{where_.database_id, where_.run_id, where_.schema_hash, part, parts}));
  }
  pace_.Restart();
  const auto before_batch = [&] {
    if (stopped()) throw GivenUp();
    pace_.Rest(stopped);
  };
  // A key that comes twice is in the same part.
  const auto take = [&](TableId table, Key key, std::span<const std::byte> tuple) {
    writers[HashPair(key, table.value()) % parts]->Add(table, key, tuple);
  };
  for (uint16_t table = 0; table < database_.table_count(); ++table) {
    rows_->CopyTable(TableId(table), take, before_batch);
  }
  std::vector<format::CheckpointPart> written;
  for (const auto& writer : writers) {
    written.push_back(writer->Finish());
    bytes_written_ += written.back().bytes;
    rows_written_ += written.back().rows;
  }
  return written;
}

void RowCheckpoint::AwaitDurable(const std::vector<Lsn>& positions, const std::function<bool()>& stopped) const {
  for (uint32_t log = 0; log < positions.size(); ++log) {
    while (logs_.durable().Load(log) < positions[log]) {
      if (stopped()) throw GivenUp();
      try {
        logs_.ThrowIfFailed();
      } catch (const Error&) {
        throw GivenUp();  // the log reports it itself
      }
      host::SleepFor(kDurableWait);
    }
  }
}

void RowCheckpoint::DeleteCopy(uint32_t copy) {
  for (uint32_t part = 0; part < where_.directories.size(); ++part) {
    const std::string path = PathOf(copy, part);
    if (IsFileOfRun(files_, path)) files_.Remove(path);
  }
}

std::string RowCheckpoint::PathOf(uint32_t copy, uint32_t part) const {
  return where_.directories[part] + "/" + RowFileName(copy, part);
}

void RowCheckpoint::CountInto(CheckpointCounters& counters) const {
  counters.of_rows = true;
  counters.rows = rows_written_;
  counters.bytes = bytes_written_;
  counters.pauses = pauses_;
}

}  // namespace dbx
