// Records of a differential log: what is refused, what they state to readers that do not know the scheme, how they are
// described.
#include "logging/records/differential_records.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "logging/log_reader.h"
#include "logging/log_tail.h"
#include "tests/logging/caught.h"
#include "tests/logging/recovery_harness.h"

namespace dbx {
namespace {

using recovery_test::ImageDevice;
using recovery_test::kRunId;

LogBuilder NewLog(uint32_t logs = 1) { return LogBuilder(kRunId, 0, logs, format::Scheme::kDifferential); }

std::string RunOf(uint16_t word, const std::string& words) {
  const format::ChangeRun run{word, static_cast<uint16_t>(words.size() / 4)};
  return std::string(reinterpret_cast<const char*>(&run), sizeof run) + words;
}

// What is wrong with a log of one record, or "".
std::string FaultIn(const LogBuilder& log, uint32_t logs = 1) {
  ImageDevice device("log", log.Bytes());
  LogReader reader({&device, kRunId, 4096, 0, logs}, 4096, 2);
  RecordBatch batch;
  std::string what;
  if (Caught([&] { (void)reader.Cut(batch); }, what) == ExitStatus::kOk) return "";
  return what.substr(what.find(": ") + 2);
}
std::string FaultIn(const BuiltChange& change) { return FaultIn(NewLog().Change(change)); }

std::string Described(const LogBuilder& log, uint32_t logs = 1, const LsnPerLog* anchor = nullptr) {
  format::RecordHeader header;
  std::memcpy(&header, log.Stream().data(), sizeof header);
  std::string text = TypeOf(header.kind)->name;
  const std::span<const std::byte> body(log.Stream().data() + sizeof header, header.length - sizeof header);
  TypeOf(header.kind)->describe({header, body, logs}, anchor, text);
  return text;
}

const std::string kWord(4, 'w');
constexpr uint64_t kTxn = TxnId::Make(WorkerId(3), 41).value;

TEST(DifferentialRecords, ChangesThatMakeSenseAreDecoded) {
  const LogBuilder log = NewLog().Change({kTxn, 2, 7, 5, 3, "01234567", format::kChangePresence, 99});
  format::RecordHeader header;
  std::memcpy(&header, log.Stream().data(), sizeof header);
  SlotChange change;
  ASSERT_EQ(DecodeChange(header, std::span(log.Stream()).subspan(sizeof header), change), nullptr);
  EXPECT_EQ(change.txn.value, kTxn);
  EXPECT_EQ(change.table, TableId(2));
  EXPECT_EQ(change.page, 7u);
  EXPECT_EQ(change.slot, 5u);
  EXPECT_EQ(change.number, 3u);
  EXPECT_EQ(change.key, 99u);
  EXPECT_EQ(change.image.size(), 8u);
  EXPECT_TRUE(change.Has(format::kChangePresence));
  EXPECT_FALSE(change.Has(format::kChangeFirst));
}

TEST(DifferentialRecords, ChangesOfAnyShapeAreRead) {
  EXPECT_EQ(FaultIn({.txn_id = 1, .number = 0}), "");
  EXPECT_EQ(FaultIn({.txn_id = 1, .image = "0123", .flags = format::kChangeFirst}), "");
  EXPECT_EQ(FaultIn({.txn_id = 1, .flags = format::kChangeRuns}), "");  // nothing changed
  const std::string runs = RunOf(0, kWord) + RunOf(2, kWord + kWord) + RunOf(65533, kWord);
  EXPECT_EQ(FaultIn({.txn_id = 1, .image = runs, .flags = format::kChangeRuns | format::kChangePresence}), "");
  EXPECT_EQ(FaultIn({.txn_id = 1, .slot = PageSpace::kRowsPerPageMax - 1}), "");
}

TEST(DifferentialRecords, ChangesThatMakeNoSenseAreRefused) {
  EXPECT_EQ(FaultIn({.txn_id = 1, .flags = 64}), "unknown flags of a change");
  EXPECT_EQ(FaultIn({.txn_id = 1, .flags = format::kChangeFirst | format::kChangeCompensation}),
            "compensation without a change before it");
  EXPECT_EQ(FaultIn({.txn_id = 1, .slot = PageSpace::kRowsPerPageMax}), "slot beyond the end of every page");
  LogBuilder log = NewLog();
  EXPECT_EQ(FaultIn(log.Raw(log.HeaderOf(format::RecordKind::kChange), std::string(8, 't'))), "change too short");
  LogBuilder keyless = NewLog();
  format::RecordHeader header = keyless.HeaderOf(format::RecordKind::kChange);
  header.flags = format::kChangePresence;
  EXPECT_EQ(FaultIn(keyless.Raw(header, std::string(16, '\0'))), "change too short");
}

TEST(DifferentialRecords, ImagesThatMakeNoSenseAreRefused) {
  const auto fault = [](uint16_t flags, size_t bytes) {
    return FaultIn({.txn_id = 1, .image = std::string(bytes, 'i'), .flags = flags});
  };
  constexpr uint16_t kImages = format::kChangeImages, kPresence = format::kChangePresence;
  EXPECT_EQ(fault(kImages, 16), "");
  EXPECT_EQ(fault(kImages, 0), "");
  EXPECT_EQ(fault(kImages | kPresence | format::kChangeErases, 32), "");
  EXPECT_EQ(fault(kImages, 24), "images of two lengths");
  EXPECT_EQ(fault(kImages | format::kChangeRuns, 16), "runs of images before and after");
  EXPECT_EQ(fault(kImages | format::kChangeErases, 16), "erasure without images");
  EXPECT_EQ(fault(kPresence | format::kChangeErases, 16), "erasure without images");
}

TEST(DifferentialRecords, ImagesBeforeAndAfterAreTold) {
  const LogBuilder log = NewLog().Change({.txn_id = kTxn, .image = "before__after___", .flags = format::kChangeImages});
  format::RecordHeader header;
  std::memcpy(&header, log.Stream().data(), sizeof header);
  SlotChange change;
  ASSERT_EQ(DecodeChange(header, std::span(log.Stream()).subspan(sizeof header), change), nullptr);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(change.before().data()), change.before().size()), "before__");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(change.after().data()), change.after().size()), "after___");
}

