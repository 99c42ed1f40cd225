#include "tests/logging/differential/paged_run.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "logging/backup/backup_files.h"
#include "logging/differential/differential_recovery.h"
#include "tests/logging/recovery_harness.h"

namespace dbx {
namespace {

// The number, which a change of one bit does not hide, and its lowest byte at the end, so that runs have gaps.
std::string TupleFor(uint16_t table, uint64_t value) {
  std::string tuple(PagedRun::kTupleBytes[table], '\0');
  std::memcpy(tuple.data(), &value, sizeof value);
  tuple.back() = static_cast<char>(value);
  return tuple;
}

std::string Xor(std::string a, const std::string& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] ^ b[i]);
  return a;
}

void Raise(std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

// Runs of words that changed, each word by itself a run unless it adjoins the one before; nothing if they are no
// shorter.
std::optional<std::string> RunsOf(std::string delta) {
  const size_t tuple_bytes = delta.size();
  delta.resize((tuple_bytes + 3) / 4 * 4);
  std::string runs;
  size_t open = std::string::npos;  // where the last run's header is
  for (size_t word = 0; word < delta.size() / 4; ++word) {
    const std::string bytes = delta.substr(word * 4, 4);
    if (bytes == std::string(4, '\0')) {
      open = std::string::npos;
      continue;
    }
    format::ChangeRun run{static_cast<uint16_t>(word), 0};
    if (open == std::string::npos) {
      open = runs.size();
      runs.append(sizeof run, '\0');
    } else {
      std::memcpy(&run, runs.data() + open, sizeof run);
    }
    ++run.words;
    std::memcpy(runs.data() + open, &run, sizeof run);
    runs += bytes;
  }
  if ((runs.size() + 7) / 8 >= (tuple_bytes + 7) / 8) return std::nullopt;
  return runs;
}

// Whatever number of parts the anchor names.
BackupShape BackupShapeOf(BackupAnchor anchor, const std::vector<std::string>& directories) {
  anchor.parts = static_cast<uint32_t>(directories.size());
  return ShapeOf(anchor, directories);
}

}  // namespace

PagedRun::PagedRun(const Shape& shape) : shape_(shape), durable_(shape.logs) {
  for (uint32_t i = 0; i < shape.logs; ++i) {
    logs_.emplace_back(kRunId, i, shape.logs, format::Scheme::kDifferential);
    logs_.back().PayloadIs(format::Payload::kData);
  }
}

void PagedRun::Load(const Place& at, Key key, uint64_t value) {
  AddPages(at.table, at.page + 1);
  Slot& slot = SlotAt(at);
  slot.present = true;
  slot.key = key;
  slot.tuple = TupleFor(at.table, value);
  loaded_[at] = {key, slot.tuple};
}

void PagedRun::Start() {
  anchor_.database_id = 0xDB;
  anchor_.run_id = kRunId;
  anchor_.method = shape_.method;
  anchor_.parts = shape_.parts;
  anchor_.begin = anchor_.end = anchor_.needed = std::vector<Lsn>(shape_.logs);
  anchor_.sequences = {0};
  for (uint16_t table = 0; table < kTupleBytes.size(); ++table) {
    anchor_.tables.push_back({pages(table), kRowsPerPage, kTupleBytes[table]});
    for (Page& page : pages_[table]) {
      copies_[0][table].push_back({ImagesOf(page), 0});
      page.dirty[0] = false;
    }
  }
  next_ = anchor_;
}

// The first change of the page by a checkpoint that runs comes after it: it counts as reached.
void PagedRun::AddPages(uint16_t table, uint32_t count) {
  while (pages(table) < count) {
    Page& page = pages_[table].emplace_back();
    page.number = number_;
    page.slots.assign(kRowsPerPage,
                      Slot{.tuple = std::string(kTupleBytes[table], '\0'), .lv = std::vector<uint64_t>(shape_.logs)});
  }
}

