// The reference recovery of runs that begin with a backup: which changes the backup has, which are redone and undone,
// what is refused. Examples by hand, each of a rule, and the crashes of random runs, which must give what the surviving
// transactions left.
#include "system/reference/reference_pages.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/prelude.h"
#include "tests/reference/differential_run.h"

namespace dbx::reference {
namespace {

using format::DiffMethod;
using format::RecordKind;

constexpr uint64_t kRun = 0xD1FF;
constexpr uint32_t kSlots = 4, kTupleBytes = 8;
constexpr uint16_t kFirst = format::kChangeFirst, kPresence = format::kChangePresence,
                   kCompensation = format::kChangeCompensation, kRuns = format::kChangeRuns;

template <class T>
std::string AsBytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// One table of one page in the backup; slot i has key 10 + i, and its value.
class Example {
 public:
  explicit Example(uint32_t logs = 1) : page_(kSlots, kTupleBytes) {
    for (uint32_t i = 0; i < logs; ++i) {
      logs_.emplace_back(kRun, i, logs, format::Scheme::kDifferential);
      logs_.back().RingBytes(0).PayloadIs(format::Payload::kData);
    }
    anchor_.run_id = kRun;
    anchor_.tables = {{1, kSlots, kTupleBytes, 0}};
    anchor_.begin = anchor_.end = anchor_.needed = std::vector<uint64_t>(logs, 0);
  }

  Example& Backup(uint32_t slot, uint64_t value) {
    page_.Put(slot, 10 + slot, AsBytes(value));
    return *this;
  }
  Example& On(uint32_t log) {
    at_ = log;
    return *this;
  }
  // The value of slot 0, or another, changes between the two; `number` is its page's.
  Example& Change(uint64_t txn, uint64_t from, uint64_t to, uint32_t number, uint16_t flags, uint32_t slot = 0) {
    return Record(txn, 0, slot, number, flags, AsBytes(from ^ to));
  }
  Example& Record(uint64_t txn, uint32_t page, uint32_t slot, uint32_t number, uint16_t flags,
                  const std::string& rest) {
    format::RecordHeader header = log().HeaderOf(RecordKind::kChange);
    header.flags = flags;
    header.procedure = static_cast<uint16_t>(slot);
    log().Raw(header, AsBytes(format::ChangeBody{txn, page, number}) + rest);
    return *this;
  }
  Example& Commit(uint64_t txn, const std::vector<uint64_t>& lv = {}) {
    format::RecordHeader header = log().HeaderOf(RecordKind::kCommit);
    std::string body = AsBytes(txn);
    for (size_t j = 0; j < lv.size(); ++j) {
      header.lv_mask = static_cast<uint16_t>(header.lv_mask | 1u << j);
      body += AsBytes(lv[j]);
    }
    log().Raw(header, body);
    return *this;
  }
  Example& Abort(uint64_t txn) {
    log().Raw(log().HeaderOf(RecordKind::kAbort), AsBytes(txn));
    return *this;
  }
  // The anchor names this checkpoint.
  Example& Method(DiffMethod method) {
    anchor_.method = static_cast<uint32_t>(method);
    return *this;
  }
  // As PL2P logs them.
  Example& Put(uint64_t txn, uint64_t from, uint64_t to, uint32_t number, uint16_t flags, uint32_t slot = 0) {
    return Record(txn, 0, slot, number, static_cast<uint16_t>(flags | format::kChangeImages),
                  AsBytes(from) + AsBytes(to));
  }
  Example& StampedCommit(uint64_t txn, uint64_t stamp) {
    log().Commit(txn, {}, stamp);
    return *this;
  }
  Example& StampedAbort(uint64_t txn, uint64_t stamp) {
    log().Abort(txn, {}, stamp);
    return *this;
  }
  Example& Begin(uint32_t number) {
    anchor_.begin[at_] = log().End();
    anchor_.number = number;
    anchor_.copy = number % 2;
    log().Raw(log().HeaderOf(RecordKind::kCheckpointBegin), AsBytes(format::CheckpointBeginBody{number, 0}));
    return *this;
  }
  Example& End(uint32_t number, const std::vector<uint64_t>& active = {}) {
    anchor_.end[at_] = log().End();
    std::string body = AsBytes(format::CheckpointEndBody{number, static_cast<uint32_t>(active.size())});
    for (const uint64_t id : active) body += AsBytes(id);
    log().Raw(log().HeaderOf(RecordKind::kCheckpointEnd), body);
    return *this;
  }

