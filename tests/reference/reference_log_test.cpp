// The reference reader: where the valid prefix of a log ends, and whether that is a torn tail or damage.
#include <gtest/gtest.h>

#include <functional>

#include "system/reference/reference_replay.h"
#include "tests/logging/log_builder.h"

namespace dbx::reference {
namespace {

constexpr uint64_t kRun = 0xA11CE;

// Every kind but RUN_END. What its PAD and anchors claim is nothing.
LogBuilder SmallLog() {
  LogBuilder log(kRun);
  log.Command(1, 3, "argument").Void(72).Data(2, {Put(0, 7, "image"), Delete(1, 8)}).Anchor({0}).Pad(0);
  log.Command(3, 4).Data(4, {});
  return log;
}

// The end of the last record that ends at or before `stream_bytes`.
uint64_t LastBoundary(const LogBuilder& log, uint64_t stream_bytes) {
  uint64_t boundary = 0;
  for (const uint64_t start : log.Starts()) boundary = start <= stream_bytes ? start : boundary;
  return log.End() <= stream_bytes ? log.End() : boundary;
}

Log ReadOne(const LogBytes& file) { return ReadLogs(std::vector<LogBytes>{file}).logs.at(0); }

ExitStatus StatusOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.status();
  }
  return ExitStatus::kOk;
}
ExitStatus ReadStatus(const std::vector<LogBytes>& files) {
  return StatusOf([&] { ReadLogs(files); });
}

TEST(ReferenceCrc, MatchesThePublishedCheckValue) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(digits))), 0xE3069283u);
}

TEST(ReferenceLog, AWholeLogIsReadToItsEnd) {
  LogBuilder built = SmallLog();
  const Log log = ReadOne(built.RunEnd().Bytes());
  EXPECT_EQ(log.end, built.End());
  EXPECT_EQ(log.verdict, Verdict::kWhole);
  EXPECT_EQ(log.txn_count, 4u);
  EXPECT_TRUE(log.run_end);
}

TEST(ReferenceLog, RecordsComeBackAsTheyWereWritten) {
  const ReferenceLogs logs = ReadLogs(std::vector<LogBytes>{SmallLog().Bytes()});
  Cursor cursor(logs, 0);
  EXPECT_EQ(cursor.record().txn_id, 1u);
  EXPECT_EQ(cursor.record().procedure, 3u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cursor.record().payload.data()), 8), "argument");
  std::vector<Kind> kinds;
  for (; !cursor.AtEnd(); cursor.Next()) kinds.push_back(cursor.record().kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kCommand, Kind::kVoid, Kind::kData, Kind::kAnchor, Kind::kPad,
                                      Kind::kCommand, Kind::kData}));
}

TEST(ReferenceLog, ATruncatedLogEndsAtTheLastWholeRecord) {
  const LogBuilder built = SmallLog();
  const LogBytes file = built.Bytes();
  for (uint64_t bytes = kStreamOffset; bytes <= file.size(); ++bytes) {
    const Log log = ReadOne(Truncate(file, bytes));
    const uint64_t expected = LastBoundary(built, bytes - kStreamOffset);
    ASSERT_EQ(log.end, expected) << "truncated to " << bytes;
    ASSERT_EQ(log.verdict == Verdict::kWhole, log.tail_bytes == 0) << "truncated to " << bytes;
    ASSERT_NE(log.verdict, Verdict::kDamaged) << "truncated to " << bytes;
  }
}

// Flips every bit of the stream in turn and says which record each flip hits. Of the zeros of PADs, which are alike,
// every 61st byte will do.
void ForEachFlip(const LogBuilder& built,
                 const std::function<void(size_t record, uint64_t at, const Log& log)>& check) {
  const LogBytes file = built.Bytes();
  for (size_t record = 0; record < built.Starts().size(); ++record) {
    const uint64_t start = built.Start(record);
    const uint64_t end = record + 1 < built.Starts().size() ? built.Start(record + 1) : built.End();
    for (uint64_t at = start; at < end; at += at < start + 128 ? 1 : 61) {
      for (int bit = 0; bit < 8; ++bit) check(record, at, ReadOne(FlipBit(file, FileOffset(at), bit)));
    }
  }
}
// Record 1 of SmallLog; its body means nothing.
bool IsInVoidBody(const LogBuilder& built, uint64_t at) { return at >= built.Start(1) + 32 && at < built.Start(2); }

TEST(ReferenceLog, AnyFlippedBitWithoutEvidenceCutsTheLogThere) {
  const LogBuilder built = SmallLog();
  ForEachFlip(built, [&](size_t record, uint64_t at, const Log& log) {
    const bool harmless = IsInVoidBody(built, at);
    ASSERT_EQ(log.end, harmless ? built.End() : built.Start(record)) << "LSN " << at;
    ASSERT_EQ(log.verdict, harmless ? Verdict::kWhole : Verdict::kTorn) << "LSN " << at;
  });
}

