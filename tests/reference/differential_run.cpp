#include "tests/reference/differential_run.h"

#include <algorithm>

#include "base/check.h"

namespace dbx {
namespace {

using format::RecordKind;

template <class T>
std::string AsBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

constexpr size_t kChangeBytes = sizeof(format::ChangeBody) + 8 + DifferentialRun::kTupleBytes;

}  // namespace

DifferentialRun::DifferentialRun(uint64_t seed, uint32_t logs, format::DiffMethod method)
    : random_(seed),
      logs_count_(logs),
      compensates_always_(method != format::DiffMethod::kDl1p),
      logs_(logs),
      reserved_(logs, 0),
      durable_(logs, 0),
      workers_(kWorkers) {
  for (uint32_t page = 0; page < 2; ++page) {
    AddPage();
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const Image image{true, 100 + 10 * page + slot, next_value_++};
      if (OneIn(3)) continue;
      pages_[page].slots[slot].image = image;
      initial_[{page, slot}] = image;
    }
    backups_[0].pages.insert_or_assign(page, std::pair{0u, ImagesOf(pages_[page])});
    pages_[page].dirty[0] = false;
  }
  anchor_.run_id = kRunId;
  anchor_.parts = kParts;
  anchor_.method = static_cast<uint32_t>(method);
  anchor_.tables = {{2, kSlots, kTupleBytes, 0}};
  anchor_.begin = anchor_.end = anchor_.needed = std::vector<uint64_t>(logs, 0);
  anchor_.sequences.assign(kWorkers, 0);
}

void DifferentialRun::Step() {
  const uint32_t turn = random_() % (kWorkers + 2);
  turn < kWorkers ? StepOf(turn) : StepCheckpoint();
}

// ---- logs

size_t DifferentialRun::Reserve(uint32_t log, RecordKind kind, size_t body_bytes) {
  Record record;
  record.header.salt = format::Salt(kRunId, log);
  record.header.length = static_cast<uint32_t>(sizeof record.header + body_bytes);
  record.header.lsn = reserved_[log];
  record.header.kind = static_cast<uint8_t>(kind);
  record.header.log_index = static_cast<uint8_t>(log);
  record.body.resize(body_bytes);
  reserved_[log] += record.header.length;
  logs_[log].push_back(std::move(record));
  return logs_[log].size() - 1;
}

void DifferentialRun::FillEmpty(uint32_t log, RecordKind kind, std::string_view body) {
  Record& record = logs_[log][Reserve(log, kind, body.size())];
  record.body = body;
  record.filled = true;
}

size_t DifferentialRun::ReadyUntil(uint32_t log) const {
  size_t ready = 0;
  while (ready < logs_[log].size() && logs_[log][ready].filled) ++ready;
  return ready;
}

// ---- transactions

void DifferentialRun::StepOf(uint32_t w) {
  Worker& worker = workers_[w];
  switch (worker.at) {
    case At::kIdle:
      return Begin(worker);
    case At::kNext:
      return Next(w);
    case At::kApply:
      return Apply(worker);
    case At::kFill:
      return Fill(w);
    case At::kCommit:
      return FinishCommit(w);
    case At::kAbort:
      worker.at = flag_ || compensates_always_ ? At::kTakeBack : At::kReserve;
      return;
    case At::kReserve:
      worker.place = Reserve(worker.log, RecordKind::kAbort, sizeof(uint64_t));
      worker.at = At::kLookAgain;
      return;
    case At::kLookAgain:
      return LookAgain(worker);
    case At::kUndo:
      return worker.undo.empty() ? FillAbort(w) : Undo(worker);
    case At::kTakeBack:
      if (!worker.undo.empty()) return ReserveChange(w, /*compensates=*/true);
      worker.place = Reserve(worker.log, RecordKind::kAbort, sizeof(uint64_t));
      return FillAbort(w);
    case At::kEnded:
      return End(w, /*aborted=*/true);
  }
}

void DifferentialRun::Begin(Worker& worker) {
  if (!worker.runs_again) ++worker.sequence;
  worker.log = random_() % logs_count_;
  worker.changes_left = 1 + random_() % 3;
  worker.undo.clear();
  worker.after.clear();
  worker.lv.assign(logs_count_, 0);
  worker.compensates = false;
  worker.at = At::kNext;
}