bool PagedRun::IsFree(const Place& at, uint64_t id) const {
  return at.page >= pages(at.table) || SlotAt(at).holder.value_or(id) == id;
}

void PagedRun::Announce(uint64_t id, uint32_t log) {
  CHECK(!attempts_.contains(id) && !lingering_.contains(id));
  attempts_[id] = {.log = log, .first = end(log), .lv = std::vector<uint64_t>(shape_.logs)};
}

void PagedRun::Lock(uint64_t id, const Place& at) {
  CHECK(IsFree(at, id));
  SlotAt(at).holder = id;
  Raise(attempts_.at(id).lv, SlotAt(at).lv);
}

void PagedRun::Read(uint64_t id, const Place& at) {
  CHECK(IsFree(at, id));
  Raise(attempts_.at(id).lv, SlotAt(at).lv);
}

void PagedRun::Put(uint64_t id, const Place& at, Key key, uint64_t value) {
  AddPages(at.table, at.page + 1);
  Lock(id, at);
  const Slot& slot = SlotAt(at);
  CHECK(!slot.present || slot.key == key);
  const std::string tuple = TupleFor(at.table, value);
  Make(id, {at, !slot.present, slot.present ? 0 : key, Xor(slot.tuple, tuple), std::pair(key, tuple)});
}

void PagedRun::Delete(uint64_t id, const Place& at) {
  Lock(id, at);
  const Slot& slot = SlotAt(at);
  CHECK(slot.present);
  Make(id, {at, true, slot.key, slot.tuple, std::nullopt});
}

void PagedRun::Make(uint64_t id, const Change& change) {
  Attempt& attempt = attempts_.at(id);
  Append(id, change, attempt.changes.empty() ? format::kChangeFirst : 0);
  attempt.changes.push_back(change);
}

void PagedRun::Append(uint64_t id, const Change& change, uint16_t flags) {
  BuiltChange built{.txn_id = id,
                    .table = change.at.table,
                    .page = change.at.page,
                    .slot = change.at.slot,
                    .number = pages_[change.at.table][change.at.page].number,
                    .image = change.delta,
                    .flags = flags,
                    .key = change.key};
  if (change.presence) built.flags |= format::kChangePresence;
  if (shape_.method == DiffMethod::kPl2p) {
    const Slot& slot = SlotAt(change.at);
    built.image = ImagesOf(slot, change.delta);
    built.flags |= format::kChangeImages;
    if (change.presence && slot.present) built.flags |= format::kChangeErases;
  } else if (const auto runs = shape_.runs ? RunsOf(change.delta) : std::nullopt) {
    built.image = *runs;
    built.flags |= format::kChangeRuns;
  }
  log(attempts_.at(id).log).Change(built);
  Apply(change);
}

// Both images, each padded to whole words.
std::string PagedRun::ImagesOf(const Slot& before, const std::string& delta) {
  const size_t whole = (delta.size() + 7) / 8 * 8;
  std::string images = before.tuple;
  images.resize(whole);
  images += Xor(before.tuple, delta);
  images.resize(2 * whole);
  return images;
}

void PagedRun::AppendAbort(uint64_t id) {
  const Attempt& attempt = attempts_.at(id);
  if (attempt.changes.empty()) return;
  if (shape_.method != DiffMethod::kPl2p) {
    log(attempt.log).Abort(id);
  } else {
    log(attempt.log).Abort(id, attempt.lv, StampOf(id));
  }
}

uint64_t PagedRun::StampOf(uint64_t id) {
  if (!attempts_.at(id).stamp) DrawStamp(id);
  return *attempts_.at(id).stamp;
}

void PagedRun::Apply(const Change& change) {
  Slot& slot = SlotAt(change.at);
  slot.present ^= change.presence;
  slot.key ^= change.key;
  slot.tuple = Xor(slot.tuple, change.delta);
  Page& page = pages_[change.at.table][change.at.page];
  page.dirty[0] = page.dirty[1] = true;
}

