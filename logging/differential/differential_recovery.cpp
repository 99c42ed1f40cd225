#include "logging/differential/differential_recovery.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"
#include "logging/device/file_system.h"
#include "logging/differential/backward_pass.h"
#include "logging/differential/log_end.h"
#include "logging/differential/physical_redo.h"
#include "logging/differential/staged_work.h"
#include "logging/differential/two_pass_redo.h"
#include "storage/heap/page_space.h"

namespace dbx {
namespace {

constexpr uint32_t kLevelMin = 1, kLevelMax = 4;
// At level 4 images of the backup are combined with changes by XOR.
constexpr uint32_t LevelMaxOf(DiffMethod method) { return method == DiffMethod::kPl2p ? 3 : kLevelMax; }

enum Stage : uint32_t { kEnds, kJudge, kFill, kBackward, kRedo, kBackup, kAdopt };
constexpr uint32_t After(std::initializer_list<Stage> stages) {
  uint32_t mask = 0;
  for (const Stage stage : stages) mask |= 1u << stage;
  return mask;
}

// Of records of all logs: of their ends, from the search for these on; at level 3 of what is read beside the backup.
constexpr size_t kKeptBytes = size_t{256} << 20;
// Pages of a table that a worker takes at a time to make rows of them.
constexpr uint32_t kPagesPerGrab = 64;
// Rows ahead whose place in the index is prefetched.
constexpr uint32_t kRowsAhead = 8;

// The anchor was checked by itself when it was read; here, whether logs and database are those that it is about.
class AnchorCheck {
 public:
  explicit AnchorCheck(const RestartInput& input) : input_(input), anchor_(input.anchor) {}

  void Run() const {
    const size_t logs = input_.logs.size();
    if (anchor_.begin.size() != logs || anchor_.end.size() != logs || anchor_.needed.size() != logs) {
      Refuse(ExitStatus::kMismatch, "it names another number of logs than the run has");
    }
    if (anchor_.parts != input_.backup->parts()) {
      Refuse(ExitStatus::kMismatch, "it names another number of parts than the run has directories");
    }
    CheckTables();
    for (size_t log = 0; log < logs; ++log) CheckPositions(log);
  }

 private:
  void CheckTables() const {
    if (anchor_.tables.size() != input_.database->table_count()) {
      Refuse(ExitStatus::kMismatch, "it names another number of tables than the database has");
    }
    for (size_t i = 0; i < anchor_.tables.size(); ++i) {
      const PageSpace& pages = *input_.database->table(Database::IdOf(i)).pages();
      const BackupAnchor::OfTable& table = anchor_.tables[i];
      if (table.rows_per_page != pages.rows_per_page() || table.tuple_bytes != pages.tuple_bytes()) {
        Refuse(ExitStatus::kMismatch, "the pages of table " + std::to_string(i) + " have another shape");
      }
    }
  }
  void CheckPositions(size_t log) const {
    const LogSource& source = input_.logs[log];
    const Lsn begin = anchor_.begin[log], end = anchor_.end[log], needed = anchor_.needed[log];
    if (source.run_id != anchor_.run_id) Refuse(ExitStatus::kMismatch, "it is of another run than its logs");
    const bool ascend = source.start <= needed && needed <= begin && begin <= end;
    const bool is_start = begin == source.start && end == source.start;
    if (!ascend || (anchor_.number == 0 && !is_start)) {
      Refuse(ExitStatus::kCorrupt, "its positions in log " + std::to_string(log) + " make no sense");
    }
  }
  [[noreturn]] void Refuse(ExitStatus status, const std::string& why) const {
    const std::string directory = ParentDirectory(input_.logs.front().device->path());
    throw Error(status, "cannot restart from " + directory + "/" + kAnchorFileName + "@0: " + why);
  }