// A transaction that would have to wait for a lock aborts.
void DifferentialRun::Next(uint32_t w) {
  Worker& worker = workers_[w];
  if (worker.changes_left == 0 && !OneIn(3)) {
    size_t stored = 0;
    for (const uint64_t element : worker.lv) stored += element != 0;
    worker.place = Reserve(worker.log, RecordKind::kCommit, 8 + 8 * stored);
    worker.at = At::kCommit;
    return;
  }
  if (OneIn(8) && pages_.size() < kPagesMax) AddPage();
  worker.change.page = random_() % pages_.size();
  worker.change.slot = random_() % kSlots;
  Slot& slot = SlotOf(worker.change);
  if (worker.changes_left == 0 || (slot.locked_by >= 0 && slot.locked_by != static_cast<int>(w))) {
    worker.at = worker.undo.empty() ? At::kEnded : At::kAbort;
    return;
  }
  slot.locked_by = static_cast<int>(w);
  for (uint32_t j = 0; j < logs_count_ && !slot.lv.empty(); ++j) worker.lv[j] = std::max(worker.lv[j], slot.lv[j]);
  ReserveChange(w, /*compensates=*/false);
}

void DifferentialRun::ReserveChange(uint32_t w, bool compensates) {
  Worker& worker = workers_[w];
  if (compensates) {
    worker.change = worker.undo.back();
  } else {
    const Image before = SlotOf(worker.change).image;
    Image after{true, before.key, ++next_value_};
    if (!before.present) after.key = next_value_;
    if (before.present && OneIn(3)) after = Image();
    worker.change.presence = before.present != after.present;
    worker.change.key = before.key ^ after.key;
    worker.change.value = before.value ^ after.value;
  }
  worker.compensates = compensates;
  if (!worker.is_active) worker.first_lsn = reserved_[worker.log];
  worker.is_active = true;
  worker.place = Reserve(worker.log, RecordKind::kChange, kChangeBytes - (worker.change.presence ? 0 : 8));
  worker.at = At::kApply;
}

void DifferentialRun::Apply(Worker& worker) {
  Page& page = pages_[worker.change.page];
  Image& image = SlotOf(worker.change).image;
  image.present ^= worker.change.presence;
  if (worker.change.presence) image.key ^= worker.change.key;
  image.value ^= worker.change.value;
  page.dirty = {true, true};
  Record& record = logs_[worker.log][worker.place];
  const format::ChangeBody body{0, worker.change.page, page.number};
  record.body.replace(0, sizeof body, AsBytes(body));
  worker.at = At::kFill;
}

void DifferentialRun::Fill(uint32_t w) {
  Worker& worker = workers_[w];
  Record& record = logs_[worker.log][worker.place];
  const bool first = worker.undo.empty() && !worker.compensates;
  uint16_t flags = worker.compensates ? format::kChangeCompensation : 0;
  if (first) flags |= format::kChangeFirst;
  if (worker.change.presence) flags |= format::kChangePresence;
  record.header.flags = flags;
  record.header.procedure = static_cast<uint16_t>(worker.change.slot);
  record.body.replace(0, sizeof(uint64_t), AsBytes(IdOf(w)));
  record.body.resize(sizeof(format::ChangeBody));
  if (worker.change.presence) record.body += AsBytes(worker.change.key);
  record.body += AsBytes(worker.change.value);
  record.filled = true;
  if (worker.compensates) {
    worker.undo.pop_back();
    worker.at = At::kTakeBack;
    return;
  }
  worker.undo.push_back(worker.change);
  worker.after[{worker.change.page, worker.change.slot}] = SlotOf(worker.change).image;
  --worker.changes_left;
  worker.at = At::kNext;
}