void PagedRun::Release(uint64_t id, const std::vector<uint64_t>* lv) {
  for (const Change& change : attempts_.at(id).changes) {
    Slot& slot = SlotAt(change.at);
    slot.holder.reset();
    if (lv != nullptr) slot.lv = *lv;
  }
  attempts_.erase(id);
}

void PagedRun::Commit(uint64_t id) {
  const Attempt& attempt = attempts_.at(id);
  if (attempt.changes.empty()) return Release(id, nullptr);
  std::vector<uint64_t> published = attempt.lv;
  const bool is_stamped = shape_.method == DiffMethod::kPl2p;
  log(attempt.log).Commit(id, attempt.lv, is_stamped ? std::optional(StampOf(id)) : std::nullopt);
  published[attempt.log] = end(attempt.log);
  committed_.push_back({id, attempt.log, end(attempt.log), attempt.lv, attempt.changes});
  Release(id, &published);
}

void PagedRun::Abort(uint64_t id) {
  const Attempt& attempt = attempts_.at(id);
  const bool compensates = checkpoint_runs_ || shape_.method != DiffMethod::kDl1p;
  if (!compensates) AppendAbort(id);
  for (auto change = attempt.changes.rbegin(); change != attempt.changes.rend(); ++change) {
    if (compensates) {
      Append(id, *change, format::kChangeCompensation);
    } else {
      Apply(*change);
    }
  }
  if (compensates) AppendAbort(id);
  Release(id, nullptr);
}

void PagedRun::RaiseFlag() {
  CHECK(!checkpoint_runs_);
  next_ = anchor_;
  next_.copy = 1 - anchor_.copy;
  next_.number = number_ + 1;
  next_.sequences = ended_below_;
  for (uint32_t i = 0; i < shape_.logs; ++i) next_.needed[i] = Lsn(end(i));
  const auto need = [&](uint32_t log, uint64_t first) { next_.needed[log] = std::min(next_.needed[log], Lsn(first)); };
  for (const auto& [id, attempt] : attempts_) need(attempt.log, attempt.first);
  for (const auto& [id, lingering] : lingering_) need(lingering.log, lingering.first);
  for (uint32_t i = 0; i < shape_.logs; ++i) next_.needed[i] = std::max(next_.needed[i], anchor_.needed[i]);
  checkpoint_runs_ = true;
}

void PagedRun::AppendBegin(uint32_t index) {
  next_.begin[index] = Lsn(end(index));
  log(index).CheckpointBegin(next_.number);
}

void PagedRun::CountPages() {
  number_ = next_.number;
  for (uint16_t table = 0; table < kTupleBytes.size(); ++table) next_.tables[table].pages = pages(table);
}

void PagedRun::BeginCheckpoint() {
  RaiseFlag();
  for (uint32_t i = 0; i < shape_.logs; ++i) AppendBegin(i);
  CountPages();
}

void PagedRun::CopyPage(uint16_t table, uint32_t number) {
  Page& page = pages_[table].at(number);
  if (page.number == number_) return;  // it was reached before
  page.number = number_;
  if (!page.dirty[next_.copy]) return;
  page.dirty[next_.copy] = false;
  std::vector<CopiedPage>& copy = copies_[next_.copy][table];
  if (copy.size() <= number) copy.resize(number + 1);
  copy[number] = {ImagesOf(page), number_};
}

void PagedRun::CopyPages() {
  for (uint16_t table = 0; table < kTupleBytes.size(); ++table) {
    for (uint32_t page = 0; page < pages_to_copy(table); ++page) CopyPage(table, page);
  }
}

void PagedRun::EndCheckpoint() { checkpoint_runs_ = false; }

void PagedRun::ListActive() {
  active_.assign(shape_.logs, {});
  for (const auto& [id, attempt] : attempts_) active_[attempt.log].push_back(id);
  for (const auto& [id, lingering] : lingering_) active_[lingering.log].push_back(id);
}

void PagedRun::AppendEnd(uint32_t index) {
  next_.end[index] = Lsn(end(index));
  log(index).CheckpointEnd(next_.number, active_[index]);
}