  const RestartInput& input_;
  const BackupAnchor& anchor_;
};

class RestartRun {
 public:
  RestartRun(const ReplaySettings& settings, const RestartInput& input, bool with_names)
      : settings_(settings),
        input_(input),
        method_(input.anchor.method),
        level_(settings.restart_level == 0 ? LevelMaxOf(method_) : settings.restart_level),
        database_(*input.database),
        logs_(static_cast<uint32_t>(input.logs.size())),
        with_names_(with_names),
        redo_(logs_),
        pages_taken_(database_.table_count()),
        work_(Stages()),
        checksums_(database_.table_count()) {
    for (LogSource source : input.logs) {
      const RestartPoint point = PointOf(source.log_index);
      // A log that is whole is read whole: it names all winners.
      if (input.anchor.truncates) source.needed = point.needed;
      // END of the anchor's checkpoint was durable.
      const Lsn known = point.number > 0 ? point.end : source.First();
      ends_.push_back(std::make_unique<LogEnd>(source, known, LogEnd::Options{settings.block_bytes, KeptBytes()}));
    }
    for (size_t i = 0; i < database_.table_count(); ++i) {
      PageSpace& pages = *database_.table(Database::IdOf(i)).pages();
      CHECK(pages.page_count() == 0);
      pages.GrowTo(input.anchor.tables[i].pages);
    }
  }

  ReplaySummary Run() {
    const uint64_t begin = Clock::NowTicks();
    RunInParallel(settings_.workers, [this](uint32_t worker) { Work(WorkerId(worker)); });
    const uint64_t ticks = std::max<uint64_t>(Clock::NowTicks() - begin, 1);
    summary_.parallelism = static_cast<double>(busy_ticks_) / static_cast<double>(ticks);
    summary_.restart = Times();
    Conclude();
    return std::move(summary_);
  }

  std::vector<std::vector<TxnId>> Names() const {
    std::vector<std::vector<TxnId>> names;
    for (const auto& pass : backward_) names.push_back(pass->checks().names());
    return names;
  }

 private:
  bool Reaches(uint32_t level) const { return level_ >= level; }
  size_t KeptBytes() const { return kKeptBytes / logs_; }

  RestartPoint PointOf(uint32_t log) const {
    const BackupAnchor& anchor = input_.anchor;
    return {anchor.number, anchor.begin[log], anchor.end[log], anchor.needed[log], anchor.sequences, anchor.method};
  }

  std::vector<StagedWork::Stage> Stages() const {
    std::vector<StagedWork::Stage> stages(kAdopt + 1);
    stages[kEnds] = {logs_, 0};
    stages[kJudge] = {1, After({kEnds})};
    // Besides, level 3 reads the logs beside the backup, and level 4 plays them, too.
    stages[kBackup] = {input_.backup->parts() * static_cast<uint32_t>(database_.table_count()),
                       Reaches(3) ? 0 : After({kJudge})};
    stages[kFill] = {level_ == 3 ? logs_ : 0, After({kJudge})};
    stages[kBackward] = {logs_, Reaches(4) ? After({kJudge}) : After({kJudge, kFill, kBackup})};
    if (method_ == DiffMethod::kDl2p) stages[kRedo] = {logs_, After({kBackward})};
    if (method_ == DiffMethod::kPl2p) stages[kRedo] = {1, After({kBackward})};
    stages[kAdopt] = {settings_.workers, After({kBackup, kRedo, kBackward})};
    return stages;
  }

  void Work(WorkerId worker) {
    try {
      while (const auto task = work_.Take(worker)) {
        const uint64_t begin = Clock::NowTicks();
        Run(*task, worker);
        Note(task->stage, begin, Clock::NowTicks());
        work_.Complete(*task);
      }
    } catch (...) {
      work_.Stop();
      throw;
    }
  }