void DifferentialRun::FinishCommit(uint32_t w) {
  Worker& worker = workers_[w];
  Record& record = logs_[worker.log][worker.place];
  record.body = AsBytes(IdOf(w));
  for (uint32_t j = 0; j < logs_count_; ++j) {
    if (worker.lv[j] == 0) continue;
    record.header.lv_mask = static_cast<uint16_t>(record.header.lv_mask | 1u << j);
    record.body += AsBytes(worker.lv[j]);
  }
  record.filled = true;
  commits_.push_back({IdOf(w), worker.log, worker.place, worker.lv, worker.after});
  worker.lv[worker.log] = record.header.lsn + record.header.length;
  for (const auto& [place, image] : worker.after) pages_[place.first].slots[place.second].lv = worker.lv;
  End(w, /*aborted=*/false);
}

void DifferentialRun::LookAgain(Worker& worker) {
  worker.at = flag_ ? At::kTakeBack : At::kUndo;
  if (!flag_) return;
  Record& record = logs_[worker.log][worker.place];
  record.header.kind = static_cast<uint8_t>(RecordKind::kVoid);
  record.filled = true;
}

void DifferentialRun::Undo(Worker& worker) {
  const Change& change = worker.undo.back();
  Image& image = SlotOf(change).image;
  image.present ^= change.presence;
  image.key ^= change.key;
  image.value ^= change.value;
  pages_[change.page].dirty = {true, true};
  worker.undo.pop_back();
}

void DifferentialRun::FillAbort(uint32_t w) {
  Record& record = logs_[workers_[w].log][workers_[w].place];
  record.body = AsBytes(IdOf(w));
  record.filled = true;
  workers_[w].at = At::kEnded;
}

void DifferentialRun::End(uint32_t w, bool aborted) {
  Worker& worker = workers_[w];
  for (Page& page : pages_) {
    for (Slot& slot : page.slots) {
      if (slot.locked_by == static_cast<int>(w)) slot.locked_by = -1;
    }
  }
  worker.is_active = false;
  worker.runs_again = aborted && OneIn(2);
  worker.at = At::kIdle;
}

void DifferentialRun::AddPage() { pages_.emplace_back().number = new_pages_are_; }

// ---- checkpoints

void DifferentialRun::StepCheckpoint() {
  switch (checkpoint_) {
    case Checkpoint::kNone:
      if (OneIn(4)) BeginCheckpoint();
      return;
    case Checkpoint::kBegin:
      FillEmpty(next_log_, RecordKind::kCheckpointBegin, AsBytes(format::CheckpointBeginBody{number_, 0}));
      draft_.begin.push_back(logs_[next_log_].back().header.lsn);
      if (++next_log_ == logs_count_) checkpoint_ = Checkpoint::kCount;
      return;
    case Checkpoint::kCount:
      counted_ = static_cast<uint32_t>(pages_.size());
      new_pages_are_ = number_;
      draft_.tables = {{counted_, kSlots, kTupleBytes, 0}};
      checkpoint_ = Checkpoint::kWait;
      return;
    case Checkpoint::kWait:
      for (uint32_t i = 0; i < logs_count_; ++i) {
        const size_t ready = ReadyUntil(i);
        if (ready < logs_[i].size() && logs_[i][ready].header.lsn < draft_.begin[i]) return;
      }
      checkpoint_ = Checkpoint::kPages;
      return;
    case Checkpoint::kPages:
      return next_page_ < counted_ ? CopyPage() : void(checkpoint_ = Checkpoint::kReset);
    case Checkpoint::kReset:
      flag_ = false;
      next_log_ = 0;
      checkpoint_ = fails_ ? Checkpoint::kNone : Checkpoint::kList;
      return;
    case Checkpoint::kList:
      listed_.clear();
      for (uint32_t w = 0; w < kWorkers; ++w) {
        if (workers_[w].is_active) listed_.emplace_back(IdOf(w), workers_[w].log);
      }
      checkpoint_ = Checkpoint::kEnd;
      return;
    case Checkpoint::kEnd:
      return AppendCheckpointEnd();
    case Checkpoint::kSync:
      for (uint32_t i = 0; i < logs_count_; ++i) {
        const size_t ready = ReadyUntil(i);
        if (ready == 0 || logs_[i][ready - 1].header.lsn < draft_.end[i]) return;
        durable_[i] = std::max(durable_[i], ready);
      }
      checkpoint_ = Checkpoint::kAnchor;
      return;
    case Checkpoint::kAnchor:
      anchor_ = draft_;
      checkpoint_ = Checkpoint::kNone;
      return;
  }
}