void PagedRun::AppendEnds() {
  ListActive();
  for (uint32_t i = 0; i < shape_.logs; ++i) AppendEnd(i);
}

void PagedRun::WriteAnchor() {
  for (uint32_t i = 0; i < shape_.logs; ++i) {
    const size_t end_bytes =
        sizeof(format::RecordHeader) + sizeof(format::CheckpointEndBody) + active_[i].size() * sizeof(TxnId);
    durable_[i] = std::max(durable_[i], next_.end[i].value() + end_bytes);
  }
  anchor_ = next_;
}

void PagedRun::Checkpoint() {
  BeginCheckpoint();
  CopyPages();
  EndCheckpoint();
  AppendEnds();
  WriteAnchor();
}

void PagedRun::FailCheckpoint() {
  for (uint16_t table = 0; table < kTupleBytes.size(); ++table) {
    for (uint32_t number = 0; number < pages_to_copy(table); ++number) {
      Page& page = pages_[table][number];
      page.number = number_;
      page.dirty[next_.copy] = true;
    }
  }
  EndCheckpoint();
}

std::string PagedRun::ImagesOf(const Page& page) {
  std::string images(8, '\0');
  for (size_t slot = 0; slot < page.slots.size(); ++slot) {
    const Slot& from = page.slots[slot];
    if (from.present) images[slot / 8] = static_cast<char>(images[slot / 8] | 1 << slot % 8);
    images.append(reinterpret_cast<const char*>(&from.key), sizeof from.key);
    images += from.tuple;
    images.resize((images.size() + 7) / 8 * 8);
  }
  return images;
}

bool PagedRun::IsWinner(const Committed& committed, const std::vector<uint64_t>& ends) const {
  if (committed.end > ends[committed.log]) return false;
  for (uint32_t i = 0; i < shape_.logs; ++i) {
    if (committed.lv[i] > ends[i]) return false;
  }
  return true;
}

// The copy that the anchor does not name may be half-written: it is there, too.
void PagedRun::WriteBackup(Crashed& to) const {
  const BackupAnchor& anchor = to.anchor;
  FaultyFileSystem files;
  for (uint32_t part = 0; part < shape_.parts; ++part) {
    to.directories.push_back("disk" + std::to_string(part));
    files.MakeDirectory(to.directories.back());
  }
  BackupWriter writer(files, BackupShapeOf(anchor, to.directories), /*durable=*/true);
  for (uint32_t copy = 0; copy < kCopies; ++copy) {
    for (uint16_t table = 0; table < kTupleBytes.size(); ++table) {
      for (uint32_t page = 0; page < copies_[copy][table].size(); ++page) {
        const CopiedPage& from = copies_[copy][table][page];
        if (from.images.empty()) continue;
        std::vector<std::byte> frame(writer.shape().FrameBytes(table));
        std::memcpy(frame.data() + sizeof(format::BackupFrame), from.images.data(), from.images.size());
        writer.Write(copy, TableId(table), page, from.number, frame);
      }
    }
    writer.Sync(copy);
  }
  for (uint16_t table = 0; table < kTupleBytes.size(); ++table) {
    BackupAnchor::OfTable& of_table = to.anchor.tables[table];
    of_table.checksum = writer.ChecksumOf(anchor.copy, TableId(table), of_table.pages);
  }
  to.backup = files.VisibleImage();
}

PagedRun::Crashed PagedRun::Crash(const std::vector<uint64_t>& ends, const BackupAnchor* anchor) const {
  Crashed crashed;
  for (uint32_t i = 0; i < shape_.logs; ++i) {
    CHECK(durable_[i] <= ends[i] && ends[i] <= end(i));
    LogBuilder cut = logs_[i];
    cut.Cut(ends[i]);
    crashed.logs.push_back(cut.Bytes());
  }
  crashed.anchor = anchor == nullptr ? anchor_ : *anchor;
  WriteBackup(crashed);
  std::map<Place, std::pair<Key, std::string>> rows = loaded_;
  for (const Committed& committed : committed_) {
    if (!IsWinner(committed, ends)) continue;
    crashed.winners.insert(committed.id);
    for (const Change& change : committed.changes) {
      rows.erase(change.at);
      if (change.row) rows[change.at] = *change.row;
    }
  }
  for (const auto& [at, row] : rows) {
    CHECK(crashed.state.emplace(std::pair(at.table, row.first), row.second).second);
  }
  return crashed;
}

