// Rows rebuilt on demand from one to three runs, against the state that replaying all records leaves; and what must be
// refused.
#include "system/replay/row_chains.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "logging/serial/serial_recovery.h"
#include "system/replay/recovery.h"
#include "tests/logging/caught.h"
#include "tests/logging/log_builder.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::testing {
namespace {

using format::RowChangeOp;
using recovery_test::ImageDevice;

constexpr uint32_t kTupleBytes = 21;
constexpr Key kLoaded = 8;
constexpr WorkerId kWorker{0};
constexpr TableId kHash{0}, kOrdered{1};

std::string Loaded(Key key) { return std::string(kTupleBytes, static_cast<char>('a' + key)); }

// Damage may come late.
class ChangingDevice final : public ImageDevice {
 public:
  using ImageDevice::ImageDevice;
  size_t Read(uint64_t offset, std::span<std::byte> to) override {
    const size_t bytes = ImageDevice::Read(offset, to);
    if (flipped_ >= offset && flipped_ < offset + bytes) to[flipped_ - offset] ^= std::byte{1};
    return bytes;
  }
  void FlipAt(uint64_t offset) { flipped_ = offset; }

 private:
  uint64_t flipped_ = UINT64_MAX;
};

// A run's log, which links what is written into it as the engine would, and the state that it leaves.
class ChainedRun {
 public:
  using State = std::map<std::pair<uint16_t, Key>, std::string>;

  ChainedRun(uint64_t run_id, State& state)
      : run_id_(run_id), log_(run_id, 0, 1, format::Scheme::kInstant), state_(state) {}

  void Insert(TableId table, Key key, const std::string& tuple) {
    state_[{table.value(), key}] = tuple;
    Append(table, key, RowChangeOp::kInsert, tuple);
  }
  void Delete(TableId table, Key key) {
    state_.erase({table.value(), key});
    Append(table, key, RowChangeOp::kDelete, "");
  }
  // `text` at `offset`.
  void Update(TableId table, Key key, uint32_t offset, const std::string& text) {
    state_[{table.value(), key}].replace(offset, text.size(), text);
    const format::ByteRun run{offset, static_cast<uint32_t>(text.size())};
    std::string runs(reinterpret_cast<const char*>(&run), sizeof run);
    runs += text;
    runs.resize(RoundedUpToWords(runs.size()));
    Append(table, key, RowChangeOp::kUpdate, runs);
  }
  // A tombstone has left the index, and its metadata with it.
  void Forget(TableId table, Key key) { last_.erase({table.value(), key}); }
  void Misname(TableId table, Key key, RowLink link) { last_[{table.value(), key}] = link; }

  LogBuilder& log() { return log_; }
  ChangingDevice& device() { return *device_; }
  LogSource Source() {
    device_ = std::make_unique<ChangingDevice>("run-" + std::to_string(run_id_), log_.Bytes());
    LogSource source;
    source.device = device_.get();
    source.run_id = run_id_;
    return source;
  }

 private:
  void Append(TableId table, Key key, RowChangeOp op, const std::string& bytes) {
    format::RowChangeEntry entry{};
    entry.key = key;
    entry.table = table.value();
    entry.op = static_cast<uint8_t>(op);
    entry.length = static_cast<uint32_t>(bytes.size());
    RowLink& last = last_[{table.value(), key}];
    entry.previous = last.word();
    last = RowLink(Lsn(log_.End()));
    const uint64_t id = ++txns_;
    std::string body(reinterpret_cast<const char*>(&id), sizeof id);
    body.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    body += bytes;
    body.resize(RoundedUpToWords(body.size()));
    log_.Raw(log_.HeaderOf(format::RecordKind::kRowChanges), body);
  }

