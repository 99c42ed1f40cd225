// Recovery of Silo-R's logs: newest wins in any order, deletes are versions, and nothing beyond the frontier.
#include "logging/silo_r/silo_r_recovery.h"

#include <gtest/gtest.h>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

// A put, or a delete where there is no value.
struct Version {
  Key key;
  std::optional<uint64_t> value;
};

void Txn(LogImage& log, uint64_t id, uint64_t tid, const std::vector<Version>& versions) {
  std::vector<uint64_t> body{tid};
  for (const auto& [key, value] : versions) {
    const auto op = value ? format::WriteOp::kPut : format::WriteOp::kDelete;
    const format::WriteEntry entry{key, 0, static_cast<uint8_t>(op), 0, value ? 8u : 0u};
    uint64_t words[2];
    std::memcpy(words, &entry, sizeof entry);
    body.insert(body.end(), words, words + 2);
    if (value) body.push_back(*value);
  }
  log.Stamped(id, 0, body);
}
std::vector<LogImage> TwoLogs() { return {LogImage(0, 2), LogImage(1, 2)}; }

Recovered Recover(const std::vector<LogImage>& images, uint64_t stamp_end = UINT64_MAX, uint32_t workers = 2) {
  return RecoverImages<SiloRRecovery>(images, {.workers = workers, .stamp_end = Stamp(stamp_end)});
}

// Trap 24: whatever the order in the logs.
TEST(SiloRRecovery, TheNewestVersionWins) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 30, {{1, 130}, {2, 230}});
  Txn(logs[0], 2, 10, {{1, 110}});
  Txn(logs[1], 3, 20, {{1, 120}, {2, 220}});
  Txn(logs[1], 4, 40, {{2, 240}});
  for (const uint32_t workers : {1, 2, 5}) {
    const Recovered recovered = Recover(logs, UINT64_MAX, workers);
    EXPECT_EQ(recovered.state.at(1), 130u);
    EXPECT_EQ(recovered.state.at(2), 240u);
    EXPECT_EQ(recovered.txns.size(), 4u);
  }
}

// Trap 24: the deleted row keeps its TID.
TEST(SiloRRecovery, AnOlderInsertDoesNotBringADeletedRowBack) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 30, {{50, std::nullopt}});
  Txn(logs[1], 2, 20, {{50, 7}});
  EXPECT_FALSE(Recover(logs).state.contains(50));
  Txn(logs[1], 3, 40, {{50, 8}});
  EXPECT_EQ(Recover(logs).state.at(50), 8u);
}

TEST(SiloRRecovery, AnOlderDeleteDoesNotTakeANewerRow) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 30, {{1, 7}});
  Txn(logs[1], 2, 20, {{1, std::nullopt}});
  EXPECT_EQ(Recover(logs).state.at(1), 7u);
}

// Trap 23: a chunk that was handed over before it was full, and the file ends there: behind its last record, within the
// VOID that fills it up, or behind that.
TEST(SiloRRecovery, ALastChunkThatIsPartlyFilledIsRead) {
  constexpr uint64_t kTxns = 301;
  auto logs = TwoLogs();
  for (uint64_t id = 1; id <= kTxns; ++id) Txn(logs[0], id, id, {{id % kKeys, 1000 + id}});
  const uint64_t filled = logs[0].end();
  const uint64_t end = logs[0].Void(50);
  for (const uint64_t cut : {filled, filled + 8, filled + 64, end}) {
    auto images = logs;
    images[0].Cut(cut);
    const Recovered recovered =
        RecoverImages<SiloRRecovery>(images, {.stamp_end = Stamp(kTxns), .durable_ends = {Lsn(filled), Lsn(0)}});
    EXPECT_EQ(recovered.txns.size(), kTxns) << "cut at " << cut;
    EXPECT_EQ(recovered.state.at(kTxns % kKeys), 1000 + kTxns) << "cut at " << cut;
  }
}

TEST(SiloRRecovery, WhatIsBeyondTheFrontierIsDroppedThoughItIsWhole) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 10, {{1, 110}});
  Txn(logs[0], 2, 30, {{1, 130}});
  Txn(logs[1], 3, 20, {{2, 220}});
  const Recovered recovered = Recover(logs, 20);
  EXPECT_EQ(recovered.txns, (std::set<uint64_t>{1, 3}));
  EXPECT_EQ(recovered.summary.dropped, 1u);
  EXPECT_EQ(recovered.state.at(1), 110u);
  EXPECT_EQ(recovered.summary.highest_stamp, Stamp(30));
  EXPECT_EQ(recovered.summary.stamp_end, Stamp(20));
}

TEST(SiloRRecovery, RandomHistoriesInAnyNumberOfLanesGiveTheLastVersions) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<LogImage> logs;
    for (uint32_t j = 0; j < 3; ++j) logs.emplace_back(j, 3);
    State state = LoadedState();
    std::vector<std::tuple<uint64_t, Key, std::optional<uint64_t>>> versions;
    for (uint64_t tid = 1; tid <= 500; ++tid) {
      const Key key = random() % kKeys;
      const auto value = random() % 3 == 0 ? std::nullopt : std::optional(Hash(tid, key));
      value ? void(state[key] = *value) : void(state.erase(key));
      versions.emplace_back(tid, key, value);
    }
    std::shuffle(versions.begin(), versions.end(), random);
    for (const auto& [tid, key, value] : versions) Txn(logs[random() % 3], tid, tid, {{key, value}});
    EXPECT_EQ(Recover(logs, UINT64_MAX, 1 + seed % 4).state, state) << "seed " << seed;
  }
}

TEST(SiloRRecovery, ALogThatEndsBeforeTheFrontierIsDamaged) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 10, {{1, 110}});
  const std::string why = Refusal<SiloRRecovery>(logs, {.durable_until = Lsn(4096)});
  EXPECT_NE(why.find("the run's frontier shows that it was durable up to offset 12288"), std::string::npos) << why;
}

TEST(SiloRRecovery, AMarkShowsThatTheFrontierHadGoneFurther) {
  auto logs = TwoLogs();
  logs[1].Append(format::RecordKind::kMark, std::array<uint64_t, 2>{0, 30});
  EXPECT_EQ(Refusal<SiloRRecovery>(logs, {.stamp_end = Stamp(30)}), "");
  const std::string why = Refusal<SiloRRecovery>(logs, {.stamp_end = Stamp(20)});
  EXPECT_NE(why.find("it ends at stamp 20, but a mark shows that 30 was durable"), std::string::npos) << why;
}

TEST(SiloRRecovery, ARecordWithoutATidIsRefused) {
  auto logs = TwoLogs();
  Txn(logs[0], 1, 0, {{1, 110}});
  EXPECT_NE(Refusal<SiloRRecovery>(logs).find("a record without a TID"), std::string::npos);
}

TEST(SiloRRecovery, APartOfATransactionIsRefused) {
  auto logs = TwoLogs();
  logs[0].Stamped(1, 0b11, std::array<uint64_t, 1>{10});
  EXPECT_NE(Refusal<SiloRRecovery>(logs).find("a part of a transaction"), std::string::npos);
}

}  // namespace
}  // namespace dbx::recovery_test