PagedRun::Crashed PagedRun::Crash() const {
  std::vector<uint64_t> ends;
  for (uint32_t i = 0; i < shape_.logs; ++i) ends.push_back(end(i));
  return Crash(ends);
}

PagedRun::Crashed Truncated(PagedRun::Crashed crashed) {
  crashed.anchor.truncates = true;
  for (size_t log = 0; log < crashed.logs.size(); ++log) {
    const auto needed = static_cast<ptrdiff_t>(format::kStreamOffset + crashed.anchor.needed[log].value());
    std::fill(crashed.logs[log].begin() + format::kStreamOffset, crashed.logs[log].begin() + needed, std::byte{0x5a});
  }
  return crashed;
}

namespace {

// The rows that the indexes lead to, which must be those in the pages.
PagedRun::State StateOf(const Database& database) {
  PagedRun::State state;
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    const Table& table = database.table(TableId(i));
    size_t present = 0;
    for (uint32_t page = 0; page < table.pages()->page_count(); ++page) {
      for (uint32_t slot = 0; slot < table.pages()->rows_per_page(); ++slot) {
        present += table.pages()->IsPresent({page, slot});
      }
    }
    CHECK(present == table.row_count());
    table.ForEachRow([&](const Row& row) {
      const auto* const tuple = reinterpret_cast<const char*>(table.tuple(&row));
      state[{i, row.key}] = std::string(tuple, table.tuple_bytes());
    });
  }
  return state;
}

}  // namespace

std::vector<uint32_t> LevelsOf(DiffMethod method) {
  if (method == DiffMethod::kPl2p) return {1, 2, 3};
  return {1, 2, 3, 4};
}

Restarted Restart(const PagedRun::Crashed& crashed, const RestartOptions& options,
                  const std::function<void(Database&)>& use) {
  FaultyFileSystem files(crashed.backup);
  const BackupReader backup(files, BackupShapeOf(crashed.anchor, crashed.directories), crashed.anchor.copy,
                            crashed.anchor.number, PagesOf(crashed.anchor));
  Database database({}, options.workers);
  database.PageEveryTable(512, std::vector<uint32_t>(PagedRun::kTupleBytes.size(), PagedRun::kRowsPerPage));
  for (const uint32_t tuple_bytes : PagedRun::kTupleBytes) {
    database.CreateTable({.name = "of" + std::to_string(tuple_bytes), .columns = {}, .tuple_bytes = tuple_bytes});
  }
  std::vector<std::unique_ptr<recovery_test::ImageDevice>> devices;
  RestartInput input{{}, crashed.anchor, &backup, &database};
  for (uint32_t i = 0; i < crashed.logs.size(); ++i) {
    const std::string path = "disk0/log-0" + std::to_string(i) + ".log";
    devices.push_back(std::make_unique<recovery_test::ImageDevice>(path, crashed.logs[i]));
    input.logs.push_back(
        {devices.back().get(), PagedRun::kRunId, options.ring_bytes, i, static_cast<uint32_t>(crashed.logs.size())});
  }
  DifferentialRecovery recovery(
      {.workers = options.workers, .block_bytes = options.block_bytes, .restart_level = options.level});
  std::vector<std::vector<TxnId>> names;
  Restarted restarted;
  restarted.summary = recovery.Restart(input, &names);
  restarted.state = StateOf(database);
  for (const auto& list : names) {
    for (const TxnId id : list) restarted.winners.insert(id.value);
  }
  if (use) use(database);
  return restarted;
}

}  // namespace dbx