TEST(DifferentialRecords, RunsThatMakeNoSenseAreRefused) {
  const auto fault = [](const std::string& runs) {
    return FaultIn({.txn_id = 1, .image = runs, .flags = format::kChangeRuns});
  };
  EXPECT_EQ(fault(RunOf(0, "") + kWord), "run without words");
  EXPECT_EQ(fault(RunOf(3, kWord) + RunOf(2, kWord)), "runs out of order");
  EXPECT_EQ(fault(RunOf(3, kWord) + RunOf(3, kWord)), "runs out of order");
  EXPECT_EQ(fault(RunOf(3, kWord) + RunOf(4, kWord)), "runs out of order");  // they are one
  const format::ChangeRun longer{0, 2};
  EXPECT_EQ(fault(std::string(reinterpret_cast<const char*>(&longer), 4) + kWord), "run longer than its record");
  EXPECT_EQ(fault(RunOf(0, kWord + kWord) + std::string("\0\1\0\0", 4)), "padding of runs that is not zero");
}

TEST(DifferentialRecords, EndsOfTransactionsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(FaultIn(NewLog().Commit(kTxn)), "");
  EXPECT_EQ(FaultIn(NewLog(2).Commit(kTxn, {8, 16}), 2), "");
  EXPECT_EQ(FaultIn(NewLog().Abort(kTxn)), "");
  const auto fault = [](format::RecordKind kind, uint16_t mask, size_t bytes) {
    LogBuilder log = NewLog(2);
    format::RecordHeader header = log.HeaderOf(kind);
    header.lv_mask = mask;
    return FaultIn(log.Raw(header, std::string(bytes, 'x')), 2);
  };
  EXPECT_EQ(fault(format::RecordKind::kCommit, 0, 0), "COMMIT without a transaction");
  EXPECT_EQ(fault(format::RecordKind::kCommit, 0, 16), "length of an LSN vector");
  EXPECT_EQ(fault(format::RecordKind::kCommit, 3, 16), "length of an LSN vector");
  EXPECT_EQ(fault(format::RecordKind::kCommit, 4, 16), "a mask of more logs than there are");
  EXPECT_EQ(fault(format::RecordKind::kAbort, 0, 0), "ABORT without a transaction");
  EXPECT_EQ(fault(format::RecordKind::kAbort, 0, 16), "length of an ABORT");
  EXPECT_EQ(fault(format::RecordKind::kAbort, 1, 8), "length of an ABORT");
}

TEST(DifferentialRecords, StampedEndsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(FaultIn(NewLog().Commit(kTxn, {}, 5)), "");
  EXPECT_EQ(FaultIn(NewLog(2).Commit(kTxn, {8, 16}, 5), 2), "");
  EXPECT_EQ(FaultIn(NewLog(2).Abort(kTxn, {8, 16}, 5), 2), "");
  for (const auto kind : {format::RecordKind::kCommit, format::RecordKind::kAbort}) {
    const auto fault = [kind](uint16_t flags, uint16_t mask, size_t bytes) {
      LogBuilder log = NewLog(2);
      format::RecordHeader header = log.HeaderOf(kind);
      header.flags = flags;
      header.lv_mask = mask;
      return FaultIn(log.Raw(header, std::string(bytes, 'x')), 2);
    };
    EXPECT_EQ(fault(format::kEndStamped, 0, 8), "length of an LSN vector");
    EXPECT_EQ(fault(format::kEndStamped, 1, 16), "length of an LSN vector");
    EXPECT_EQ(fault(format::kEndStamped, 4, 24), "a mask of more logs than there are");
    EXPECT_EQ(fault(2, 0, 8), "unknown flags of an end");
  }
}

