// Looking behind the end of a log: what is not zero is searched, wherever it stands.
#include "logging/log_tail.h"

#include <gtest/gtest.h>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

struct OpenLog {
  explicit OpenLog(const LogImage& image)
      : device("log", image.bytes()), source{&device, kRunId, 64 << 10, image.index(), image.count()} {}
  ImageDevice device;
  LogSource source;
};

TEST(LogTail, CountsUpToTheLastByteThatIsNotZero) {
  LogImage image(0, 1);
  image.Void(1);
  image.Zeros(5000);
  image.at(3000) = std::byte{1};
  OpenLog log(image);
  EXPECT_EQ(ExamineTail(log.source, Lsn(40)).cut_bytes, 3001 - 40u);
}

TEST(LogTail, ARecordThatCrossesTheEndOfAPieceIsReadWhole) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  LogImage image(0, 1);
  image.Zeros(kPieceBytes - 64);
  image.Txn(format::RecordKind::kCommand, 41, 0, {}, std::vector<uint64_t>(2000));
  OpenLog log(image);
  EXPECT_EQ(ExamineTail(log.source, Lsn(0)).next_sequence, 42u);
  image.Cut(image.end() - 8);
  OpenLog cut(image);
  EXPECT_EQ(ExamineTail(cut.source, Lsn(0)).next_sequence, 0u);
}

TEST(LogTail, RecordsOfOtherRunsProveNothing) {
  LogImage image(0, 1);
  image.Void(1);
  image.Pad(UINT64_MAX);
  ImageDevice device("log", image.bytes());
  const TailFindings findings = ExamineTail({&device, kRunId + 1, 8, 0, 1}, Lsn(0));
  EXPECT_EQ(findings.proofs[0].until, Lsn(0));
  EXPECT_EQ(findings.cut_bytes, image.end());
}

// A record and, behind so many zeros, a PAD that says everything was durable.
uint64_t ProvedBehindAHoleOf(uint64_t bytes) {
  LogImage image(0, 1);
  const uint64_t frontier = image.Void(1);
  image.Zeros(bytes);
  image.Pad(image.end());
  image.Zeros(100'000);
  OpenLog log(image);
  return ExamineTail(log.source, Lsn(frontier)).proofs[0].until.value() - frontier;
}

TEST(LogTail, RecordsBehindAHoleOfAnyLengthAreFound) {
  for (const uint64_t bytes : {8u, 4096u, 65'536u, 1'048'576u, 1'179'648u, 8'388'608u, 8'388'616u, 20'000'000u}) {
    EXPECT_EQ(ProvedBehindAHoleOf(bytes), bytes) << bytes;
  }
}

TEST(LogTail, ARecordBehindABlockOfZerosIsFound) {
  LogImage image(0, 1);
  image.Zeros(1000);
  image.at(500) = std::byte{1};
  image.Zeros(16'384);
  image.Txn(format::RecordKind::kCommand, 41, 0, {}, std::vector<uint64_t>(4));
  OpenLog log(image);
  EXPECT_EQ(ExamineTail(log.source, Lsn(0)).next_sequence, 42u);
}

TEST(LogTail, ARecordAtEveryPlaceOfABlockIsFound) {
  for (uint64_t at = 4096 - 64; at <= 4096 + 64; at += 8) {
    LogImage image(0, 1);
    image.Zeros(at);
    image.Txn(format::RecordKind::kCommand, 41, 0, {}, std::vector<uint64_t>(1));
    OpenLog log(image);
    EXPECT_EQ(ExamineTail(log.source, Lsn(0)).next_sequence, 42u) << at;
  }
}

TEST(LogTail, RecordsLeadAsFarAsTheyAreWhole) {
  LogImage image(0, 1);
  std::vector<uint64_t> starts = {0};
  while (image.end() < 3'000'000) {
    starts.push_back(image.Txn(format::RecordKind::kCommand, starts.size(), 0, {}, std::vector<uint64_t>(2000)));
  }
  const Lsn end(image.end());
  OpenLog log(image);
  EXPECT_TRUE(RecordsLead(log.source, Lsn(0), end));
  EXPECT_TRUE(RecordsLead(log.source, Lsn(starts[7]), Lsn(starts[8])));
  EXPECT_TRUE(RecordsLead(log.source, end, end));
  EXPECT_FALSE(RecordsLead(log.source, Lsn(8), end));
  EXPECT_FALSE(RecordsLead(log.source, Lsn(0), end + 8));
  image.at(starts[100] + 5000) ^= std::byte{1};
  OpenLog damaged(image);
  EXPECT_TRUE(RecordsLead(damaged.source, Lsn(0), Lsn(starts[100])));
  EXPECT_FALSE(RecordsLead(damaged.source, Lsn(0), Lsn(starts[101])));
}

}  // namespace
}  // namespace dbx::recovery_test