  LogBuilder& log() { return logs_[at_]; }
  BuiltAnchor& anchor() { return anchor_; }
  BuiltPage& page() { return page_; }
  format::BackupFrame frame() const { return FrameOf(kRun, anchor_.copy, 0, 0, anchor_.number, page_); }

  RunImage Image() const { return Image(frame()); }
  RunImage Image(const format::BackupFrame& frame) const {
    RunImage run;
    for (size_t i = 0; i < logs_.size(); ++i) run.logs.push_back(FileOf("log-" + std::to_string(i), logs_[i].Bytes()));
    std::vector<std::byte> part;
    BuiltAnchor anchor = anchor_;
    anchor.tables[0].checksum ^= PutFrame(part, 1, frame, page_);
    run.anchor = FileOf("anchor", BytesOf(anchor));
    run.backups.push_back(FileOf(BackupName(anchor_.copy, 0, 0), std::move(part)));
    return run;
  }
  static FileImage FileOf(const std::string& path, std::vector<std::byte> bytes) {
    auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    return {path, *owner, owner};
  }

 private:
  std::vector<LogBuilder> logs_;
  uint32_t at_ = 0;
  BuiltPage page_;
  BuiltAnchor anchor_;
};

std::vector<TablePages> PagesOf(const RunImage& run) {
  const ReferenceLogs logs = ReadRun(run);
  const RecoveredSet set = Recover(logs);
  EXPECT_EQ(set.damage, "");
  return ReadPages(run, logs, set);
}

std::optional<uint64_t> ValueIn(const std::vector<TablePages>& tables, uint32_t page, uint32_t slot) {
  if (!tables.at(0).images.contains(page) || !tables[0].IsPresent(page, slot)) return std::nullopt;
  uint64_t value;
  std::memcpy(&value, tables[0].Slot(page, slot).data() + 8, sizeof value);
  return value;
}
uint64_t ValueOf(const Example& example, uint32_t slot = 0) {
  return ValueIn(PagesOf(example.Image()), 0, slot).value();
}

// The status, and the message, with which the example is refused.
std::pair<ExitStatus, std::string> RefusalOf(const RunImage& run) {
  try {
    PagesOf(run);
  } catch (const Error& error) {
    return {error.status(), error.what()};
  }
  return {ExitStatus::kOk, ""};
}
void ExpectRefused(const Example& example, const std::string& why, ExitStatus status = ExitStatus::kCorrupt) {
  const auto [is, message] = RefusalOf(example.Image());
  EXPECT_EQ(is, status) << message;
  EXPECT_NE(message.find(why), std::string::npos) << message;
}

// ---- without a checkpoint since the run's first backup

TEST(ReferencePages, OverTheFirstBackupAllChangesOfWinnersAreMadeAgain) {
  Example example;
  example.Backup(0, 5).Backup(1, 6);
  example.Change(1, 5, 7, 0, kFirst).Change(2, 6, 8, 0, kFirst, 1).Change(1, 7, 9, 0, 0).Commit(1);
  EXPECT_EQ(ValueOf(example), 9u);
  EXPECT_EQ(ValueOf(example, 1), 6u);
}

TEST(ReferencePages, WhatWasTakenBackWithoutARecordNeverWasInTheFirstBackup) {
  Example example;
  example.Backup(0, 5).Change(1, 5, 7, 0, kFirst).Abort(1).Change(2, 5, 8, 0, kFirst).Commit(2);
  EXPECT_EQ(ValueOf(example), 8u);
}

TEST(ReferencePages, ARowComesAndGoesWithItsPresenceBit) {
  Example example;
  example.Backup(1, 6);
  example.Record(1, 0, 0, 0, kFirst | kPresence, AsBytes(uint64_t{77}) + AsBytes(uint64_t{5})).Commit(1);
  example.Record(2, 0, 1, 0, kFirst | kPresence, AsBytes(uint64_t{11}) + AsBytes(uint64_t{6})).Commit(2);
  const std::vector<TablePages> pages = PagesOf(example.Image());
  EXPECT_EQ(ValueIn(pages, 0, 0), 5u);
  EXPECT_EQ(ValueIn(pages, 0, 1), std::nullopt);
}

TEST(ReferencePages, APageThatIsNotInTheBackupBeginsAsZeros) {
  Example example;
  example.Record(1, 7, 2, 0, kFirst | kPresence, AsBytes(uint64_t{77}) + AsBytes(uint64_t{5})).Commit(1);
  EXPECT_EQ(ValueIn(PagesOf(example.Image()), 7, 2), 5u);
}

TEST(ReferencePages, RunsChangeTheirWordsOnly) {
  Example example;
  example.Backup(0, 0x11111111'22222222u);
  example.Record(1, 0, 0, 0, kFirst | kRuns, AsBytes(format::ChangeRun{1, 1}) + AsBytes(0x01010101u)).Commit(1);
  EXPECT_EQ(ValueOf(example), 0x10101010'22222222u);
}

// ---- with one: of what began before it

TEST(ReferencePages, AWinnersChangeIsRedoneUnlessTheBackupHasIt) {
  Example example;
  example.Backup(0, 7).Backup(1, 6);
  example.Change(1, 5, 7, 0, kFirst).Begin(1).Change(1, 6, 8, 1, 0, 1).End(1, {1}).Commit(1);
  EXPECT_EQ(ValueOf(example), 7u);
  EXPECT_EQ(ValueOf(example, 1), 8u);
}

TEST(ReferencePages, AChangeAboveBeginMayBeInTheBackup) {
  Example example;
  example.Backup(0, 7).Begin(1).Change(1, 5, 7, 0, kFirst).End(1, {1}).Commit(1);
  EXPECT_EQ(ValueOf(example), 7u);
}

TEST(ReferencePages, OfALoserThatTheCrashCutOffTheBackupsChangesAreUndone) {
  Example example;
  example.Backup(0, 7).Backup(1, 6);
  example.Change(1, 5, 7, 0, kFirst).Begin(1).Change(1, 6, 8, 1, 0, 1).End(1, {1});
  EXPECT_EQ(ValueOf(example), 5u);
  EXPECT_EQ(ValueOf(example, 1), 6u);
}

TEST(ReferencePages, AnAbortAboveBeginUndidNothingOfTheBackup) {
  Example example;
  example.Backup(0, 7).Change(1, 5, 7, 0, kFirst).Begin(1).End(1, {1}).Abort(1);
  EXPECT_EQ(ValueOf(example), 5u);
}

TEST(ReferencePages, AnAbortBelowBeginHadUndoneAll) {
  Example example;
  example.Backup(0, 5).Change(1, 5, 7, 0, kFirst).Abort(1).Begin(1).End(1);
  EXPECT_EQ(ValueOf(example), 5u);
}

TEST(ReferencePages, CompensationsAreUndoneAsFarAsTheBackupHasThem) {
  Example example;  // slot 0 was compensated before its page was copied, slot 1 behind
  example.Backup(0, 5).Backup(1, 8);
  example.Change(1, 5, 7, 0, kFirst).Change(1, 6, 8, 0, 0, 1).Begin(1);
  example.Change(1, 7, 5, 0, kCompensation).Change(1, 8, 6, 1, kCompensation, 1).End(1, {1}).Abort(1);
  EXPECT_EQ(ValueOf(example), 5u);
  EXPECT_EQ(ValueOf(example, 1), 6u);
}

TEST(ReferencePages, ACrashMayCutCompensationsOff) {
  Example example;
  example.Backup(0, 7).Backup(1, 8);
  example.Change(1, 5, 7, 0, kFirst).Change(1, 6, 8, 0, 0, 1).Begin(1).End(1, {1});
  example.Change(1, 8, 6, 1, kCompensation, 1);
  EXPECT_EQ(ValueOf(example), 5u);
  EXPECT_EQ(ValueOf(example, 1), 6u);
}

TEST(ReferencePages, CompensationsOfAnEarlierCheckpointHaveCancelledOut) {
  Example example;
  example.Backup(0, 5).Change(1, 5, 7, 0, kFirst).Begin(1).Change(1, 7, 5, 1, kCompensation).Abort(1).End(1);
  example.Begin(2).End(2);
  EXPECT_EQ(ValueOf(example), 5u);
}

TEST(ReferencePages, OfImagesTheDifferenceCounts) {
  Example example;  // 2 is redone, 1 undone; of 3 the backup has half
  example.Method(DiffMethod::kPl2p).Backup(0, 7).Backup(1, 8).Put(1, 5, 7, 0, kFirst).Put(3, 6, 8, 0, kFirst, 1);
  example.Begin(1).Put(3, 8, 6, 1, kCompensation, 1).End(1, {1, 3}).StampedAbort(3, 2);
  example.Put(2, 6, 9, 1, kFirst, 1).StampedCommit(2, 1);
  EXPECT_EQ(ValueOf(example), 5u);
  EXPECT_EQ(ValueOf(example, 1), 9u);
}

TEST(ReferencePages, LogsOfEveryMethodAreReadWholeAndFromWhereTheyAreNeeded) {
  for (const DiffMethod method : {DiffMethod::kDl1p, DiffMethod::kDl2p, DiffMethod::kPl2p}) {
    for (const bool truncates : {false, true}) {
      SCOPED_TRACE("method " + std::to_string(static_cast<int>(method)) + (truncates ? ", truncated" : ""));
      Example example;
      example.Method(method).Backup(0, 5);
      const auto change = [&](uint64_t txn, uint64_t from, uint64_t to, uint32_t number) {
        method == DiffMethod::kPl2p ? example.Put(txn, from, to, number, kFirst).StampedCommit(txn, txn)
                                    : example.Change(txn, from, to, number, kFirst).Commit(txn);
      };
      change(1, 4, 5, 0);
      example.anchor().truncates = truncates;
      example.anchor().needed[0] = example.log().End();
      example.anchor().sequences = {2};  // all below had ended
      example.Begin(1).End(1);
      change(3, 5, 9, 1);
      EXPECT_EQ(ValueOf(example), 9u);
      EXPECT_EQ(ReadRun(example.Image()).ended_below.empty(), !truncates);
    }
  }
}

TEST(ReferencePages, AFrameThatTheAnchorDoesNotCountIsRefused) {
  Example example;
  example.anchor().tables[0].checksum = 1;
  ExpectRefused(example, "pages of another checkpoint", ExitStatus::kMismatch);
}

TEST(ReferencePages, RecordsOfAnotherMethodThanTheAnchorsAreRefused) {
  const auto example = [](DiffMethod method) { return Example().Method(method).Backup(0, 5); };
  ExpectRefused(example(DiffMethod::kDl1p).Put(1, 5, 7, 0, kFirst), "by another method");
  ExpectRefused(example(DiffMethod::kPl2p).Change(1, 5, 7, 0, kFirst), "by another method");
  ExpectRefused(example(DiffMethod::kPl2p).Put(1, 5, 7, 0, kFirst).Commit(1), "by another method");
  ExpectRefused(example(DiffMethod::kDl2p).Change(1, 5, 7, 0, kFirst).StampedCommit(1, 1), "by another method");
  ExpectRefused(example(DiffMethod::kDl2p).Change(1, 5, 7, 0, kFirst).Abort(1), "before all is taken back");
  Example twice;
  twice.Backup(0, 5).Change(1, 5, 7, 0, kFirst).Change(1, 7, 5, 0, kCompensation).Change(1, 7, 5, 0, kCompensation);
  ExpectRefused(twice, "more is taken back than was changed");
}

TEST(ReferencePages, ATransactionThatRunsAgainIsAnotherAttempt) {
  Example example;  // its first attempt is undone below BEGIN, its second commits above it
  example.Backup(0, 8).Change(1, 5, 7, 0, kFirst).Abort(1).Change(1, 5, 8, 0, kFirst).Begin(1).End(1, {1}).Commit(1);
  EXPECT_EQ(ValueOf(example), 8u);
}

TEST(ReferencePages, AnAttemptInAnotherLogIsAnother) {
  Example example(2);
  example.Backup(0, 7).On(1).Begin(1).On(0).Change(1, 5, 7, 0, kFirst).Begin(1).End(1, {1}).On(1).End(1).On(0).Abort(1);
  example.On(1).Change(1, 5, 9, 1, kFirst).Commit(1);
  EXPECT_EQ(ValueOf(example), 9u);
}

TEST(ReferencePages, ACommitThatDependsOnWhatIsLostIsUndone) {
  Example example(2);
  example.Backup(0, 7).On(0).Begin(1).On(1).Begin(1).Change(1, 5, 7, 0, kFirst).Commit(1, {1000, 0});
  example.On(0).End(1).On(1).End(1);
  EXPECT_EQ(ValueOf(example), 5u);
}

// ---- what is refused

TEST(ReferencePages, ChangesThatNoEngineWritesAreRefused) {
  const std::string value = AsBytes(uint64_t{1});
  ExpectRefused(Example().Record(1, 0, kSlots, 0, kFirst, value), "a slot that its page does not have");
  ExpectRefused(Example().Record(1, 0, 0, 0, kFirst, value + value), "of another size");
  ExpectRefused(Example().Record(1, 0, 0, 0, kFirst | kRuns, AsBytes(format::ChangeRun{2, 1}) + AsBytes(1u)),
                "behind the end of a row");
  ExpectRefused(Example().Record(1, 0, 0, 0, kFirst | kRuns, AsBytes(format::ChangeRun{0, 9}) + AsBytes(1u)),
                "impossible run");
  ExpectRefused(Example().Change(1, 0, 1, 1, kFirst), "had not begun");
  ExpectRefused(Example().Begin(1).Begin(2).Change(1, 0, 1, 0, kFirst).End(2), "had been overtaken");
  ExpectRefused(Example().Begin(2).Begin(1).End(1), "not larger");
}

TEST(ReferencePages, AttemptsThatDoNotBeginOrEndAreRefused) {
  ExpectRefused(Example().Change(1, 0, 1, 0, 0), "by no transaction");
  ExpectRefused(Example().Change(1, 0, 1, 0, kFirst).Change(1, 0, 1, 0, kFirst), "begins twice");
  ExpectRefused(Example().Commit(1), "changed nothing");
  ExpectRefused(Example().Abort(1), "changed nothing");
  ExpectRefused(Example().Change(1, 0, 1, 0, kFirst).Change(1, 1, 0, 0, kCompensation).Commit(1), "taken back commits");
}

TEST(ReferencePages, ACheckpointThatContradictsItsAnchorIsRefused) {
  ExpectRefused(Example().Backup(0, 7).Change(1, 5, 7, 0, kFirst).Begin(1).End(1), "does not list");
  Example early;
  early.Begin(1).End(1).anchor().needed = {8};
  ExpectRefused(early, "do not ascend");
  Example elsewhere;
  elsewhere.Begin(1).End(1);
  elsewhere.anchor().end = {elsewhere.log().End() - 8};
  ExpectRefused(elsewhere, "ended elsewhere");
  Example beyond;
  beyond.Begin(1).End(1);
  beyond.anchor().end = {beyond.log().End()};
  ExpectRefused(beyond, "the log ends before");
}

TEST(ReferencePages, WhatTheAnchorSaysIsNotNeededMustNotBe) {
  Example needed;
  needed.Backup(0, 7).Change(1, 5, 7, 0, kFirst).Begin(1).End(1, {1}).anchor().needed = needed.anchor().begin;
  ExpectRefused(needed, "the anchor says that it does not");
  Example ended;
  ended.Begin(1).End(1).Change(1, 5, 7, 1, kFirst).anchor().sequences = {2};
  ExpectRefused(ended, "had ended before");
}

TEST(ReferencePages, FreeSlotsAreZero) {
  Example example;
  example.Change(1, 0, 1, 0, kFirst).Commit(1);
  ExpectRefused(example, "a free slot is not zero");
}

TEST(ReferencePages, APageOfAnotherPlaceOrRunIsRefused) {
  const Example example = Example().Backup(0, 5);
  const auto refusal = [&](auto&& change) {
    format::BackupFrame frame = example.frame();
    change(frame);
    return RefusalOf(example.Image(frame)).first;
  };
  EXPECT_EQ(refusal([](auto&) {}), ExitStatus::kOk);
  EXPECT_EQ(refusal([](auto& frame) { frame.number = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(refusal([](auto& frame) { frame.table = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(refusal([](auto& frame) { frame.copy = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(refusal([](auto& frame) { frame.rows_per_page = 5; }), ExitStatus::kCorrupt);
  EXPECT_EQ(refusal([](auto& frame) { ++frame.salt; }), ExitStatus::kMismatch);
}

TEST(ReferencePages, MissingFilesAreRefused) {
  const Example example = Example().Backup(0, 5);
  RunImage run = example.Image();
  run.backups.clear();
  EXPECT_EQ(RefusalOf(run).first, ExitStatus::kMismatch);
  run = example.Image();
  run.anchor.reset();
  EXPECT_EQ(RefusalOf(run).first, ExitStatus::kMismatch);
  run = example.Image();
  run.backups[0].bytes = run.backups[0].bytes.first(4095);
  EXPECT_EQ(RefusalOf(run).first, ExitStatus::kCorrupt);
}

TEST(ReferencePages, EveryBitOfAnchorAndBackupCounts) {
  const Example example = Example().Backup(0, 5);
  const RunImage run = example.Image();
  for (const bool in_anchor : {true, false}) {
    const FileImage& file = in_anchor ? *run.anchor : run.backups[0];
    for (size_t bit = 0; bit < 8 * file.bytes.size(); bit += 13) {
      RunImage damaged = run;
      std::vector<std::byte> bytes(file.bytes.begin(), file.bytes.end());
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      (in_anchor ? *damaged.anchor : damaged.backups[0]) = Example::FileOf(file.path, std::move(bytes));
      ASSERT_NE(RefusalOf(damaged).first, ExitStatus::kOk) << "bit " << bit << " of " << file.path;
    }
  }
}

// ---- rows

Table& CreateTable(Database& database) {
  Schema schema;
  schema.name = "t";
  schema.tuple_bytes = kTupleBytes;
  return database.CreateTable(schema);
}

TEST(ReferencePages, PresentRowsAreAdoptedUnderTheirKeys) {
  const RunImage run = Example().Backup(0, 5).Backup(2, 6).Image();
  const ReferenceLogs logs = ReadRun(run);
  Database database({}, 1);
  const Table& table = CreateTable(database);
  ReplayPages(run, logs, Recover(logs), database);
  EXPECT_EQ(table.row_count(), 2u);
  EXPECT_NE(table.Find(12), nullptr);
}

TEST(ReferencePages, AKeyThatIsThereTwiceIsRefused) {
  Example example;
  example.Backup(0, 5).page().Put(1, 10, "twice");
  const RunImage run = example.Image();
  const ReferenceLogs logs = ReadRun(run);
  Database database({}, 1);
  CreateTable(database);
  EXPECT_THROW(ReplayPages(run, logs, Recover(logs), database), Error);
}

// ---- random runs

RunImage ImageOf(const DifferentialRun::Disk& disk) {
  RunImage run;
  for (size_t i = 0; i < disk.logs.size(); ++i)
    run.logs.push_back(Example::FileOf("log-" + std::to_string(i), disk.logs[i]));
  run.anchor = Example::FileOf("anchor", disk.anchor);
  for (const auto& [name, bytes] : disk.backups) run.backups.push_back(Example::FileOf("a/" + name, bytes));
  return run;
}

DifferentialRun::Images ImagesIn(const std::vector<TablePages>& tables) {
  DifferentialRun::Images images;
  for (const auto& [page, bytes] : tables.at(0).images) {
    for (uint32_t slot = 0; slot < tables[0].rows_per_page; ++slot) {
      if (!tables[0].IsPresent(page, slot)) continue;
      DifferentialRun::Image& image = images[{page, slot}];
      image.present = true;
      std::memcpy(&image.key, tables[0].Slot(page, slot).data(), 8);
      std::memcpy(&image.value, tables[0].Slot(page, slot).data() + 8, 8);
    }
  }
  return images;
}

void CheckCrash(const DifferentialRun::Disk& disk) {
  const RunImage run = ImageOf(disk);
  const ReferenceLogs logs = ReadRun(run);
  const RecoveredSet set = Recover(logs);
  ASSERT_EQ(set.damage, "");
  ASSERT_EQ(set.txn_ids, disk.winners);
  ASSERT_EQ(ImagesIn(ReadPages(run, logs, set)), disk.expected);
}

TEST(ReferencePages, EveryCrashOfARandomRunGivesWhatTheWinnersLeft) {
  uint32_t latest = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    DifferentialRun run(seed, 1 + seed % 3, seed % 4 == 0 ? DiffMethod::kDl2p : DiffMethod::kDl1p);
    for (int step = 0; step < 600; ++step) {
      run.Step();
      if (step % 7 != 0) continue;
      const DifferentialRun::Disk disk = run.Crash();
      latest = std::max(latest, disk.number);
      ASSERT_NO_FATAL_FAILURE(CheckCrash(disk)) << "step " << step;
    }
  }
  EXPECT_GT(latest, 2u) << "hardly any checkpoint came to its end";
}

}  // namespace
}  // namespace dbx::reference
