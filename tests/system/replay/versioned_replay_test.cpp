// Commands that run again in many versions: what they see at their timestamps, whatever was replayed before them, and
// which versions are kept for them.
#include "system/replay/versioned_replay.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "storage/digest.h"
#include "system/reference/reference_versions.h"

namespace dbx {
namespace {

constexpr Key kX = 2, kNew = 3;
constexpr uint64_t kMissing = ~uint64_t{0};
using Found = std::vector<std::pair<Key, uint64_t>>;

std::span<const std::byte> TupleOf(const uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

uint64_t ValueOf(auto& context, Table& table, Key key) {
  uint64_t value = kMissing;
  const Outcome outcome =
      context.Read(table, key, [&](const auto& tuple) { value = tuple.template GetAt<uint64_t>(0); });
  return outcome == Outcome::kOk ? value : kMissing;
}
Outcome SetTo(auto& context, Table& table, Key key, uint64_t value) {
  return context.Update(table, key, [&](auto& tuple) { tuple.SetAt(0, value); });
}
Found RowsOf(auto& context, Table& table, ScanOrder order = ScanOrder::kAscending) {
  Found found;
  EXPECT_EQ(context.Scan(table, 0, ~Key{0}, order,
                         [&](Key key, const auto& tuple) {
                           found.emplace_back(key, tuple.template GetAt<uint64_t>(0));
                           return true;
                         }),
            Outcome::kOk);
  return found;
}

// Two tables of even keys, each with ten times its key.
class VersionedReplay : public ::testing::Test {
 protected:
  static constexpr Key kKeys = 8;

  VersionedReplay() {
    for (const bool ordered : {false, true}) {
      Schema schema;
      schema.name = ordered ? "ORDERED" : "HASHED";
      schema.tuple_bytes = sizeof(uint64_t);
      schema.ordered = ordered;
      Table& table = db_.CreateTable(schema);
      for (uint64_t key = 0; key < kKeys; key += 2) table.LoadRow(WorkerId(0), key, TupleOf(key * 10));
    }
  }
  Table& hashed() { return db_.table(TableId(0)); }
  Table& ordered() { return db_.table(TableId(1)); }
  VersionedReplayTransaction& At(uint64_t read, uint64_t end) {
    txn_.Begin(Timestamp(read), Timestamp(end));
    return txn_;
  }
  void Collect(uint64_t watermark) { txn_.Collect(Timestamp(watermark)); }
  // Of a transaction that ends long after all others.
  uint64_t SeenAt(uint64_t read, Key key) { return ValueOf(At(read, 1'000'000), hashed(), key); }
  size_t entries() {
    size_t count = 0;
    ForEachEntry(ordered().tree(), [&](Key, Row&) { ++count; });
    return count;
  }

  Database db_{{.cc_bytes = kVersionChainBytes}, 2};
  VersionStore versions_;
  VersionedReplayTransaction txn_{WorkerId(0), versions_};
};

TEST_F(VersionedReplay, AReaderSeesWhatWasThereThoughItIsOverwrittenAlready) {
  EXPECT_EQ(SetTo(At(4, 5), hashed(), kX, 500), Outcome::kOk);
  EXPECT_EQ(SetTo(At(8, 9), hashed(), kX, 900), Outcome::kOk);
  EXPECT_EQ(SeenAt(4, kX), 20u);
  EXPECT_EQ(SeenAt(5, kX), 500u);
  EXPECT_EQ(SeenAt(8, kX), 500u);
  EXPECT_EQ(SeenAt(9, kX), 900u);
}

TEST_F(VersionedReplay, WhoMissesARowDoesSoThoughItIsInsertedAlready) {
  EXPECT_EQ(At(6, 7).Insert(hashed(), kNew, TupleOf(77)), Outcome::kOk);
  EXPECT_EQ(SeenAt(6, kNew), kMissing);
  EXPECT_EQ(SeenAt(7, kNew), 77u);
  EXPECT_EQ(SetTo(At(6, 20), hashed(), kNew, 1), Outcome::kNotFound);
  EXPECT_EQ(At(6, 20).Delete(hashed(), kNew), Outcome::kNotFound);
}

TEST_F(VersionedReplay, ARowThatIsDeletedAndInsertedAgainWasAbsentInBetween) {
  EXPECT_EQ(At(4, 5).Delete(hashed(), kX), Outcome::kOk);
  EXPECT_EQ(At(8, 9).Insert(hashed(), kX, TupleOf(90)), Outcome::kOk);
  EXPECT_EQ(SeenAt(4, kX), 20u);
  EXPECT_EQ(SeenAt(5, kX), kMissing);
  EXPECT_EQ(SeenAt(8, kX), kMissing);
  EXPECT_EQ(SeenAt(9, kX), 90u);
  EXPECT_EQ(At(4, 20).Insert(hashed(), kX, TupleOf(1)), Outcome::kExists);
}

TEST_F(VersionedReplay, AScanShowsWhatIsDeletedLaterAndNotWhatIsInsertedLater) {
  EXPECT_EQ(At(4, 5).Delete(ordered(), kX), Outcome::kOk);
  EXPECT_EQ(At(5, 6).Insert(ordered(), kNew, TupleOf(33)), Outcome::kOk);
  EXPECT_EQ(SetTo(At(6, 7), ordered(), 4, 44), Outcome::kOk);
  EXPECT_EQ(RowsOf(At(4, 20), ordered()), (Found{{0, 0}, {2, 20}, {4, 40}, {6, 60}}));
  EXPECT_EQ(RowsOf(At(6, 20), ordered()), (Found{{0, 0}, {3, 33}, {4, 40}, {6, 60}}));
  EXPECT_EQ(RowsOf(At(7, 20), ordered(), ScanOrder::kDescending), (Found{{6, 60}, {4, 44}, {3, 33}, {0, 0}}));
}

TEST_F(VersionedReplay, ATransactionSeesWhatItWroteHoweverOften) {
  VersionedReplayTransaction& txn = At(4, 9);
  EXPECT_EQ(txn.Insert(ordered(), kNew, TupleOf(1)), Outcome::kOk);
  EXPECT_EQ(txn.Insert(ordered(), kNew, TupleOf(2)), Outcome::kExists);
  EXPECT_EQ(SetTo(txn, ordered(), kNew, 3), Outcome::kOk);
  EXPECT_EQ(ValueOf(txn, ordered(), kNew), 3u);
  EXPECT_EQ(txn.Delete(ordered(), kNew), Outcome::kOk);
  EXPECT_EQ(txn.Delete(ordered(), kNew), Outcome::kNotFound);
  EXPECT_EQ(txn.Insert(ordered(), kNew, TupleOf(4)), Outcome::kOk);
  EXPECT_EQ(SetTo(txn, ordered(), kX, 21), Outcome::kOk);
  EXPECT_EQ(SetTo(txn, ordered(), kX, 22), Outcome::kOk);
  EXPECT_EQ(RowsOf(txn, ordered()), (Found{{0, 0}, {2, 22}, {3, 4}, {4, 40}, {6, 60}}));
  EXPECT_EQ(RowsOf(At(8, 20), ordered()), (Found{{0, 0}, {2, 20}, {4, 40}, {6, 60}}));
  EXPECT_EQ(RowsOf(At(9, 20), ordered()), (Found{{0, 0}, {2, 22}, {3, 4}, {4, 40}, {6, 60}}));
  EXPECT_EQ(versions_.waiting(), 1u);
}

TEST_F(VersionedReplay, WhatATransactionInsertsAndDeletesNobodySees) {
  VersionedReplayTransaction& txn = At(4, 9);
  EXPECT_EQ(txn.Insert(ordered(), kNew, TupleOf(1)), Outcome::kOk);
  EXPECT_EQ(txn.Delete(ordered(), kNew), Outcome::kOk);
  for (const uint64_t read : {3, 8, 9}) EXPECT_EQ(ValueOf(At(read, 20), ordered(), kNew), kMissing);
  EXPECT_EQ(entries(), 5u);
  Collect(9);
  EXPECT_EQ(entries(), 4u);
}

// Under snapshot isolation two transactions may each overwrite what the other has only read. In one version the second
// would see what the first has left.
TEST_F(VersionedReplay, AWriteSkewIsReplayedAsItWas) {
  for (const auto& [read, written] : {std::pair<Key, Key>{0, 2}, {2, 0}}) {
    VersionedReplayTransaction& txn = At(4, 5 + read);
    EXPECT_EQ(SetTo(txn, hashed(), written, ValueOf(txn, hashed(), read) + 1), Outcome::kOk);
  }
  EXPECT_EQ(SeenAt(10, 2), 1u);
  EXPECT_EQ(SeenAt(10, 0), 21u);
}

// No engine leaves such records.
TEST_F(VersionedReplay, AWriterOfWhatItDidNotSeeIsRefused) {
  EXPECT_EQ(SetTo(At(4, 9), hashed(), kX, 1), Outcome::kOk);
  EXPECT_EQ(SetTo(At(8, 20), hashed(), kX, 2), Outcome::kConflict);
  EXPECT_EQ(At(8, 20).Delete(hashed(), kX), Outcome::kConflict);
  EXPECT_EQ(At(4, 9).Insert(hashed(), kNew, TupleOf(1)), Outcome::kOk);
  EXPECT_EQ(At(8, 20).Insert(hashed(), kNew, TupleOf(2)), Outcome::kConflict);
}

TEST_F(VersionedReplay, AVersionIsKeptUntilNobodyReadsBelowItsEnd) {
  EXPECT_EQ(SetTo(At(4, 5), hashed(), kX, 500), Outcome::kOk);
  Collect(4);
  EXPECT_EQ(versions_.waiting(), 1u);
  EXPECT_EQ(SeenAt(4, kX), 20u);
  Collect(5);
  EXPECT_EQ(versions_.waiting(), 0u);
  EXPECT_EQ(SeenAt(5, kX), 500u);
}

TEST_F(VersionedReplay, ADeletedRowStaysInAnOrderedTableUntilNobodyReadsBelowItsEnd) {
  EXPECT_EQ(At(4, 5).Delete(ordered(), kX), Outcome::kOk);
  Collect(4);
  EXPECT_EQ(entries(), 4u);
  EXPECT_EQ(RowsOf(At(4, 20), ordered()).size(), 4u);
  Collect(5);
  EXPECT_EQ(entries(), 3u);
  EXPECT_EQ(At(6, 7).Insert(ordered(), kX, TupleOf(1)), Outcome::kOk);
  EXPECT_EQ(ValueOf(At(6, 20), ordered(), kX), kMissing);
  EXPECT_EQ(ValueOf(At(7, 20), ordered(), kX), 1u);
}

TEST_F(VersionedReplay, ARowThatIsInsertedAgainStays) {
  EXPECT_EQ(At(4, 5).Delete(ordered(), kX), Outcome::kOk);
  EXPECT_EQ(At(6, 7).Insert(ordered(), kX, TupleOf(1)), Outcome::kOk);
  Collect(100);
  EXPECT_EQ(entries(), 4u);
  EXPECT_EQ(ValueOf(At(100, 101), ordered(), kX), 1u);
}

TEST_F(VersionedReplay, AnOldReaderFindsItsVersionBehindAnyNumberOfLaterOnes) {
  for (uint64_t end = 10; end < 10'000; ++end) {
    ASSERT_EQ(SetTo(At(end - 1, end), hashed(), kX, end), Outcome::kOk);
    Collect(9);
  }
  EXPECT_EQ(versions_.waiting(), 9990u);
  EXPECT_EQ(SeenAt(9, kX), 20u);
  EXPECT_EQ(SeenAt(5000, kX), 5000u);
}

TEST_F(VersionedReplay, WhatNobodyReadsAnyMoreIsUsedAgain) {
  for (uint64_t end = 10; end < 100'000; ++end) {
    ASSERT_EQ(SetTo(At(end - 1, end), hashed(), kX, end), Outcome::kOk);
    Collect(end - 5);
  }
  EXPECT_LE(versions_.waiting(), 5u);
  EXPECT_LE(versions_.memory_bytes(), size_t{64} << 10);
}

// One worker overwrites the rows, both in each transaction, while another reads them at whatever timestamp it likes.
TEST_F(VersionedReplay, AReaderBesideWritersSeesOneMoment) {
  constexpr uint64_t kLast = 40'000;
  std::atomic<uint64_t> written{1};
  std::thread writer([&] {
    for (uint64_t end = 2; end <= kLast; ++end) {
      At(end - 1, end);
      for (const Key key : {0, 2}) ASSERT_EQ(SetTo(txn_, ordered(), key, end * 100 + key), Outcome::kOk);
      if (end % 3 == 0) {
        ASSERT_EQ(txn_.Insert(ordered(), kNew, TupleOf(end * 100 + kNew)), Outcome::kOk);
      }
      if (end % 3 == 2 && end > 3) {
        ASSERT_EQ(txn_.Delete(ordered(), kNew), Outcome::kOk);
      }
      written = end;
    }
  });
  VersionStore nothing;
  VersionedReplayTransaction reader(WorkerId(1), nothing);
  std::mt19937_64 random(1);
  while (written < kLast) {
    const uint64_t until = written, read = 2 + random() % until;
    if (read > until) continue;
    reader.Begin(Timestamp(read), Timestamp(kLast + 1));
    Found expected{{0, read * 100}, {2, read * 100 + 2}, {4, 40}, {6, 60}};
    if (read % 3 != 2 && read > 2) expected.insert(expected.begin() + 2, {kNew, read / 3 * 300 + kNew});
    ASSERT_EQ(RowsOf(reader, ordered()), expected) << read;
    ASSERT_EQ(ValueOf(reader, ordered(), 0), read * 100);
  }
  writer.join();
}

// A tuple that takes long to copy, all words alike, which one worker overwrites again and again.
class VersionedReplayOfALargeTuple : public VersionedReplay {
 protected:
  static constexpr size_t kTupleBytes = 32 << 10;

  VersionedReplayOfALargeTuple() {
    Schema schema;
    schema.name = "LARGE";
    schema.tuple_bytes = kTupleBytes;
    schema.ordered = true;
    large_ = &db_.CreateTable(schema);
    large_->LoadRow(WorkerId(0), kX, std::vector<std::byte>(kTupleBytes));
  }
  // From the tuple's end to its start, against the direction of the readers that copy it.
  void OverwriteUntil(const std::stop_token& stop) {
    for (uint64_t end = 1; !stop.stop_requested(); ++end) {
      const auto fill = [&](auto& tuple) {
        for (size_t at = kTupleBytes; at > 0; at -= sizeof end) tuple.SetAt(at - sizeof end, end);
      };
      ASSERT_EQ(At(end - 1, end).Update(*large_, kX, fill), Outcome::kOk);
      written_ = end;
      Collect(reading_);
    }
  }
  static bool IsFilledWith(uint64_t value, const auto& tuple) {
    for (size_t at = 0; at < kTupleBytes; at += sizeof value) {
      if (tuple.template GetAt<uint64_t>(at) != value) return false;
    }
    return true;
  }

  Table* large_;
  std::atomic<uint64_t> written_{0}, reading_{0};
};

// However many processors there are: it goes on until enough scans have met an overwrite.
TEST_F(VersionedReplayOfALargeTuple, AScanThatTheWriterOvertakesSeesOneVersion) {
  const Row& row = *large_->Find(kX);
  VersionStore nothing;
  VersionedReplayTransaction reader(WorkerId(1), nothing);
  std::jthread writer([&](const std::stop_token& stop) { OverwriteUntil(stop); });
  for (int overtaken = 0; overtaken < 20 && !HasFailure();) {
    reading_ = written_.load();
    const uint64_t before = row.control.load();
    reader.Begin(Timestamp(reading_), Timestamp(format::kTimestampMax));
    const Outcome outcome = reader.Scan(*large_, kX, kX, ScanOrder::kAscending, [&](Key, const auto& tuple) {
      if (row.control.load() != before) ++overtaken;
      EXPECT_TRUE(IsFilledWith(reading_, tuple));
      return true;
    });
    EXPECT_EQ(outcome, Outcome::kOk);
  }
}

// One access, the same for every context that is given the same numbers.
struct Seen {
  Outcome outcome;
  Found rows;
  bool operator==(const Seen&) const = default;
};
Seen Access(auto& context, Table& table, std::mt19937_64 random) {
  const uint64_t kind = random() % 8, value = random();
  const Key key = random() % 50;
  if (kind < 2) return {context.Insert(table, key, TupleOf(value)), {}};
  if (kind == 2) return {context.Delete(table, key), {}};
  if (kind < 5) return {SetTo(context, table, key, value), {}};
  if (kind == 5) return {Outcome::kOk, {{key, ValueOf(context, table, key)}}};
  return {Outcome::kOk, RowsOf(context, table, kind == 6 ? ScanOrder::kAscending : ScanOrder::kDescending)};
}

// In the order of ends, which is the reference's; the timestamps at which they read lie behind, and so do their rows.
TEST_F(VersionedReplay, AgreesWithTheReference) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  Database expected({}, 1);
  Schema schema = ordered().schema();
  Table& table = expected.CreateTable(schema);
  for (uint64_t key = 0; key < kKeys; key += 2) table.LoadRow(WorkerId(0), key, TupleOf(key * 10));
  reference::VersionedContext context;
  for (uint64_t end = 20; end < 20'000; ++end) {
    const uint64_t read = end - 1 - random() % 10;
    context.Begin(read, end);
    At(read, end);
    for (int i = 0; i < 3; ++i) {
      const std::mt19937_64 numbers(random());
      ASSERT_EQ(Access(txn_, ordered(), numbers), Access(context, table, numbers)) << end;
    }
    context.End(/*undo=*/false, end - 9);
    if (random() % 4 == 0) Collect(end - 9);
  }
  EXPECT_EQ(RowsOf(At(30'000, 30'001), ordered()), [&] {
    context.Begin(30'000, 30'001);
    return RowsOf(context, table);
  }());
}

}  // namespace
}  // namespace dbx
