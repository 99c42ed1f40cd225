#include "system/reference/reference_pages.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "system/reference/reference_file.h"

namespace dbx::reference {
namespace {

constexpr uint32_t kBackupSalt = 0x100;
constexpr uint64_t kRowsPerPageMax = 1 << 15, kTupleBytesMax = 1 << 20;
// Flags of a change.
constexpr uint16_t kFirst = 1, kPresence = 2, kCompensation = 4, kRuns = 8, kImages = 16, kErases = 32;
// Of the end of a transaction.
constexpr uint16_t kStampedEnd = 1;
// Methods of logging.
constexpr uint32_t kOnePass = 0, kPhysical = 2;

bool IsZero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

// `anchor`: what is known of the newest complete backup.
struct Anchor {
  uint32_t number = 0;
  uint32_t copy = 0;
  uint32_t method = 0;
  uint32_t parts = 0;
  std::vector<uint64_t> begin, end, needed;  // by log
  std::vector<uint64_t> checksums;           // by table: of its frames, combined by XOR
  std::vector<uint64_t> sequences;           // by worker: lower ones had ended before the checkpoint began
};

void CheckIdentity(const FileImage& file, const ReferenceLogs& logs) {
  for (const size_t at : {16, 24}) {  // database, run: at the same places as in a log's header
    if (Load(file, at, 8) == LoadUint(logs.common_header, at, 8)) continue;
    Bad(file, at, at == 16 ? "it is of another database" : "it is of another run", ExitStatus::kMismatch);
  }
}

Anchor ReadAnchor(const FileImage& file, const ReferenceLogs& logs, std::vector<TablePages>& tables) {
  CheckSealed(file, "DBXANC\r\n", file.bytes.size());
  CheckIdentity(file, logs);
  Anchor anchor;
  anchor.number = static_cast<uint32_t>(Load(file, 32, 4));
  anchor.copy = static_cast<uint32_t>(Load(file, 36, 2));
  anchor.method = static_cast<uint32_t>(Load(file, 38, 1));
  anchor.parts = static_cast<uint32_t>(Load(file, 40, 4));
  const uint64_t log_count = Load(file, 44, 4), table_count = Load(file, 48, 4), workers = Load(file, 52, 4);
  if (anchor.copy > 1) Bad(file, 36, "a backup has two copies");
  if (anchor.method > kPhysical) Bad(file, 38, "a method that is not known", ExitStatus::kMismatch);
  if (anchor.parts == 0) Bad(file, 40, "a backup without parts");
  if (log_count != logs.logs.size()) Bad(file, 44, "another number of logs");
  const uint64_t bytes = 448 + 16 * table_count + 8 * workers;
  if (Load(file, 56, 8) != bytes || file.bytes.size() != (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes) {
    Bad(file, 56, "another size than that of what it says it holds");
  }
  for (uint64_t i = 0; i < log_count; ++i) {
    anchor.begin.push_back(Load(file, 64 + 8 * i, 8));
    anchor.end.push_back(Load(file, 192 + 8 * i, 8));
    anchor.needed.push_back(Load(file, 320 + 8 * i, 8));
  }
  for (uint64_t i = 0; i < table_count; ++i) {
    const uint64_t at = 448 + 16 * i, rows = Load(file, at + 4, 4), tuple = Load(file, at + 8, 4);
    if (rows == 0 || rows > kRowsPerPageMax || tuple > kTupleBytesMax) Bad(file, at, "a table of impossible pages");
    tables.push_back(
        {static_cast<uint32_t>(Load(file, at, 4)), static_cast<uint32_t>(rows), static_cast<uint32_t>(tuple), {}});
    anchor.checksums.push_back(Load(file, at + 12, 4));
  }
  for (uint64_t i = 0; i < workers; ++i) anchor.sequences.push_back(Load(file, 448 + 16 * table_count + 8 * i, 8));
  return anchor;
}

// The part in which a page lies, and where in it.
std::string PartName(const Anchor& anchor, size_t table, uint32_t page) {
  char name[64];
  std::snprintf(name, sizeof name, "backup-%c-%02zu-%02u.bak", anchor.copy == 0 ? 'a' : 'b', table,
                page % anchor.parts);
  return name;
}
uint64_t PlaceInPart(const Anchor& anchor, const TablePages& table, uint32_t page) {
  const uint64_t frame = (32 + table.ImageBytes() + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  return page / anchor.parts * frame;
}

const FileImage& PartOf(const RunImage& run, const Anchor& anchor, size_t table, uint32_t page) {
  const std::string name = PartName(anchor, table, page);
  for (const FileImage& file : run.backups) {
    if (file.path.ends_with("/" + name) || file.path == name) return file;
  }
  Bad(*run.anchor, 0, "it names a backup of which " + name + " is missing", ExitStatus::kMismatch);
}

// Puts the images of a page of the backup into `tables`. Returns the checksum of its frame.
uint64_t ReadPage(const RunImage& run, const ReferenceLogs& logs, const Anchor& anchor, size_t table, uint32_t page,
                  TablePages& pages) {
  const FileImage& part = PartOf(run, anchor, table, page);
  const uint64_t at = PlaceInPart(anchor, pages, page), end = PlaceInPart(anchor, pages, page + anchor.parts);
  if (end > part.bytes.size()) Bad(part, at, "it ends before page " + std::to_string(page));
  const Bytes frame = part.bytes.subspan(at, end - at);
  const auto require = [&](bool condition, uint64_t offset, const char* why, ExitStatus status = ExitStatus::kCorrupt) {
    if (!condition) Bad(part, at + offset, why, status);
  };
  require(Crc32c(frame.subspan(4)) == LoadUint(frame, 0, 4), 0, "bad checksum of a page");
  require(LoadUint(frame, 4, 4) == SaltOf(logs.run_id, kBackupSalt + anchor.copy), 4, "a page of another run or copy",
          ExitStatus::kMismatch);
  require(LoadUint(frame, 8, 4) == page && LoadUint(frame, 16, 2) == table, 8, "a page of another place");
  require(LoadUint(frame, 12, 4) <= anchor.number, 12, "a page of a later checkpoint than the anchor's");
  require(LoadUint(frame, 18, 2) == anchor.copy, 18, "a page of the other copy");
  require(LoadUint(frame, 20, 4) == pages.rows_per_page && LoadUint(frame, 24, 4) == pages.tuple_bytes, 20,
          "a page of another shape than its table's");
  const Bytes images = frame.subspan(32, pages.ImageBytes());
  pages.images[page].assign(images.begin(), images.end());
  return LoadUint(frame, 0, 4);
}

// One log, attempt by attempt.
class ChangesOfLog {
 public:
  ChangesOfLog(const ReferenceLogs& logs, uint32_t log, const Anchor& anchor, const RecoveredSet& set,
               std::vector<TablePages>& tables)
      : logs_(logs), log_(logs.logs[log]), index_(log), anchor_(anchor), tables_(tables) {
    for (const TxnRef& at : set.order) {
      if (at.log == log) winners_.push_back(at.lsn);
    }
    if (!log_.is_cut()) begun_ = 0;
    std::sort(winners_.begin(), winners_.end());
  }

  void Apply() {
    for (Cursor at(logs_, index_); !at.AtEnd(); at.Next()) Take(at.record());
    for (const auto& [id, attempt] : open_) Undo(attempt);
    if (anchor_.number > 0 && !(found_begin_ && found_end_)) {
      throw Error(ExitStatus::kCorrupt, log_.Complaint(log_.end, "the log ends before the checkpoint of its anchor"));
    }
  }

 private:
  struct Attempt {
    std::vector<Record> changes;
    size_t compensations = 0;  // among them
    bool is_cut = false;       // its first change was truncated
  };

  void Require(bool condition, const Record& record, const std::string& why) const {
    if (!condition) throw Error(ExitStatus::kCorrupt, log_.Complaint(record.lsn, why));
  }

  void Take(const Record& record) {
    switch (record.kind) {
      case Kind::kChange:
        return TakeChange(record);
      case Kind::kCommit:
      case Kind::kAbort:
        return TakeEnd(record);
      case Kind::kCheckpointBegin:
        return TakeCheckpointBegin(record);
      case Kind::kCheckpointEnd:
        return TakeCheckpointEnd(record);
      case Kind::kCommand:
      case Kind::kData:
      case Kind::kStamped:
      case Kind::kVersionedCommand:
        return Require(false, record, "a transaction of another kind of log");
      default:
        return;
    }
  }

  // Where a log was truncated below, the number of the last BEGIN there is known from the next BEGIN or END on, as
  // BEGINs count up by one: the changes until then wait for it.
  void CheckNumber(const Record& record, uint32_t number) {
    if (!begun_) return early_.push_back(record);
    Require(number <= *begun_ && number + 1 >= *begun_, record,
            "a change of a page with the number of a checkpoint that had not begun, or had been overtaken");
  }
  void SetBegun(uint32_t number) {
    begun_ = number;
    for (const Record& record : std::exchange(early_, {})) CheckNumber(record, record.number);
  }

  // All places below BEGIN(h) were filled before checkpoint h reached a page, and h - 1 had reached all pages by then:
  // between BEGIN(h) and the next one in the log a page has the number h - 1 or h.
  void TakeChange(const Record& record) {
    CheckNumber(record, record.number);
    CheckPlace(record);
    CheckStillActive(record);
    const bool is_first = (record.flags & kFirst) != 0;
    const auto [attempt, is_new] = open_.try_emplace(record.txn_id);
    attempt->second.is_cut |= is_new && !is_first && IsOfCutAttempt(record);
    Require(is_new == (is_first || (is_new && attempt->second.is_cut)), record,
            is_first ? "a transaction begins twice" : "a change by no transaction");
    workers_.insert(TxnId{record.txn_id}.worker().value());
    attempt->second.changes.push_back(record);
    attempt->second.compensations += (record.flags & kCompensation) != 0;
    Require(attempt->second.is_cut || 2 * attempt->second.compensations <= attempt->second.changes.size(), record,
            "more is taken back than was changed");
  }

  void CheckPlace(const Record& record) const {
    Require(record.table < tables_.size(), record, "a change in a table that does not exist");
    const TablePages& table = tables_[record.table];
    Require(record.procedure < table.rows_per_page, record, "a change in a slot that its page does not have");
    Require(((record.flags & kImages) != 0) == (anchor_.method == kPhysical), record, "a change by another method");
    const size_t key_bytes = (record.flags & kPresence) != 0 ? 8 : 0;
    const Bytes image = record.payload.subspan(key_bytes);
    if ((record.flags & kRuns) != 0) return CheckRuns(record, image, table.tuple_bytes);
    const size_t bytes = (table.tuple_bytes + 7) / 8 * 8;
    if ((record.flags & kImages) != 0) return CheckImages(record, image, bytes, table.tuple_bytes);
    Require(image.size() == bytes, record, "a change of another size than its table's rows");
    Require(IsZero(image.subspan(table.tuple_bytes)), record, "a change behind the end of a row");
  }

  // Images: that before, then that after; zeros where the row is not there.
  void CheckImages(const Record& record, Bytes images, size_t bytes, size_t tuple_bytes) const {
    Require(images.size() == 2 * bytes, record, "images of another size than their table's rows");
    const Bytes before = images.first(bytes), after = images.subspan(bytes);
    Require(IsZero(before.subspan(tuple_bytes)) && IsZero(after.subspan(tuple_bytes)), record,
            "an image goes on behind the end of its row");
    if ((record.flags & kPresence) == 0) return;
    Require(IsZero((record.flags & kErases) != 0 ? after : before), record, "an image of a row that is not there");
  }

  // Runs: u16 first word, u16 words of 4 bytes, then these; ascending, with gaps between them.
  void CheckRuns(const Record& record, Bytes image, size_t tuple_bytes) const {
    size_t next = 0;
    Require(image.size() % 8 == 0, record, "runs that are cut off");
    ForEachRun(image, [&](size_t word, Bytes run) {
      Require(!run.empty(), record, "an impossible run");
      Require(next == 0 || word > next, record, "runs that touch, or do not ascend");
      next = word + run.size() / 4;
      const size_t end = std::min(4 * next, tuple_bytes);
      Require(4 * word < tuple_bytes && IsZero(run.subspan(end - std::min(end, 4 * word))), record,
              "a run behind the end of a row");
    });
  }

  // `visit(word, bytes)`; with no bytes for a run that is empty or cut off. Zeros that fill up the last 8 bytes are
  // none.
  template <class Visit>
  static void ForEachRun(Bytes image, Visit&& visit) {
    while (!image.empty() && !(image.size() < 8 && IsZero(image))) {
      const size_t word = LoadUint(image, 0, 2), bytes = 4 * LoadUint(image, 2, 2);
      if (bytes == 0 || bytes > image.size() - 4) return visit(word, Bytes());
      visit(word, image.subspan(4, bytes));
      image = image.subspan(4 + bytes);
    }
  }

  // A transaction that had ended before the anchored checkpoint began has nothing above its BEGIN.
  void CheckStillActive(const Record& record) const {
    if (anchor_.number == 0 || record.lsn < anchor_.begin[index_]) return;
    const TxnId id{record.txn_id};
    const bool had_ended =
        id.worker().value() < anchor_.sequences.size() && id.sequence() < anchor_.sequences[id.worker().value()];
    Require(!had_ended, record, "the transaction had ended before the anchor's checkpoint began");
  }

  // An attempt whose first change was truncated ended before the anchored checkpoint began, and none of its worker's is
  // before it in what is left.
  bool IsOfCutAttempt(const Record& record) const {
    const TxnId id{record.txn_id};
    const uint32_t worker = id.worker().value();
    return log_.is_cut() && record.lsn < anchor_.begin[index_] && workers_.count(worker) == 0 &&
           worker < anchor_.sequences.size() && id.sequence() <= anchor_.sequences[worker];
  }

  void TakeEnd(const Record& record) {
    if (open_.count(record.txn_id) == 0 && IsOfCutAttempt(record)) open_[record.txn_id].is_cut = true;
    workers_.insert(TxnId{record.txn_id}.worker().value());
    const auto ended = open_.find(record.txn_id);
    Require(ended != open_.end(), record, "the end of a transaction that has changed nothing");
    CheckStillActive(record);
    const Attempt& attempt = ended->second;
    Require(((record.flags & kStampedEnd) != 0) == (anchor_.method == kPhysical), record, "an end by another method");
    if (record.kind == Kind::kCommit) {
      Require(attempt.compensations == 0, record, "a transaction that was taken back commits");
      const TxnId id{record.txn_id};
      Require(!attempt.is_cut || id.sequence() < anchor_.sequences[id.worker().value()], record,
              "a transaction commits that was truncated, and had not ended according to the anchor");
      const bool wins = std::binary_search(winners_.begin(), winners_.end(), record.lsn);
      wins ? Redo(attempt) : Undo(attempt);
    } else {
      Require(attempt.is_cut || anchor_.method == kOnePass || 2 * attempt.compensations == attempt.changes.size(),
              record, "an ABORT before all is taken back");
      if (record.lsn > anchor_.begin[index_]) Undo(attempt);
    }
    open_.erase(ended);
  }

  void TakeCheckpointBegin(const Record& record) {
    if (!begun_) SetBegun(record.number - 1);
    Require(record.number > *begun_, record, "a checkpoint begins whose number is not larger than the last one's");
    begun_ = record.number;
    if (record.number != anchor_.number) return;
    Require(record.lsn == anchor_.begin[index_], record, "the anchor says that its checkpoint began elsewhere");
    found_begin_ = true;
    for (const auto& [id, attempt] : open_) {
      Require(!attempt.is_cut, record, "a transaction has not ended whose first change was truncated");
    }
  }

  // Those that have changes in the backup and have not ended are listed.
  void TakeCheckpointEnd(const Record& record) {
    if (!begun_) SetBegun(record.number);
    Require(record.number == *begun_, record, "another checkpoint ends than the last that began");
    if (record.number != anchor_.number) return;
    Require(record.lsn == anchor_.end[index_], record, "the anchor says that its checkpoint ended elsewhere");
    found_end_ = true;
    std::vector<uint64_t> listed;
    for (size_t at = 0; at < record.payload.size(); at += 8) listed.push_back(LoadUint(record.payload, at, 8));
    for (const auto& [id, attempt] : open_) {
      const bool is_in_backup = std::any_of(attempt.changes.begin(), attempt.changes.end(),
                                            [this](const Record& change) { return change.number < anchor_.number; });
      Require(!is_in_backup || std::count(listed.begin(), listed.end(), id) > 0, record,
              "it does not list a transaction that has changes in the backup");
    }
  }

  void Redo(const Attempt& attempt) {
    for (const Record& change : attempt.changes) {
      if (change.number >= anchor_.number) Combine(change);
    }
  }
  void Undo(const Attempt& attempt) {
    for (const Record& change : attempt.changes) {
      if (change.number < anchor_.number) Combine(change);
    }
  }

  void Combine(const Record& change) {
    Require(change.lsn >= anchor_.needed[index_], change, "recovery needs it, and the anchor says that it does not");
    TablePages& table = tables_[change.table];
    const uint32_t slot = change.procedure;
    std::vector<std::byte>& images = table.images[change.page];
    images.resize(table.ImageBytes());
    const auto combine = [&](size_t at, Bytes with) {
      for (size_t i = 0; i < with.size(); ++i) images[at + i] ^= with[i];
    };
    const size_t at = table.BitsBytes() + slot * table.SlotBytes();
    Bytes image = change.payload;
    if ((change.flags & kPresence) != 0) {
      images[slot / 8] ^= std::byte{1} << slot % 8;
      combine(at, image.first(8));
      image = image.subspan(8);
    }
    if ((change.flags & kImages) != 0) {
      combine(at + 8, image.first(image.size() / 2));
      return combine(at + 8, image.subspan(image.size() / 2));
    }
    if ((change.flags & kRuns) == 0) return combine(at + 8, image);
    ForEachRun(image, [&](size_t word, Bytes run) {
      combine(at + 8 + 4 * word, run.first(std::min(run.size(), table.SlotBytes() - 8 - 4 * word)));
    });
  }

  const ReferenceLogs& logs_;
  const Log& log_;
  const uint32_t index_;
  const Anchor& anchor_;
  std::vector<TablePages>& tables_;
  std::vector<uint64_t> winners_;     // the places of their COMMITs
  std::map<uint64_t, Attempt> open_;  // by the transaction's id
  std::set<uint32_t> workers_;        // of which there was a record
  std::optional<uint32_t> begun_;     // the number of the last checkpoint, once it is known
  std::vector<Record> early_;         // changes before that
  bool found_begin_ = false, found_end_ = false;
};

// The places that the anchor names lie in their logs.
void CheckPlaces(const FileImage& file, const Anchor& anchor, const ReferenceLogs& logs) {
  for (size_t i = 0; i < logs.logs.size(); ++i) {
    const Log& log = logs.logs[i];
    const uint64_t begin = anchor.begin[i], end = anchor.end[i], needed = anchor.needed[i];
    const auto require = [&](bool condition, const char* why) {
      if (!condition) Bad(file, 64 + 8 * i, log.path + ": " + why);
    };
    require(needed >= log.start && needed <= begin && begin <= end, "its places do not ascend");
    if (anchor.number == 0) require(end == log.start, "the first backup, and not the start of the log");
    if (anchor.number > 0) require(begin < end && end < log.end, "the log ends before the checkpoint");
  }
}

// Presence bits beyond the last slot, and images of free slots.
void CheckFree(const TablePages& table, uint32_t page, const std::string& where) {
  const auto require = [&](bool condition, const char* why) {
    if (!condition) throw Error(ExitStatus::kCorrupt, where + why);
  };
  for (uint32_t slot = 0; slot < table.BitsBytes() * 8; ++slot) {
    if (slot >= table.rows_per_page) require(!table.IsPresent(page, slot), "a slot that is not there is present");
    if (slot >= table.rows_per_page || table.IsPresent(page, slot)) continue;
    require(IsZero(table.Slot(page, slot)), "a free slot is not zero");
  }
}

}  // namespace

std::vector<TablePages> ReadPages(const RunImage& run, const ReferenceLogs& logs, const RecoveredSet& set) {
  if (!run.anchor) throw Error(ExitStatus::kMismatch, logs.logs.front().path + "@0: the anchor of its run is missing");
  std::vector<TablePages> tables;
  const Anchor anchor = ReadAnchor(*run.anchor, logs, tables);
  CheckPlaces(*run.anchor, anchor, logs);
  for (size_t table = 0; table < tables.size(); ++table) {
    uint64_t checksum = 0;
    for (uint32_t page = 0; page < tables[table].backup_pages; ++page) {
      checksum ^= ReadPage(run, logs, anchor, table, page, tables[table]);
    }
    if (checksum != anchor.checksums[table]) {
      Bad(*run.anchor, 448 + 16 * table + 12, "the backup of the table has pages of another checkpoint",
          ExitStatus::kMismatch);
    }
  }
  for (uint32_t log = 0; log < logs.logs.size(); ++log) ChangesOfLog(logs, log, anchor, set, tables).Apply();
  for (size_t table = 0; table < tables.size(); ++table) {
    for (const auto& [page, images] : tables[table].images) {
      CheckFree(
          tables[table], page,
          "bad page " + std::to_string(page) + " of table " + std::to_string(table) + ", " + run.anchor->path + "@0: ");
    }
  }
  return tables;
}

void ReplayPages(const RunImage& run, const ReferenceLogs& logs, const RecoveredSet& set, Database& database) {
  const std::vector<TablePages> tables = ReadPages(run, logs, set);
  const FileImage& anchor = *run.anchor;
  if (tables.size() != database.table_count()) Bad(anchor, 48, "another number of tables", ExitStatus::kMismatch);
  for (size_t i = 0; i < tables.size(); ++i) {
    const TablePages& pages = tables[i];
    Table& table = database.table(TableId(static_cast<uint16_t>(i)));
    if (pages.tuple_bytes != table.tuple_bytes())
      Bad(anchor, 448 + 16 * i, "rows of another size", ExitStatus::kMismatch);
    for (const auto& [page, images] : pages.images) {
      for (uint32_t slot = 0; slot < pages.rows_per_page; ++slot) {
        if (!pages.IsPresent(page, slot)) continue;
        const Bytes image = pages.Slot(page, slot);
        const Key key = LoadUint(image, 0, 8);
        if (table.Find(key) != nullptr) {
          Bad(anchor, 0,
              "key " + std::to_string(key) + " of table " + std::to_string(i) + " is there twice, in page " +
                  std::to_string(page) + " again");
        }
        table.LoadRow(WorkerId(0), key, image.subspan(8, pages.tuple_bytes));
      }
    }
  }
}

}  // namespace dbx::reference