  const uint64_t run_id_;
  LogBuilder log_;
  State& state_;
  std::map<std::pair<uint16_t, Key>, RowLink> last_;
  uint64_t txns_ = 0;
  std::unique_ptr<ChangingDevice> device_;
};

class RowChainsTest : public ::testing::Test {
 protected:
  RowChainsTest() {
    database_.CreateTable({.name = "HASH", .columns = {}, .tuple_bytes = kTupleBytes, .expected_rows = 64});
    database_.CreateTable(
        {.name = "ORDERED", .columns = {}, .tuple_bytes = kTupleBytes, .expected_rows = 64, .ordered = true});
    for (const TableId table : {kHash, kOrdered}) {
      for (Key key = 0; key < kLoaded; ++key) {
        state_[{table.value(), key}] = Loaded(key);
        const std::string tuple = Loaded(key);
        database_.table(table).LoadRow(kWorker, key, std::as_bytes(std::span(tuple)));
      }
    }
    chains_.emplace(database_);
  }

  ChainedRun& StartRun() { return *runs_.emplace_back(std::make_unique<ChainedRun>(77 + runs_.size(), state_)); }
  // The pass over all runs.
  void Analyse() {
    for (const auto& run : runs_) {
      const LogSource source = run->Source();
      SerialRecovery recovery(ReplaySettings{});
      chains_->StartRun();
      recovery.Open({source});
      while (recovery.Decode(kWorker)) {
        while (TxnRecord* record = recovery.NextReady(kWorker)) {
          chains_->Note(*record, source);
          recovery.MarkReplayed(kWorker);
        }
      }
      chains_->ReadFrom(source, recovery.Finish().frontier.front());
    }
    chains_->TakeOut(1);
  }

  // As a look-up does that misses.
  std::optional<std::string> Find(TableId id, Key key, WorkerId worker = kWorker) {
    Table& table = database_.table(id);
    if (table.Find(key) == nullptr && table.has_rows_elsewhere()) table.EnsureRow(worker, key);
    Row* const row = table.Find(key);
    if (row == nullptr) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(table.tuple(row)), kTupleBytes);
  }
  void ExpectState() {
    for (const TableId table : {kHash, kOrdered}) {
      for (Key key = 0; key < 2 * kLoaded; ++key) {
        const auto expected = state_.find({table.value(), key});
        const std::optional<std::string> found = Find(table, key);
        ASSERT_EQ(found.has_value(), expected != state_.end()) << "table " << table.value() << " key " << key;
        if (!found) continue;
        EXPECT_EQ(*found, expected->second) << "table " << table.value() << " key " << key;
      }
    }
    EXPECT_TRUE(chains_->is_complete());
    EXPECT_EQ(chains_->rebuilt_on_demand(), chains_->rows_at_start());
  }
  ExitStatus Refusal(auto&& call) { return Caught(call, what_); }

  ChainedRun::State state_;
  Database database_{{.log_bytes = sizeof(RowLink)}, 3};
  std::vector<std::unique_ptr<ChainedRun>> runs_;
  std::optional<RowChains> chains_;
  std::string what_;
};

TEST_F(RowChainsTest, WithoutRecordsNothingIsTakenOut) {
  StartRun();
  Analyse();
  EXPECT_FALSE(database_.table(kHash).has_rows_elsewhere());
  ExpectState();
}

TEST_F(RowChainsTest, UpdatesAreAppliedFromTheOldestOn) {
  ChainedRun& run = StartRun();
  run.Update(kHash, 3, 0, "1");
  run.Update(kHash, 3, kTupleBytes - 2, "23");
  run.Update(kOrdered, 3, 0, "456");
  run.Update(kHash, 3, 0, "7");
  Analyse();
  EXPECT_EQ(chains_->rows_at_start(), 2u);
  EXPECT_EQ(database_.table(kHash).Find(3), nullptr);
  ExpectState();
  EXPECT_EQ(chains_->records_read(), 4u);
}

TEST_F(RowChainsTest, AChainGoesOnInOlderRuns) {
  for (const size_t runs : {1, 2, 3}) {
    for (size_t i = 0; i < runs; ++i) {
      ChainedRun& run = StartRun();
      run.Update(kHash, 1, static_cast<uint32_t>(i), "x");
      if (i != 1) run.Update(kHash, 2, static_cast<uint32_t>(5 * i), "yz");
    }
  }
  Analyse();
  ExpectState();
}