// Every page is dirty for the copy of a checkpoint that failed, and the next one takes the same copy.
void DifferentialRun::BeginCheckpoint() {
  draft_ = anchor_;
  draft_.begin.clear();
  draft_.end.clear();
  draft_.needed = reserved_;
  draft_.sequences.clear();
  for (uint32_t w = 0; w < kWorkers; ++w) {
    const Worker& worker = workers_[w];
    if (worker.is_active) draft_.needed[worker.log] = std::min(draft_.needed[worker.log], worker.first_lsn);
    const bool has_ended = worker.at == At::kIdle && !worker.runs_again;
    draft_.sequences.push_back(worker.sequence + has_ended);
  }
  draft_.number = ++number_;
  draft_.copy = 1 - anchor_.copy;
  flag_ = true;
  fails_ = OneIn(5);
  next_log_ = next_page_ = 0;
  checkpoint_ = Checkpoint::kBegin;
}

void DifferentialRun::CopyPage() {
  Page& page = pages_[next_page_];
  page.number = number_;
  const bool is_written = page.dirty[draft_.copy] && !(fails_ && OneIn(2));
  if (is_written) backups_[draft_.copy].pages.insert_or_assign(next_page_, std::pair{number_, ImagesOf(page)});
  page.dirty[draft_.copy] = fails_;
  ++next_page_;
}

void DifferentialRun::AppendCheckpointEnd() {
  std::string active;
  uint32_t count = 0;
  for (const auto& [id, log] : listed_) {
    if (log != next_log_) continue;
    active += AsBytes(id);
    ++count;
  }
  FillEmpty(next_log_, RecordKind::kCheckpointEnd, AsBytes(format::CheckpointEndBody{number_, count}) + active);
  draft_.end.push_back(logs_[next_log_].back().header.lsn);
  if (++next_log_ == logs_count_) checkpoint_ = Checkpoint::kSync;
}

BuiltPage DifferentialRun::ImagesOf(const Page& page) {
  BuiltPage images(kSlots, kTupleBytes);
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    const Image& image = page.slots[slot].image;
    if (image.present) images.Put(slot, image.key, AsBytes(image.value));
  }
  return images;
}

// ---- crashes

DifferentialRun::Disk DifferentialRun::Crash() {
  Disk disk;
  std::vector<size_t> kept(logs_count_);
  std::vector<uint64_t> end(logs_count_);
  for (uint32_t i = 0; i < logs_count_; ++i) {
    kept[i] = durable_[i] + random_() % (ReadyUntil(i) - durable_[i] + 1);
    LogBuilder built(kRunId, i, logs_count_, format::Scheme::kDifferential);
    built.RingBytes(0).PayloadIs(format::Payload::kData);
    for (size_t n = 0; n < kept[i]; ++n) built.Raw(logs_[i][n].header, logs_[i][n].body);
    end[i] = built.End();
    disk.logs.push_back(built.Bytes());
  }
  BuiltAnchor anchor = anchor_;
  for (const auto& [page, frame] : backups_[anchor_.copy].pages) {
    if (page >= anchor_.tables[0].pages) continue;
    anchor.tables[0].checksum ^=
        PutFrame(disk.backups[BackupName(anchor_.copy, 0, page % kParts)], kParts,
                 FrameOf(kRunId, anchor_.copy, 0, page, frame.first, frame.second), frame.second);
  }
  disk.anchor = BytesOf(anchor);
  disk.number = anchor_.number;
  disk.expected = initial_;
  for (const Commit& commit : commits_) {
    bool wins = commit.place < kept[commit.log];
    for (uint32_t j = 0; j < logs_count_; ++j) wins &= commit.lv[j] <= end[j];
    if (!wins) continue;
    disk.winners.push_back(commit.id);
    for (const auto& [place, image] : commit.after) disk.expected[place] = image;
  }
  std::erase_if(disk.expected, [](const auto& slot) { return !slot.second.present; });
  std::sort(disk.winners.begin(), disk.winners.end());
  return disk;
}

}  // namespace dbx
