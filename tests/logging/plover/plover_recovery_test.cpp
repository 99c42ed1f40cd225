// Recovery of Plover's logs: what every log has reached, whole transactions, and nothing that makes no sense.
#include "logging/plover/plover_recovery.h"

#include <gtest/gtest.h>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

using format::RecordKind;

struct Write {
  Key key;
  uint64_t value;
};

// The part in `log` of a transaction that has parts in the logs of the mask.
uint64_t Part(LogImage& log, uint64_t id, uint64_t gsn, uint16_t parts, const std::vector<Write>& writes) {
  std::vector<uint64_t> body{gsn};
  for (const Write& write : writes) {
    const format::WriteEntry entry{write.key, 0, static_cast<uint8_t>(format::WriteOp::kPut), 0, 8};
    uint64_t words[2];
    std::memcpy(words, &entry, sizeof entry);
    body.insert(body.end(), {words[0], words[1], write.value});
  }
  return log.Stamped(id, parts, body);
}
void Mark(LogImage& log, uint64_t gsn, uint64_t durable = 0) {
  log.Append(RecordKind::kMark, std::array<uint64_t, 2>{gsn, durable});
}
std::vector<LogImage> TwoLogs() { return {LogImage(0, 2), LogImage(1, 2)}; }

Recovered Recover(const std::vector<LogImage>& images, uint32_t workers = 2) {
  return RecoverImages<PloverRecovery>(images, {.workers = workers});
}
void ExpectRefusal(const std::vector<LogImage>& images, const std::string& why) {
  EXPECT_NE(Refusal<PloverRecovery>(images).find(why), std::string::npos) << Refusal<PloverRecovery>(images);
}

// A serial history over n partitions, key by key; each log gets the parts and, now and then, a mark.
struct PartedHistory {
  PartedHistory(uint64_t seed, uint32_t logs, uint64_t txns) : random(seed), state(LoadedState()), counters(logs) {
    for (uint32_t j = 0; j < logs; ++j) images.emplace_back(j, logs);
    for (uint64_t id = 1; id <= txns; ++id) Add(id);
  }
  void Add(uint64_t id) {
    std::map<uint32_t, std::vector<Write>> parts;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      const Key key = random() % kLoadedKeys;
      auto& part = parts[static_cast<uint32_t>(key % images.size())];
      if (part.empty() || part.back().key != key) part.push_back({key, Hash(id, key)});
    }
    uint64_t gsn = counters[random() % counters.size()];  // of a partition that was read
    uint16_t mask = 0;
    for (const auto& [log, writes] : parts) {
      gsn = std::max(gsn, counters[log]);
      mask = static_cast<uint16_t>(mask | 1u << log);
    }
    ++gsn;
    for (const auto& [log, writes] : parts) {
      counters[log] = gsn;
      Part(images[log], id, gsn, mask, writes);
      for (const Write& write : writes) state[write.key] = write.value;
    }
    txns.push_back({id, gsn});
    if (random() % 4 != 0) return;
    const size_t idle = random() % images.size();
    counters[idle] = *std::max_element(counters.begin(), counters.end());
    Mark(images[idle], counters[idle]);
  }
  void MarkAll() {
    const uint64_t gsn = *std::max_element(counters.begin(), counters.end());
    for (LogImage& image : images) Mark(image, gsn);
  }

  std::mt19937_64 random;
  State state;
  std::vector<uint64_t> counters;
  std::vector<LogImage> images;
  std::vector<std::pair<uint64_t, uint64_t>> txns;  // name, GSN
};

TEST(PloverRecovery, AnyNumberOfWorkersAndLogsGivesTheSerialResult) {
  for (const uint32_t logs : {1, 2, 3, 16}) {
    PartedHistory history(logs, logs, 2000);
    history.MarkAll();
    for (const uint32_t workers : {1, 2, 5}) {
      const Recovered recovered = Recover(history.images, workers);
      EXPECT_EQ(recovered.summary.recovered, 2000u);
      EXPECT_EQ(recovered.txns.size(), 2000u);
      EXPECT_EQ(recovered.state, history.state) << logs << " logs, " << workers << " workers";
    }
  }
}

// Cut anywhere, what is recovered is what every log has reached, whole.
TEST(PloverRecovery, ACutAnywhereLeavesWhatEveryLogHasReached) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    PartedHistory history(seed, 1 + seed % 4, 60);
    LogImage& cut = history.images[history.random() % history.images.size()];
    cut.Cut(cut.starts()[history.random() % cut.starts().size()]);
    uint64_t reached = UINT64_MAX;
    for (const LogImage& image : history.images) reached = std::min(reached, image.LastStamp());
    std::set<uint64_t> expected;
    for (const auto& [id, gsn] : history.txns) {
      if (gsn <= reached) expected.insert(id);
    }
    EXPECT_EQ(Recover(history.images, 1 + seed % 3).txns, expected) << "seed " << seed;
  }
}

TEST(PloverRecovery, HalfATransactionIsDroppedWhole) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 1, 0b11, {{0, 70}});
  Mark(logs[1], 0);
  const Recovered recovered = Recover(logs);
  EXPECT_TRUE(recovered.txns.empty());
  EXPECT_EQ(recovered.summary.dropped, 1u);
  EXPECT_EQ(recovered.state, LoadedState());
}

TEST(PloverRecovery, ALogThatNeverSpokeHoldsEverythingBack) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 1, 0b01, {{0, 70}});
  EXPECT_TRUE(Recover(logs).txns.empty());
}

TEST(PloverRecovery, AMissingPartIsRefused) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 1, 0b11, {{0, 70}});
  Mark(logs[1], 1);
  ExpectRefusal(logs, "parts of transactions that other logs hold are missing");
}

TEST(PloverRecovery, APartThatNobodyNamesIsRefused) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 1, 0b10, {{0, 70}});
  Mark(logs[1], 1);
  ExpectRefusal(logs, "has none in this log");
}

TEST(PloverRecovery, GsnsThatDoNotAscendAreRefused) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 2, 0b01, {{0, 70}});
  Part(logs[0], 2, 2, 0b01, {{0, 71}});
  Mark(logs[1], 2);
  ExpectRefusal(logs, "no larger than that of the record before");
}

TEST(PloverRecovery, AMarkIsEvidenceForEveryLog) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 1, 0b01, {{0, 70}});
  Mark(logs[0], 2, 1);
  ExpectRefusal(logs, "every log was durable up to GSN 1");
}

TEST(PloverRecovery, ACommandIsRefused) {
  auto logs = TwoLogs();
  logs[0].Txn(RecordKind::kCommand, 1, kMix, {}, std::array<uint64_t, 2>{1, 2});
  Mark(logs[1], 1);
  ExpectRefusal(logs, "a record without a GSN");
}

TEST(PloverRecovery, TheHighestStampIsAboveWhatWasCut) {
  auto logs = TwoLogs();
  Part(logs[0], 1, 41, 0b01, {{0, 70}});
  Mark(logs[0], 43);
  EXPECT_EQ(Recover(logs).summary.highest_stamp, Stamp(43));
}

}  // namespace
}  // namespace dbx::recovery_test