TEST_F(RowChainsTest, InsertsAndDeletesFollowEachOther) {
  ChainedRun& run = StartRun();
  run.Insert(kHash, 9, Loaded(11));
  run.Delete(kHash, 9);
  run.Insert(kHash, 9, Loaded(12));
  run.Update(kHash, 9, 4, "123");
  run.Insert(kHash, 10, Loaded(10));
  run.Delete(kHash, 10);
  run.Delete(kHash, 4);
  run.Delete(kOrdered, 5);
  run.Insert(kOrdered, 5, Loaded(13));
  Analyse();
  ExpectState();
}

TEST_F(RowChainsTest, ADeleteInAnOlderRunHidesTheBase) {
  StartRun().Delete(kHash, 4);
  StartRun().Insert(kHash, 4, Loaded(9));
  StartRun().Update(kHash, 4, 1, "2");
  StartRun().Delete(kHash, 6);
  Analyse();
  ExpectState();
}

TEST_F(RowChainsTest, AnInsertEndsTheWalk) {
  ChainedRun& run = StartRun();
  for (uint32_t i = 0; i < 9; ++i) run.Update(kHash, 4, i, "z");
  run.Delete(kHash, 4);
  run.Insert(kHash, 4, Loaded(9));
  Analyse();
  ExpectState();
  EXPECT_EQ(chains_->records_read(), 1u);
}

TEST_F(RowChainsTest, AnInsertMayHaveLostItsTombstone) {
  ChainedRun& run = StartRun();
  run.Update(kHash, 4, 3, "z");
  run.Delete(kHash, 4);
  run.Forget(kHash, 4);
  run.Insert(kHash, 4, Loaded(9));
  Analyse();
  ExpectState();
}

TEST_F(RowChainsTest, AScanFindsAllRowsOfItsTable) {
  ChainedRun& run = StartRun();
  for (Key key = 0; key < kLoaded; ++key) run.Update(kOrdered, key, 0, "s");
  run.Update(kHash, 1, 0, "s");
  Analyse();
  EXPECT_EQ(database_.table(kOrdered).row_count(), 0u);
  database_.table(kOrdered).EnsureRange(kWorker, 0, kLoaded);
  EXPECT_EQ(database_.table(kOrdered).row_count(), kLoaded);
  EXPECT_FALSE(database_.table(kOrdered).has_rows_elsewhere());
  EXPECT_TRUE(database_.table(kHash).has_rows_elsewhere());
  ExpectState();
}

TEST_F(RowChainsTest, AllAreRebuiltInTheEndAndCountApart) {
  ChainedRun& run = StartRun();
  for (Key key = 0; key < kLoaded; ++key) run.Update(kHash, key, 0, "s");
  Analyse();
  (void)Find(kHash, 3);
  chains_->EnsureAll(2);
  EXPECT_TRUE(chains_->is_complete());
  EXPECT_EQ(chains_->rebuilt_on_demand(), 1u);
  EXPECT_EQ(chains_->records_read(), kLoaded);
  for (Key key = 0; key < kLoaded; ++key) EXPECT_EQ(Find(kHash, key), (state_[{kHash.value(), key}]));
}

TEST_F(RowChainsTest, TwoThreadsThatMissAKeyFindOneRow) {
  ChainedRun& run = StartRun();
  for (uint32_t i = 0; i < 400; ++i) run.Update(kHash, i % kLoaded, i % kTupleBytes, std::string(1, 'A' + i % 26));
  Analyse();
  std::vector<std::vector<std::optional<std::string>>> found(3, std::vector<std::optional<std::string>>(kLoaded));
  {
    std::vector<Thread> threads;
    for (uint32_t worker = 0; worker < 3; ++worker) {
      threads.emplace_back([&, worker] {
        for (Key key = 0; key < kLoaded; ++key) found[worker][key] = Find(kHash, key, WorkerId(worker));
      });
    }
    for (Thread& thread : threads) thread.join();
  }
  for (Key key = 0; key < kLoaded; ++key) {
    for (const auto& of_worker : found) EXPECT_EQ(of_worker[key], (state_[{kHash.value(), key}]));
  }
  EXPECT_EQ(chains_->rebuilt_on_demand(), kLoaded);
}