  // A task of the stage took from `begin` to `end`.
  void Note(uint32_t stage, uint64_t begin, uint64_t end) {
    const std::lock_guard lock(times_mutex_);
    busy_ticks_ += end - begin;
    StageTime& time = times_[stage];
    time.begin = std::min(time.begin, begin);
    time.end = std::max(time.end, end);
  }
  RestartTimes Times() const {
    const auto seconds = [this](Stage stage) {
      const StageTime& time = times_[stage];
      return time.end > time.begin ? Clock::ToSeconds(time.end - time.begin) : 0;
    };
    // Of passes side by side.
    const auto share = [&](uint64_t ticks) { return Clock::ToSeconds(ticks / std::min(settings_.workers, logs_)); };
    uint64_t read_ticks = 0, analysis_ticks = 0, end_ticks = 0;
    for (const auto& pass : redo_) read_ticks += pass == nullptr ? 0 : pass->read_ticks();
    for (const auto& pass : backward_) {
      read_ticks += pass->undo().read;
      analysis_ticks += pass->analysis_ticks();
    }
    // What was read where the ends were searched is not read again.
    for (const auto& end : ends_) end_ticks += method_ == DiffMethod::kDl1p ? end->read_ticks() : 0;
    const double analysis = share(analysis_ticks) - share(end_ticks);
    const double one_pass = physical_redo_ == nullptr ? 0 : Clock::ToSeconds(physical_redo_->read_ticks());
    return {std::max(seconds(kEnds) + analysis, 0.0),
            seconds(kBackup),
            seconds(kRedo),
            std::max(seconds(kFill) + seconds(kBackward) - analysis, 0.0),
            seconds(kAdopt),
            share(read_ticks + end_ticks) + one_pass,
            method_,
            level_};
  }

  void Run(const StagedWork::Task& task, WorkerId worker) {
    switch (task.stage) {
      case kEnds:
        return ends_[task.index]->Run();
      case kJudge:
        return JudgeLogs();
      case kBackup:
        return LoadPart(Database::IdOf(task.index / input_.backup->parts()), task.index % input_.backup->parts());
      case kFill:
        return backward_[task.index]->Fill(KeptBytes());
      case kBackward:
        return backward_[task.index]->Run();
      case kRedo:
        return Redo(task.index);
      case kAdopt:
        CheckBackup();
        for (size_t i = 0; i < database_.table_count(); ++i) AdoptPages(worker, Database::IdOf(i));
        return;
    }
  }

  void JudgeLogs() {
    std::vector<const LogReader*> readers;
    for (const auto& end : ends_) readers.push_back(&end->reader());
    JudgeEnds(readers, settings_.workers, summary_);
    for (uint32_t log = 0; log < logs_; ++log) CheckReachesCheckpoint(log);
    for (uint32_t log = 0; log < logs_; ++log) {
      backward_.push_back(std::make_unique<BackwardPass>(
          *ends_[log], PointOf(log), summary_.frontier, database_,
          BackwardPass::Options{settings_.block_bytes, with_names_, /*read_ahead=*/Reaches(2)}));
    }
  }

  // The anchor was written when the checkpoint's records were durable in all logs.
  void CheckReachesCheckpoint(uint32_t log) const {
    const LogReader& reader = ends_[log]->reader();
    const Lsn end = reader.position(), named = PointOf(log).end;
    if (input_.anchor.number == 0 || named < end) return;
    ThrowDamaged(reader.source(), end,
                 std::string(reader.end_reason()) + ", but the run's anchor shows that it was durable up to offset " +
                     std::to_string(reader.source().OffsetOf(named)));
  }

  // What the passes over the whole logs have found. JudgeEnds has seen the ends alone.
  void Conclude() {
    summary_.voids = summary_.log_bytes = 0;
    for (uint32_t log = 0; log < logs_; ++log) {
      const BackwardPass& pass = *backward_[log];
      summary_.recovered += pass.checks().winners();
      summary_.dropped += pass.checks().losers();
      summary_.Add(pass.totals());
      summary_.log_bytes += summary_.frontier[log] - pass.source().First();
    }
    NameEnded();
  }

  // Those whose records may have been truncated keep their names: none is used again.
  void NameEnded() {
    const BackupAnchor& anchor = input_.anchor;
    if (!anchor.truncates) return;
    // Behind the backup of the start the logs are whole.
    if (anchor.number > 0) summary_.ended_below = anchor.sequences;
    summary_.KeepNamesUpTo(anchor.sequences);
  }