TEST(DifferentialRecords, CheckpointsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(FaultIn(NewLog().CheckpointBegin(1)), "");
  EXPECT_EQ(FaultIn(NewLog().CheckpointEnd(1)), "");
  EXPECT_EQ(FaultIn(NewLog().CheckpointEnd(1, {kTxn, 5})), "");
  EXPECT_EQ(FaultIn(NewLog().CheckpointBegin(0)), "checkpoint without a number");
  EXPECT_EQ(FaultIn(NewLog().CheckpointEnd(0)), "checkpoint without a number");
  LogBuilder begin = NewLog();
  EXPECT_EQ(FaultIn(begin.Raw(begin.HeaderOf(format::RecordKind::kCheckpointBegin), std::string(16, 'b'))),
            "length of a checkpoint's begin");
  for (const uint32_t active : {0u, 2u, 0x20000001u}) {
    LogBuilder end = NewLog();
    const format::CheckpointEndBody body{1, active};
    const std::string words = std::string(reinterpret_cast<const char*>(&body), sizeof body) + std::string(8, 'e');
    EXPECT_EQ(FaultIn(end.Raw(end.HeaderOf(format::RecordKind::kCheckpointEnd), words)),
              "length of a checkpoint's end");
  }
}

TEST(DifferentialRecords, EveryTransactionThatIsNamedIsKnownToBeTaken) {
  const std::vector<LogBuilder> logs = {NewLog().Change({.txn_id = kTxn}), NewLog().Commit(kTxn), NewLog().Abort(kTxn),
                                        NewLog().CheckpointEnd(1, {7, kTxn})};
  for (const LogBuilder& log : logs) {
    ImageDevice device("log", log.Bytes());
    const LogSource source{&device, kRunId, 4096, 0, 1};
    EXPECT_EQ(ExamineTail(source, Lsn(0)).next_sequence, 42u);
    LogReader reader(source, 4096, 2);
    RecordBatch batch;
    ASSERT_EQ(reader.Cut(batch), LogReader::Result::kBatch);
    EXPECT_EQ(reader.totals().next_sequence, 42u);
    batch.buffer->Release();
  }
}

TEST(DifferentialRecords, OnlyCommitsCountAsTransactions) {
  LogBuilder log = NewLog();
  log.Change({.txn_id = kTxn}).Commit(kTxn).Change({.txn_id = 7}).Abort(7).CheckpointBegin(1).CheckpointEnd(1);
  log.RunEnd(log.End(), 1);
  ImageDevice device("log", log.Bytes());
  LogReader reader({&device, kRunId, 4096, 0, 1}, 4096, 2);
  RecordBatch batch;
  ASSERT_EQ(reader.Cut(batch), LogReader::Result::kBatch);
  EXPECT_EQ(reader.totals().txns, 1u);
  EXPECT_TRUE(reader.run_end());
  batch.buffer->Release();
}

TEST(DifferentialRecords, Descriptions) {
  EXPECT_EQ(Described(NewLog().Change({.txn_id = kTxn, .page = 7, .slot = 5, .number = 3, .image = "01234567"})),
            "change txn 3:41 table 0 page 7 slot 5 number 3 image 8 bytes");
  EXPECT_EQ(Described(NewLog().Change({kTxn, 2, 7, 5, 3, RunOf(1, kWord), format::kChangeRuns | format::kChangeFirst})),
            "change txn 3:41 table 2 page 7 slot 5 number 3 first runs 8 bytes");
  EXPECT_EQ(
      Described(NewLog().Change({kTxn, 2, 7, 5, 3, "", format::kChangePresence | format::kChangeCompensation, 99})),
      "change txn 3:41 table 2 page 7 slot 5 number 3 compensation presence key 99 image 0 bytes");
  const LsnPerLog anchor{Lsn(64), Lsn(32)};
  EXPECT_EQ(Described(NewLog(2).Commit(kTxn, {0, 48}), 2, &anchor), "commit lv [64 48*]");
  EXPECT_EQ(Described(NewLog(2).Abort(kTxn), 2, &anchor), "abort txn 3:41");
  EXPECT_EQ(Described(NewLog(2).Commit(kTxn, {0, 48}, 9), 2, &anchor), "commit lv [64 48*] stamp 9");
  EXPECT_EQ(Described(NewLog(2).Abort(kTxn, {0, 48}, 9), 2, &anchor), "abort txn 3:41 lv [64 48*] stamp 9");
  constexpr uint16_t kErasure = format::kChangePresence | format::kChangeImages | format::kChangeErases;
  EXPECT_EQ(Described(NewLog().Change({kTxn, 2, 7, 5, 3, std::string(16, 'i'), kErasure, 99})),
            "change txn 3:41 table 2 page 7 slot 5 number 3 presence key 99 erases images 16 bytes");
  EXPECT_EQ(Described(NewLog().CheckpointBegin(4)), "checkpoint_begin number 4");
  EXPECT_EQ(Described(NewLog().CheckpointEnd(4, {kTxn, 7})), "checkpoint_end number 4 active [3:41 0:7]");
}

}  // namespace
}  // namespace dbx
