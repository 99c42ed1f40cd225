// Changes of rows in records: links, the walk over the entries of a body, the runs of an update.
#include "logging/row_changes.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace dbx {
namespace {

using format::RowChangeOp;

std::string EntryOf(Key key, RowChangeOp op, uint64_t previous, const std::string& bytes) {
  format::RowChangeEntry entry{};
  entry.key = key;
  entry.previous = previous;
  entry.op = static_cast<uint8_t>(op);
  entry.length = static_cast<uint32_t>(bytes.size());
  std::string text(reinterpret_cast<const char*>(&entry), sizeof entry);
  text += bytes;
  text.resize(RoundedUpToWords(text.size()));
  return text;
}
std::string RunOf(uint32_t offset, const std::string& bytes) {
  const format::ByteRun run{offset, static_cast<uint32_t>(bytes.size())};
  std::string text(reinterpret_cast<const char*>(&run), sizeof run);
  text += bytes;
  text.resize(RoundedUpToWords(text.size()));
  return text;
}
std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

bool IsWhole(const std::string& text) {
  RowChanges changes(BytesOf(text));
  for (RowChange change; changes.Next(change);) continue;
  return !changes.malformed();
}
bool AreRuns(const std::string& runs, size_t tuple_bytes) {
  return ForEachRun(BytesOf(runs), tuple_bytes, [](uint32_t, std::span<const std::byte>) {});
}

TEST(RowLink, TheFirstRecordOfALogIsNotNone) {
  EXPECT_TRUE(RowLink().is_none());
  EXPECT_FALSE(RowLink(Lsn(0)).is_none());
  EXPECT_EQ(RowLink(Lsn(0)).record(), Lsn(0));
  EXPECT_EQ(RowLink::FromWord(RowLink(Lsn(4096)).word()).record(), Lsn(4096));
}

TEST(RowLink, OnlyAnEarlierRecordCanBeThePrevious) {
  EXPECT_TRUE(RowLink().IsBelow(Lsn(0)));
  EXPECT_TRUE(RowLink(Lsn(64)).IsBelow(Lsn(72)));
  EXPECT_FALSE(RowLink(Lsn(64)).IsBelow(Lsn(64)));
  EXPECT_FALSE(RowLink::FromWord(64).IsBelow(Lsn(128))) << "a link without its bit";
  EXPECT_FALSE(RowLink::FromWord(67).IsBelow(Lsn(128))) << "no record starts there";
}

TEST(RowChanges, EntriesAreGivenInOrder) {
  const std::string body = EntryOf(1, RowChangeOp::kInsert, 0, "abc") + EntryOf(2, RowChangeOp::kDelete, 65, "") +
                           EntryOf(3, RowChangeOp::kUpdate, 129, RunOf(1, "z"));
  RowChanges changes(BytesOf(body));
  std::vector<Key> keys;
  for (RowChange change; changes.Next(change);) keys.push_back(change.key);
  EXPECT_EQ(keys, (std::vector<Key>{1, 2, 3}));
  EXPECT_FALSE(changes.malformed());
}

TEST(RowChanges, MalformedEntriesAreTold) {
  const std::string good = EntryOf(1, RowChangeOp::kInsert, 0, "abcdefgh");
  EXPECT_TRUE(IsWhole(good));
  for (size_t bytes = 1; bytes < good.size(); ++bytes) EXPECT_FALSE(IsWhole(good.substr(0, bytes))) << bytes;
  EXPECT_FALSE(IsWhole(EntryOf(1, static_cast<RowChangeOp>(0), 0, "")));
  EXPECT_FALSE(IsWhole(EntryOf(1, static_cast<RowChangeOp>(4), 0, "")));
  EXPECT_FALSE(IsWhole(EntryOf(1, RowChangeOp::kDelete, 0, "a")));
}

TEST(RowChanges, RunsLieInTheTupleAndAscend) {
  EXPECT_TRUE(AreRuns("", 10));
  EXPECT_TRUE(AreRuns(RunOf(0, "a") + RunOf(9, "b"), 10));
  EXPECT_FALSE(AreRuns(RunOf(9, "bc"), 10));
  EXPECT_FALSE(AreRuns(RunOf(11, "b"), 10));
  EXPECT_FALSE(AreRuns(RunOf(4, "ab") + RunOf(5, "b"), 10));
  EXPECT_FALSE(AreRuns(RunOf(4, ""), 10));
  EXPECT_FALSE(AreRuns(RunOf(4, "ab").substr(0, 12), 10));
}

TEST(RowChanges, AnUpdateChangesItsRunsAtBothEndsAndNothingElse) {
  std::string tuple = "0123456789";
  const std::string runs = RunOf(0, "A") + RunOf(8, "YZ");
  RowChange change;
  change.op = RowChangeOp::kUpdate;
  change.bytes = BytesOf(runs);
  ASSERT_TRUE(Fits(change, tuple.size()));
  ApplyTo(reinterpret_cast<std::byte*>(tuple.data()), tuple.size(), change);
  EXPECT_EQ(tuple, "A1234567YZ");
}

TEST(ByteRange, RangesAreSortedAndJoinedOverSmallGaps) {
  std::vector<ByteRange> ranges{{40, 48}, {0, 8}, {16, 24}, {4, 10}, {33, 40}};
  JoinRanges(ranges, 8);
  EXPECT_EQ(ranges, (std::vector<ByteRange>{{0, 24}, {33, 48}}));
}

}  // namespace
}  // namespace dbx