  void LoadPart(TableId table, uint32_t part) {
    PageSpace& pages = *database_.table(table).pages();
    const auto put = [&](uint32_t page, const std::byte* images) {
      if (!Reaches(4)) return pages.PutImages(page, images);
      const PageSpace::Latched latched(pages, page);
      pages.XorImages(page, images);
    };
    const uint32_t checksum = input_.backup->ReadPart(table, part, put, /*read_ahead=*/Reaches(2));
    const std::lock_guard lock(times_mutex_);
    checksums_[table.value()] ^= checksum;
  }

  // Each frame was whole, and of this copy. One may be older than the anchor all the same: a part that was put back
  // from before, or a write that the device has lost.
  void CheckBackup() const {
    for (size_t i = 0; i < checksums_.size(); ++i) {
      if (checksums_[i] == input_.anchor.tables[i].checksum) continue;
      const BackupShape& shape = input_.backup->shape();
      const std::string first = shape.PathOf(input_.anchor.copy, static_cast<uint32_t>(i), 0);
      throw Error(ExitStatus::kMismatch, "the backup " + first + (shape.parts() > 1 ? " and its other parts" : "") +
                                             ": not all pages are of the checkpoint that the run's anchor names");
    }
  }

  void Redo(uint32_t log) {
    if (method_ == DiffMethod::kPl2p) return RedoImages();
    redo_[log] = std::make_unique<TwoPassRedo>(*backward_[log], database_, /*read_ahead=*/Reaches(2));
    redo_[log]->Run();
  }
  void RedoImages() {
    physical_redo_ = std::make_unique<PhysicalRedo>(backward_, database_, /*read_ahead=*/Reaches(2));
    physical_redo_->Run();
  }

  // Takes pages of the table until none are left.
  void AdoptPages(WorkerId worker, TableId table) {
    const uint32_t count = database_.table(table).pages()->page_count();
    Atomic<uint64_t>& taken = pages_taken_[table.value()].value;
    for (;;) {
      const uint64_t first = taken.fetch_add(kPagesPerGrab, std::memory_order_relaxed);
      if (first >= count) return;
      const auto end = static_cast<uint32_t>(std::min<uint64_t>(first + kPagesPerGrab, count));
      for (auto page = static_cast<uint32_t>(first); page < end; ++page) AdoptPage(worker, table, page);
    }
  }

  void AdoptPage(WorkerId worker, TableId id, uint32_t page) {
    Table& table = database_.table(id);
    const PageSpace& pages = *table.pages();
    if (!HasContents(id, page)) return table.AdoptFreePage(worker, page);
    CheckBits(id, page);
    const auto prefetch = [&](uint32_t slot) {
      if (slot >= pages.rows_per_page() || !pages.IsPresent({page, slot})) return;
      if (slot + kRowsAhead < pages.rows_per_page()) Prefetch(pages.RowAt({page, slot + kRowsAhead}));
      table.PrefetchBucket(pages.RowAt({page, slot})->key);
    };
    uint32_t present = 0;
    for (uint32_t slot = 0; slot < kRowsAhead; ++slot) prefetch(slot);
    for (uint32_t slot = 0; slot < pages.rows_per_page(); ++slot) {
      prefetch(slot + kRowsAhead);
      if (pages.IsPresent({page, slot})) {
        table.AdoptRow(worker, pages.RowAt({page, slot}));
        ++present;
      } else {
        CheckFree(id, page, slot);
      }
    }
    if (present == 0) return table.AdoptFreePage(worker, page);
    for (uint32_t slot = 0; slot < pages.rows_per_page(); ++slot) {
      if (!pages.IsPresent({page, slot})) table.AdoptFreeSlot(worker, pages.RowAt({page, slot}));
    }
  }

  // Otherwise nothing was put there: it is zeros that take no memory.
  bool HasContents(TableId table, uint32_t page) const {
    if (page < input_.anchor.tables[table.value()].pages) return true;
    const auto changed = [&](const auto& pass) { return pass != nullptr && pass->player().Changed(table, page); };
    if (physical_redo_ != nullptr && physical_redo_->Changed(table, page)) return true;
    return std::ranges::any_of(redo_, changed) || std::ranges::any_of(backward_, changed);
  }