TEST(ReferenceLog, AnyFlippedBitBelowADurableClaimIsDamageThere) {
  LogBuilder built = SmallLog();
  built.Pad();  // everything before it was durable
  const size_t last = built.Starts().size() - 1;
  ForEachFlip(built, [&](size_t record, uint64_t at, const Log& log) {
    const Verdict expected = IsInVoidBody(built, at) ? Verdict::kWhole
                             : record == last        ? Verdict::kTorn
                                                     : Verdict::kDamaged;
    ASSERT_EQ(log.verdict, expected) << "LSN " << at;
    ASSERT_EQ(log.end, expected == Verdict::kWhole ? built.End() : built.Start(record)) << "LSN " << at;
  });
}

TEST(ReferenceLog, ATornTailMayBeAnything) {
  const LogBytes file = SmallLog().Bytes();
  const LogBuilder old_run = LogBuilder(kRun + 1).Command(9, 1, "old").Pad();
  const uint64_t end = file.size();
  for (const LogBytes& torn :
       {AppendGarbage(file, 10'000, 42), AppendGarbage(AppendZeros(file, 4096), 4096, 43),
        Transplant(file, end, old_run.Bytes(), FileOffset(0), 4096), Transplant(file, end, file, FileOffset(0), 512)}) {
    const Log log = ReadOne(torn);
    EXPECT_EQ(FileOffset(log.end), end);
    EXPECT_EQ(log.verdict, Verdict::kTorn);
  }
}

TEST(ReferenceLog, PreallocatedZerosAreNoTail) {
  const Log log = ReadOne(AppendZeros(SmallLog().Bytes(), 100'003));
  EXPECT_EQ(log.verdict, Verdict::kWhole);
  EXPECT_EQ(log.tail_bytes, 0u);
}

// Two blocks; the second is a command and a PAD that says `durable`. The first is zeroed.
Log WithZeroedBlock(uint64_t durable, uint64_t ring_bytes) {
  LogBuilder built(kRun);
  built.RingBytes(ring_bytes).Command(1, 0).Pad(0).Command(2, 0).Pad(durable);
  return ReadOne(ZeroBytes(built.Bytes(), FileOffset(0)));
}

TEST(ReferenceLog, ALaterPadIsEvidence) {
  EXPECT_EQ(WithZeroedBlock(0, 1 << 20).verdict, Verdict::kTorn);
  EXPECT_EQ(WithZeroedBlock(4096, 1 << 20).verdict, Verdict::kDamaged);
}

TEST(ReferenceLog, ARecordThatEndsMoreThanARingBehindIsEvidence) {
  EXPECT_EQ(WithZeroedBlock(0, 8192).verdict, Verdict::kTorn);  // the last record ends at 8192
  EXPECT_EQ(WithZeroedBlock(0, 8184).verdict, Verdict::kDamaged);
}

TEST(ReferenceLog, RunEndIsEvidence) {
  LogBuilder built(kRun);
  built.Command(1, 0).Pad(0).Command(2, 0).RunEnd(4096);
  const Log log = ReadOne(ZeroBytes(built.Bytes(), FileOffset(0)));
  EXPECT_EQ(log.verdict, Verdict::kDamaged);
  EXPECT_NE(log.reason.find("RUN_END"), std::string::npos) << log.reason;
}

std::vector<Log> ReadTwo(const LogBytes& first, const LogBytes& second) {
  return ReadLogs(std::vector<LogBytes>{first, second}).logs;
}

TEST(ReferenceLog, AnAnchorOfAnotherLogIsEvidence) {
  LogBuilder a(kRun, 0, 2, format::Scheme::kTaurus), b(kRun, 1, 2, format::Scheme::kTaurus);
  a.Command(1, 0).Command(2, 0);
  b.Anchor({a.Start(1), 0});
  const LogBytes cut = Truncate(a.Bytes(), FileOffset(a.Start(1)));
  EXPECT_EQ(ReadTwo(cut, b.Bytes())[0].verdict, Verdict::kWhole);
  b.Anchor({a.End(), 0});
  const Log log = ReadTwo(cut, b.Bytes())[0];
  EXPECT_EQ(log.verdict, Verdict::kDamaged);
  EXPECT_EQ(log.end, a.Start(1));
  EXPECT_NE(log.reason.find("anchor at file 1@8240"), std::string::npos) << log.reason;
}

TEST(ReferenceLog, AnAnchorBehindATearOfItsOwnLogIsEvidenceForOtherLogs) {
  LogBuilder a(kRun, 0, 2, format::Scheme::kTaurus), b(kRun, 1, 2, format::Scheme::kTaurus);
  a.Command(1, 0);
  b.Command(2, 0).Anchor({a.End(), 0});
  const auto logs = ReadTwo(Truncate(a.Bytes(), kStreamOffset), FlipBit(b.Bytes(), FileOffset(0)));
  EXPECT_EQ(logs[0].verdict, Verdict::kDamaged);
  EXPECT_EQ(logs[1].verdict, Verdict::kTorn);
}

TEST(ReferenceLog, AWholeRecordThatSaysNothingIsDamage) {
  const auto verdict = [](format::RecordKind kind, uint16_t lv_mask, std::string_view body) {
    format::RecordHeader header{};
    header.salt = format::Salt(kRun, 0);
    header.kind = static_cast<uint8_t>(kind);
    header.lv_mask = lv_mask;
    return ReadOne(LogBuilder(kRun).Raw(header, body).Bytes()).verdict;
  };
  const std::string body(16, '\0');
  EXPECT_EQ(verdict(format::RecordKind::kCommand, 1, body), Verdict::kWhole);
  EXPECT_EQ(verdict(format::RecordKind::kCommand, 2, body), Verdict::kDamaged);  // there is no log 1
  EXPECT_EQ(verdict(format::RecordKind::kCommand, 1, body.substr(8)), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind::kData, 0, ""), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind::kPad, 0, ""), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind::kAnchor, 0, ""), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind::kRunEnd, 0, body), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind::kVersionedCommand, 0, body), Verdict::kDamaged);  // without timestamps
  EXPECT_EQ(verdict(format::RecordKind::kWatermark, 0, ""), Verdict::kDamaged);
  EXPECT_EQ(verdict(format::RecordKind{17}, 0, body), Verdict::kTorn);  // of a kind that is not known
}