// A reader that finds the row in the index finds all of its chain's changes.
TEST_F(RowChainsTest, ARowIsWholeWhenItIsInTheIndex) {
  ChainedRun& run = StartRun();
  for (Key key = 0; key < kLoaded; ++key) {
    for (uint32_t i = 0; i < 40; ++i)
      run.Update(kHash, key, 0, std::string(kTupleBytes, static_cast<char>('A' + i % 26)));
  }
  Analyse();
  Table& table = database_.table(kHash);
  Atomic<bool> wrong{false};
  {
    std::vector<Thread> threads;
    threads.emplace_back([&] {
      for (Key key = 0; key < kLoaded; ++key) table.EnsureRow(WorkerId(1), key);
    });
    for (Key key = 0; key < kLoaded; ++key) {
      Row* row = nullptr;
      while ((row = table.Find(key)) == nullptr) host::Yield();
      const std::string expected = state_[{kHash.value(), key}];
      if (std::memcmp(table.tuple(row), expected.data(), kTupleBytes) != 0) wrong.store(true);
    }
    for (Thread& thread : threads) thread.join();
  }
  EXPECT_FALSE(wrong.load());
}

// ---- What is refused -----------------------------------------------------------------------------------------

TEST_F(RowChainsTest, ARecordThatNamesAnotherAsPreviousIsRefused) {
  ChainedRun& run = StartRun();
  run.Update(kHash, 3, 0, "1");
  run.Misname(kHash, 4, RowLink(Lsn(0)));
  run.Update(kHash, 4, 0, "1");
  EXPECT_EQ(Refusal([&] { Analyse(); }), ExitStatus::kCorrupt);
  EXPECT_NE(what_.find("does not name its row's previous record"), std::string::npos) << what_;
}

TEST_F(RowChainsTest, AnUpdateWithoutItsPreviousRecordIsRefused) {
  ChainedRun& run = StartRun();
  run.Update(kHash, 3, 0, "1");
  run.Forget(kHash, 3);
  run.Update(kHash, 3, 0, "2");
  EXPECT_EQ(Refusal([&] { Analyse(); }), ExitStatus::kCorrupt);
}

TEST_F(RowChainsTest, AnUpdateOfARowThatIsNotThereIsRefused) {
  ChainedRun& run = StartRun();
  run.Update(kHash, 12, 0, "1");
  Analyse();
  EXPECT_EQ(Refusal([&] { Find(kHash, 12); }), ExitStatus::kCorrupt);
  EXPECT_EQ(Refusal([&] { Find(kHash, 12); }), ExitStatus::kCorrupt) << "and from then on";
  EXPECT_NE(what_.find("changes a row that is not there"), std::string::npos) << what_;
}

// It was whole when the log was read, and is not when the row is rebuilt.
TEST_F(RowChainsTest, ADamagedRecordWithinAChainIsRefused) {
  ChainedRun& run = StartRun();
  for (uint32_t i = 0; i < 5; ++i) run.Update(kHash, 3, i, "1");
  run.Update(kHash, 4, 0, "1");
  Analyse();
  const uint64_t third = run.log().Start(2);
  run.device().FlipAt(FileOffset(third + sizeof(format::RecordHeader) + 4));
  EXPECT_EQ(Refusal([&] { Find(kHash, 3); }), ExitStatus::kCorrupt);
  EXPECT_NE(what_.find("damaged log run-77@" + std::to_string(FileOffset(third))), std::string::npos) << what_;
  EXPECT_EQ(Find(kHash, 4), (state_[{kHash.value(), 4}])) << "other rows are as they were";
}

}  // namespace
}  // namespace dbx::testing
