#include "logging/backup/fuzzy_checkpoint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "logging/format.h"
#include "storage/heap/checkpoint_clock.h"
#include "storage/heap/page_space.h"

namespace dbx {
namespace {

PageSpace& PageSpaceOf(const Database& database, size_t table) {
  PageSpace* const pages = database.table(Database::IdOf(table)).pages();
  CHECK(pages != nullptr);
  return *pages;
}

// The flag of a checkpoint that has begun.
class Flag {
 public:
  explicit Flag(CheckpointClock& clock) : clock_(clock) {}
  ~Flag() { clock_.End(); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  CheckpointClock& clock_;
};

// All pages of the copy are written.
void TakeChecksums(const BackupWriter& backup, BackupAnchor& anchor) {
  for (size_t i = 0; i < anchor.tables.size(); ++i) {
    anchor.tables[i].checksum = backup.ChecksumOf(anchor.copy, Database::IdOf(i), anchor.tables[i].pages);
  }
}

}  // namespace

FuzzyCheckpoint::FuzzyCheckpoint(CheckpointedLog& log, const BackupOptions& options)
    : database_(*options.database),
      log_(log),
      backup_(options.writer),
      files_(*options.files),
      anchor_path_(options.anchor_path),
      truncation_(files_, {options.truncated_logs, options.anchor.begin},
                  [&log](uint64_t bytes) { log.CountDiscarded(bytes); }),
      bytes_before_(backup_->written_bytes()),
      anchor_(options.anchor),
      scan_(*backup_),
      pace_(options.cpu_percent) {
  CHECK(database_.checkpoints().number() == anchor_.number);
  // The first backup's anchor says where the logs start.
  CHECK(!truncation_.wanted() || anchor_.number == 0);
}

bool FuzzyCheckpoint::HasSpace(auto&& write) {
  try {
    write();
    return true;
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kNoSpace) throw;
    no_space_because_ = error.what();
    return false;
  }
}

FuzzyCheckpoint::Outcome FuzzyCheckpoint::Write(const std::function<bool()>& stopped) {
  BackupAnchor next = anchor_;
  next.copy = 1 - anchor_.copy;
  try {
    // No recovery needs that copy.
    if (!HasSpace([&] { backup_->Renew(next.copy); }) || !TakeSteps(next, stopped)) return Outcome::kNoSpace;
  } catch (const GivenUp&) {
    return Outcome::kGivenUp;
  }
  anchor_ = std::move(next);
  truncation_.Truncate(anchor_.needed);
  return Outcome::kComplete;
}

bool FuzzyCheckpoint::TakeSteps(BackupAnchor& next, const std::function<bool()>& stopped) {
  const auto ask = [](auto&& call) {
    try {
      return call();
    } catch (const Error&) {
      throw GivenUp();
    }
  };
  next.needed = ask([&] { return log_.NeededFrom(); });
  for (size_t log = 0; log < next.needed.size(); ++log) {
    next.needed[log] = std::max(next.needed[log], anchor_.needed[log]);
  }
  next.truncates = truncation_.wanted();
  next.sequences = ask([&] { return log_.EndedBelow(); });
  next.number = database_.checkpoints().Begin();
  CHECK(next.tables.size() == database_.table_count() && next.parts == backup_->shape().parts());
  bool has_space = true;
  {
    const Flag flag(database_.checkpoints());
    next.begin = ask([&] { return log_.AppendBegin(next.number); });
    database_.checkpoints().Advance([&] {
      for (size_t i = 0; i < next.tables.size(); ++i) next.tables[i].pages = PageSpaceOf(database_, i).page_count();
    });
    ask([&] { log_.AwaitFilled(next.begin); });
    has_space = HasSpace([&] { CopyPages(next, stopped); });
  }
  has_space = has_space && HasSpace([&] { backup_->Sync(next.copy); });
  if (has_space) TakeChecksums(*backup_, next);
  if (has_space) {
    next.end = ask([&] { return log_.AppendEnd(next.number); });
    ask([&] { log_.AwaitDurable(next.end); });
    if (stopped()) throw GivenUp();
    has_space = HasSpace([&] { WriteTemporaryFile(files_, anchor_path_, EncodeAnchor(next)); });
  }
  if (has_space) {
    PutTemporaryFileInPlace(files_, anchor_path_);
  } else {
    TakeBack(next);
  }
  return has_space;
}

void FuzzyCheckpoint::CopyPages(const BackupAnchor& next, const std::function<bool()>& stopped) {
  pace_.Restart();
  const auto before_page = [&] {
    if (stopped()) throw GivenUp();
    pace_.Rest(stopped);
  };
  for (size_t i = 0; i < next.tables.size(); ++i) {
    scan_.Run(Database::IdOf(i), PageSpaceOf(database_, i), next.tables[i].pages, next.copy, next.number, before_page);
  }
}

// Transactions may change pages meanwhile, of which some count as reached and others do not: both numbers are above
// that of the backup that the anchor names, which has none of these changes.
void FuzzyCheckpoint::TakeBack(const BackupAnchor& next) {
  for (size_t i = 0; i < next.tables.size(); ++i) {
    for (uint32_t page = 0; page < next.tables[i].pages; ++page) {
      PageSpace::Latched latched(PageSpaceOf(database_, i), page);
      latched.SetNumber(next.number);
      latched.SetDirty(static_cast<int>(next.copy));
    }
  }
}

void FuzzyCheckpoint::CountInto(CheckpointCounters& counters) const {
  counters.pages = pages();
  counters.bytes = bytes();
  counters.latches = latches();
}

BackupAnchor WriteInitialBackup(Database& database, BackupWriter& backup, BackupAnchor identity) {
  CHECK(database.checkpoints().number() == 0);
  BackupAnchor anchor = std::move(identity);
  anchor.number = 0;
  anchor.copy = 0;
  anchor.parts = backup.shape().parts();
  anchor.tables.clear();
  PageScan scan(backup);
  for (size_t i = 0; i < database.table_count(); ++i) {
    PageSpace& pages = PageSpaceOf(database, i);
    scan.Run(Database::IdOf(i), pages, pages.page_count(), anchor.copy, anchor.number, [] {});
    anchor.tables.push_back({pages.page_count(), pages.rows_per_page(), pages.tuple_bytes()});
  }
  backup.Sync(anchor.copy);
  TakeChecksums(backup, anchor);
  return anchor;
}

BackupShape ShapeOf(const Database& database, uint64_t run_id, std::vector<std::string> directories) {
  BackupShape shape;
  shape.run_id = run_id;
  for (size_t i = 0; i < database.table_count(); ++i) {
    const PageSpace& pages = PageSpaceOf(database, i);
    shape.tables.push_back({pages.rows_per_page(), pages.tuple_bytes()});
  }
  shape.directories = std::move(directories);
  return shape;
}

}  // namespace dbx