TEST(ReferenceLog, RunEndThatCountsOtherTransactionsIsDamage) {
  EXPECT_EQ(ReadOne(LogBuilder(kRun).Command(1, 0).RunEnd({}, 1).Bytes()).verdict, Verdict::kWhole);
  EXPECT_EQ(ReadOne(LogBuilder(kRun).Command(1, 0).RunEnd({}, 2).Bytes()).verdict, Verdict::kDamaged);
}

TEST(ReferenceLog, OneCopyOfTheHeaderIsEnough) {
  const LogBytes file = SmallLog().Bytes();
  for (uint64_t at : {0, 8, 24, 36, 3000, 4095}) {
    EXPECT_EQ(ReadOne(FlipBit(file, at)).txn_count, 4u) << at;
    EXPECT_EQ(ReadOne(FlipBit(file, 4096 + at)).txn_count, 4u) << at;
    EXPECT_EQ(ReadStatus({FlipBit(FlipBit(file, at), 4096 + at)}), ExitStatus::kCorrupt) << at;
  }
}

TEST(ReferenceLog, AFileWithoutAWholeHeaderIsCorrupt) {
  const LogBytes file = SmallLog().Bytes();
  for (uint64_t bytes : {0, 1, 4095}) EXPECT_EQ(ReadStatus({Truncate(file, bytes)}), ExitStatus::kCorrupt) << bytes;
  for (uint64_t bytes : {4096, 8191, 8192}) EXPECT_EQ(ReadOne(Truncate(file, bytes)).end, 0u) << bytes;
}

TEST(ReferenceLog, HeadersThatAreNotKnownAreAMismatch) {
  const auto status = [](const std::function<void(format::FileHeader&)>& change) {
    LogBuilder built(kRun);
    change(built.header());
    return ReadStatus({built.Bytes()});
  };
  EXPECT_EQ(status([](auto&) {}), ExitStatus::kOk);
  EXPECT_EQ(status([](auto& h) { h.version = 2; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.required_features = 8; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.start_lsn = 8; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.scheme = 0; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.log_index = 1; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.log_count = 0; }), ExitStatus::kMismatch);
  EXPECT_EQ(status([](auto& h) { h.log_count = 2; }), ExitStatus::kMismatch);  // serial logs are single
}

TEST(ReferenceLog, OnlyAllLogsOfOneRunGoTogether) {
  const auto log = [](uint64_t run, uint32_t index, uint32_t count) {
    return LogBuilder(run, index, count, format::Scheme::kTaurus).Bytes();
  };
  EXPECT_EQ(ReadStatus({log(kRun, 1, 2), log(kRun, 0, 2)}), ExitStatus::kOk);
  EXPECT_EQ(ReadStatus({}), ExitStatus::kMismatch);
  EXPECT_EQ(ReadStatus({log(kRun, 1, 2)}), ExitStatus::kMismatch);
  EXPECT_EQ(ReadStatus({log(kRun, 1, 2), log(kRun, 1, 2)}), ExitStatus::kMismatch);
  EXPECT_EQ(ReadStatus({log(kRun, 0, 2), log(kRun + 1, 1, 2)}), ExitStatus::kMismatch);
  EXPECT_EQ(ReadStatus({log(kRun, 0, 2), log(kRun, 1, 3)}), ExitStatus::kMismatch);
}

}  // namespace
}  // namespace dbx::reference