  void CheckBits(TableId table, uint32_t page) const {
    const PageSpace& pages = *database_.table(table).pages();
    for (uint32_t slot = pages.rows_per_page(); slot % 8 != 0; ++slot) {
      if (pages.IsPresent({page, slot})) Refuse(table, page, slot, "is present, and the page has none such");
    }
  }
  void CheckFree(TableId table, uint32_t page, uint32_t slot) const {
    const PageSpace& pages = *database_.table(table).pages();
    Row* const row = pages.RowAt({page, slot});
    if (row->key == 0 && AllZero({pages.TupleOf(row), pages.tuple_bytes()})) return;
    Refuse(table, page, slot, "is free, but not zeros: a change is missing, or was applied twice");
  }
  [[noreturn]] void Refuse(TableId table, uint32_t page, uint32_t slot, const char* why) const {
    throw Error(ExitStatus::kCorrupt, "damaged backup or log of " + ParentDirectory(input_.logs[0].device->path()) +
                                          ": slot " + std::to_string(slot) + " of page " + std::to_string(page) +
                                          " of table " + database_.table(table).schema().name + " " + why);
  }

  const ReplaySettings settings_;
  const RestartInput& input_;
  const DiffMethod method_;
  const uint32_t level_;
  Database& database_;
  const uint32_t logs_;
  const bool with_names_;
  std::vector<std::unique_ptr<LogEnd>> ends_;               // by log
  std::vector<std::unique_ptr<BackwardPass>> backward_;     // the same, once the ends were judged
  std::vector<std::unique_ptr<TwoPassRedo>> redo_;          // the same, once it has begun
  std::unique_ptr<PhysicalRedo> physical_redo_;             // once it has begun
  std::vector<CachePadded<Atomic<uint64_t>>> pages_taken_;  // by table: they are, or become, rows
  StagedWork work_;
  struct StageTime {
    uint64_t begin = UINT64_MAX;  // of the first task
    uint64_t end = 0;             // of the last one
  };
  Mutex times_mutex_;
  StageTime times_[kAdopt + 1];  // guarded by it, as is the next
  uint64_t busy_ticks_ = 0;
  std::vector<uint32_t> checksums_;  // by table: of the parts that were read; guarded by it, too
  ReplaySummary summary_;            // of the task `ends`
};

}  // namespace

DifferentialRecovery::DifferentialRecovery(const ReplaySettings& settings) : settings_(settings) {
  CHECK(settings.workers > 0);
  if (settings.restart_level <= kLevelMax) return;
  throw Error(ExitStatus::kUsage, "RESTART_LEVEL is " + std::to_string(settings.restart_level) + ": valid values are " +
                                      std::to_string(kLevelMin) + " to " + std::to_string(kLevelMax) +
                                      ", and 0 for the highest");
}

ReplaySummary DifferentialRecovery::Restart(const RestartInput& input, std::vector<std::vector<TxnId>>* names,
                                            const std::function<void()>* replayed) {
  CHECK(!input.logs.empty() && input.database->paged() && settings_.workers <= input.database->workers());
  AnchorCheck(input).Run();
  const DiffMethod method = input.anchor.method;
  if (settings_.restart_level > LevelMaxOf(method)) {
    throw Error(ExitStatus::kUsage, "RESTART_LEVEL " + std::to_string(settings_.restart_level) +
                                        " combines images by XOR, and the run's DIFF_METHOD " +
                                        std::string(NameOf(method)) + " puts them: valid values are " +
                                        std::to_string(kLevelMin) + " to " + std::to_string(LevelMaxOf(method)));
  }
  RestartRun run(settings_, input, names != nullptr);
  ReplaySummary summary = run.Run();
  if (names != nullptr) *names = run.Names();
  if (replayed != nullptr) (*replayed)();
  return summary;
}

}  // namespace dbx
