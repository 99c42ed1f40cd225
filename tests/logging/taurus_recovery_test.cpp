// Recovery of Taurus logs against an oracle that replays one transaction at a time.

#include <gtest/gtest.h>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

using format::RecordKind;

void ExpectSurvivors(const History& history, const Recovered& recovered, const std::vector<uint64_t>& ends) {
  State state;
  const std::set<uint64_t> survivors = history.Survivors(ends, state);
  EXPECT_EQ(recovered.txns, survivors);
  EXPECT_EQ(recovered.summary.recovered, survivors.size());
  EXPECT_EQ(recovered.state, state);
}

uint64_t Command(LogImage& log, uint64_t id, const LvElements& lv, std::vector<uint64_t> keys) {
  keys.insert(keys.begin(), keys.size());  // all are written
  return log.Txn(RecordKind::kCommand, id, kMix, lv, keys);
}

uint64_t VersionedCommand(LogImage& log, uint64_t id, format::Timestamps timestamps, const LvElements& lv,
                          const std::vector<uint64_t>& keys, uint64_t writes = UINT64_MAX) {
  std::vector<uint64_t> rest{timestamps.read, timestamps.end, std::min<uint64_t>(writes, keys.size())};
  rest.insert(rest.end(), keys.begin(), keys.end());
  return log.Txn(RecordKind::kVersionedCommand, id, kMix, lv, rest);
}

std::vector<LogImage> TwoLogs() { return {LogImage(0, 2), LogImage(1, 2)}; }

// Cuts each log somewhere above what had been durable; where they end then.
std::vector<uint64_t> CutAnywhere(History& history, std::mt19937_64& random) {
  std::vector<uint64_t> ends;
  for (LogImage& image : history.images()) {
    const uint64_t low = history.durable(image.index());
    const uint64_t whole = image.end();
    const uint64_t at = low + random() % (whole - low + 1);
    image.Cut(at);
    ends.push_back(at == whole ? whole : image.StartAtOrBelow(at));
  }
  return ends;
}

TEST(TaurusRecovery, AnyNumberOfWorkersAndLogsGivesTheSerialResult) {
  for (const uint32_t logs : {1, 2, 3, 5, 16}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      History history({.seed = seed, .logs = logs, .txns = 1500, .data = seed % 2 == 0, .compress = seed % 4 < 2});
      for (const uint32_t workers : {1, 2, 4, 7}) {
        SCOPED_TRACE("logs " + std::to_string(logs) + " seed " + std::to_string(seed) + " workers " +
                     std::to_string(workers));
        ExpectSurvivors(history, RecoverImages(history.images(), {.workers = workers}), history.Ends());
      }
    }
  }
}

// No writer waits for the readers of the version that it overwrites: each reader finds the version that it saw.
TEST(TaurusRecovery, InManyVersionsWhoOverwritesNeedNotWaitForReaders) {
  for (const uint32_t logs : {1, 2, 3, 5}) {
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      History history({.seed = seed, .logs = logs, .txns = 1500, .compress = seed % 2 == 0, .versions = true});
      for (const uint32_t workers : {1, 2, 4}) {
        SCOPED_TRACE("logs " + std::to_string(logs) + " seed " + std::to_string(seed) + " workers " +
                     std::to_string(workers));
        const Recovered recovered = RecoverImages(history.images(), {.workers = workers, .many_versions = true});
        ExpectSurvivors(history, recovered, history.Ends());
      }
    }
  }
}

TEST(TaurusRecovery, InManyVersionsACutAnywhereLeavesTheClosedSurvivors) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto logs = static_cast<uint32_t>(1 + random() % 4);
    History history({.seed = seed, .logs = logs, .txns = 150, .versions = true, .anchor_percent = 1});
    const std::vector<uint64_t> ends = CutAnywhere(history, random);
    const RunSettings run{.workers = 1 + static_cast<uint32_t>(seed % 3), .many_versions = true};
    ExpectSurvivors(history, RecoverImages(history.images(), run), ends);
  }
}

// Log 1 holds the reader, which depends on nothing; log 0 thousands of writers that overwrite the row it reads.
TEST(TaurusRecovery, AReaderOfLongAgoFindsItsVersionInManyVersions) {
  std::vector<LogImage> images = TwoLogs();
  constexpr uint64_t kWriters = 5000;
  uint64_t last = 0;
  for (uint64_t id = 1; id <= kWriters; ++id) {
    last = VersionedCommand(images[0], id, {id, id + 1}, {{0, last}}, {7});
  }
  VersionedCommand(images[1], kWriters + 1, {1, kWriters + 2}, {}, {8, 7}, /*writes=*/1);
  const uint64_t alone = Hash(Hash(Hash(kWriters + 1, LoadedState()[8]), LoadedState()[7]), 8);
  for (const uint32_t workers : {1, 2}) {
    const Recovered recovered = RecoverImages(images, {.workers = workers, .many_versions = true});
    EXPECT_EQ(recovered.summary.recovered, kWriters + 1);
    EXPECT_EQ(recovered.state.at(8), alone);
  }
}

// The watermark of a log says nothing about the others.
TEST(TaurusRecovery, TheLeastWatermarkOfAllLogsDecides) {
  std::vector<LogImage> images = TwoLogs();
  uint64_t last = 0, late = 0;
  for (uint64_t id = 1; id <= 500; ++id) {
    last = VersionedCommand(images[0], id, {id, id + 1}, {{0, last}}, {7});
    if (id == 400) late = last;
    images[0].Watermark(id + 1);
  }
  // Comes late, and reads what the first one found.
  VersionedCommand(images[1], 501, {1, 502}, {{0, late}}, {8, 7}, /*writes=*/1);
  const uint64_t alone = Hash(Hash(Hash(501, LoadedState()[8]), LoadedState()[7]), 8);
  for (const uint32_t workers : {1, 2, 4}) {
    EXPECT_EQ(RecoverImages(images, {.workers = workers, .many_versions = true}).state.at(8), alone);
  }
}

TEST(TaurusRecovery, ATransactionThatReadsBelowAWatermarkIsRefused) {
  std::vector<LogImage> images = TwoLogs();
  images[0].Watermark(5);
  const uint64_t at = images[0].end();
  VersionedCommand(images[0], 1, {4, 9}, {}, {1});
  EXPECT_EQ(Refusal(images, {.many_versions = true}), "damaged log log_0@" +
                                                          std::to_string(format::kStreamOffset + at) +
                                                          ": transaction that reads below a watermark before it");
}

TEST(TaurusRecovery, ImpossibleTimestampsAreRefused) {
  for (const auto& [read, end] : {std::pair<uint64_t, uint64_t>{5, 5}, {6, 5}, {5, format::kTimestampMax + 1}}) {
    std::vector<LogImage> images = TwoLogs();
    VersionedCommand(images[0], 1, {read, end}, {}, {1});
    EXPECT_EQ(Refusal(images, {.many_versions = true}), "damaged log log_0@8192: impossible timestamps");
  }
}

TEST(TaurusRecovery, CommandsWithTimestampsAndWithoutAreNotReplayedAsEachOther) {
  std::vector<LogImage> with = TwoLogs(), without = TwoLogs();
  VersionedCommand(with[0], 1, {4, 5}, {}, {1});
  Command(without[0], 1, {}, {1});
  const std::string refusal = "a transaction with timestamps in a log without, or the other way round";
  EXPECT_EQ(Refusal(with), "damaged log log_0@8192: " + refusal);
  EXPECT_EQ(Refusal(without, {.many_versions = true}), "damaged log log_0@8192: " + refusal);
}

TEST(TaurusRecovery, TheEndsOfTransactionsAreTheLogsStamps) {
  std::vector<LogImage> images = TwoLogs();
  VersionedCommand(images[0], 1, {4, 5}, {}, {1});
  VersionedCommand(images[1], 2, {5, 77}, {}, {2});
  EXPECT_EQ(RecoverImages(images, {.many_versions = true}).summary.highest_stamp, Stamp(77));
}

// No timestamp of a run that continues may be that of a transaction which was there and is lost.
TEST(TaurusRecovery, TheEndOfARecordBehindAHoleIsAStampToo) {
  std::vector<LogImage> images = TwoLogs();
  VersionedCommand(images[0], 1, {4, 5}, {}, {1});
  images[1].Void(2);
  VersionedCommand(images[1], 2, {5, 99}, {}, {2});
  images[1].at(0) ^= std::byte{1};
  const Recovered recovered = RecoverImages(images, {.many_versions = true});
  EXPECT_EQ(recovered.summary.recovered, 1u);
  EXPECT_EQ(recovered.summary.highest_stamp, Stamp(99));
}

// Its parts stand where a vector's mask does, and there is no vector.
TEST(TaurusRecovery, AStampIsRefused) {
  std::vector<LogImage> images{LogImage(0, 2), LogImage(1, 2)};
  images[0].Stamped(1, 3, std::array<uint64_t, 1>{1});
  EXPECT_EQ(Refusal(images), "damaged log log_0@8192: a stamp instead of an LSN vector");
}

TEST(TaurusRecovery, SerialReplayGivesTheSameResult) {
  for (const auto serially : {ReplaySettings::Serially::kAlways, ReplaySettings::Serially::kAuto}) {
    for (const uint32_t workers : {1, 3}) {
      History history({.seed = 5, .logs = 3, .txns = 20000});
      const Recovered recovered = RecoverImages(history.images(), {.workers = workers, .serially = serially});
      ExpectSurvivors(history, recovered, history.Ends());
      EXPECT_TRUE(recovered.summary.went_serial || serially == ReplaySettings::Serially::kAuto);
    }
  }
}

TEST(TaurusRecovery, ACutAnywhereLeavesTheClosedSurvivors) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto logs = static_cast<uint32_t>(1 + random() % 4);
    History history({.seed = seed, .logs = logs, .txns = 150, .data = seed % 2 == 0, .anchor_percent = 1});
    const std::vector<uint64_t> ends = CutAnywhere(history, random);
    const Recovered recovered = RecoverImages(history.images(), {.workers = 1 + static_cast<uint32_t>(seed % 3)});
    ExpectSurvivors(history, recovered, ends);
    EXPECT_EQ(recovered.frontier(), ends);
  }
}

TEST(TaurusRecovery, CutsAtEveryByteOfTwoShortLogsAgree) {
  History history({.seed = 9, .logs = 2, .txns = 12, .anchor_percent = 0});
  for (uint64_t at = 0; at <= history.images()[0].end(); at += 4) {
    std::vector<LogImage> images = history.images();
    images[0].Cut(at);
    std::vector<uint64_t> ends = history.Ends();
    if (at < ends[0]) ends[0] = images[0].StartAtOrBelow(at);
    SCOPED_TRACE("cut at " + std::to_string(at));
    ExpectSurvivors(history, RecoverImages(images), ends);
  }
}

TEST(TaurusRecovery, TheFrontierIsTheLastValidRecordNotTheFileSize) {
  History history({.seed = 3, .logs = 2, .txns = 200});
  const std::vector<uint64_t> ends = history.Ends();
  for (LogImage& image : history.images()) image.Zeros(3 << 20);
  const Recovered recovered = RecoverImages(history.images());
  ExpectSurvivors(history, recovered, ends);
  EXPECT_EQ(recovered.frontier(), ends);
  EXPECT_EQ(recovered.summary.torn_logs, 0u);
  EXPECT_EQ(recovered.summary.cut_bytes, 0u);
}

TEST(TaurusRecovery, PadsVoidsAndAnchorsBelongToThePrefix) {
  std::vector<LogImage> images = TwoLogs();
  images[0].Void(3);
  images[0].Pad(0, 7);
  const uint64_t behind_anchor = images[0].Anchor({0, 0});
  Command(images[1], 1, {{0, behind_anchor}}, {1});
  const Recovered recovered = RecoverImages(images);
  EXPECT_EQ(recovered.txns, std::set<uint64_t>{1});
  EXPECT_EQ(recovered.summary.voids, 1u);
}

TEST(TaurusRecovery, ALostDependencyDropsTheTransactionAndAllThatFollowIt) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t kept = images[0].end() + 1000;  // 1 depends on what log 0 lost
  const uint64_t first = Command(images[1], 1, {{0, kept}}, {1});
  const uint64_t second = Command(images[1], 2, {}, {2});
  Command(images[1], 3, {{0, kept}, {1, first}}, {1, 3});
  const uint64_t fourth = Command(images[0], 4, {{1, second}}, {2});
  Command(images[1], 5, {{0, fourth}, {1, second}}, {2});
  for (const uint32_t workers : {1, 2, 4}) {
    const Recovered recovered = RecoverImages(images, {.workers = workers});
    EXPECT_EQ(recovered.txns, (std::set<uint64_t>{2, 4, 5}));
    EXPECT_EQ(recovered.summary.dropped, 2u);
  }
}

TEST(TaurusRecovery, TransactionsBehindADroppedOneStillReplay) {
  std::vector<LogImage> images = TwoLogs();
  uint64_t kept = 0;
  for (uint64_t id = 0; id < 500; ++id) {
    // Those that are kept share keys, so each comes after the one before.
    const uint64_t end = Command(images[0], id, {{0, kept}, {1, id % 2 == 0 ? 0 : 1}}, {id % kLoadedKeys});
    if (id % 2 == 0) kept = end;
  }
  const Recovered recovered = RecoverImages(images, {.workers = 3});
  EXPECT_EQ(recovered.summary.recovered, 250u);
  EXPECT_EQ(recovered.summary.dropped, 250u);
}

TEST(TaurusRecovery, AnEndedLogHoldsBackWhatNeedsMoreOfIt) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t end = Command(images[0], 1, {}, {1});
  Command(images[1], 2, {{0, end}}, {1});
  Command(images[1], 3, {{0, end + 8}}, {1});
  const Recovered recovered = RecoverImages(images);
  EXPECT_EQ(recovered.txns, (std::set<uint64_t>{1, 2}));
}

TEST(TaurusRecovery, VectorsThatWaitForEachOtherAreRefused) {
  for (const uint32_t workers : {1, 2, 5}) {
    std::vector<LogImage> images = TwoLogs();
    const uint64_t record_bytes = 32 + 8 + 8 + 16;
    Command(images[0], 1, {{1, record_bytes}}, {1});
    Command(images[1], 2, {{0, record_bytes}}, {2});
    EXPECT_NE(Refusal(images, {.workers = workers}).find("wait for each other"), std::string::npos);
  }
}

TEST(TaurusRecovery, ADependencyOnTheOwnLogsFutureIsRefused) {
  std::vector<LogImage> images = TwoLogs();
  Command(images[0], 1, {{0, 8}}, {1});
  EXPECT_EQ(Refusal(images).rfind("damaged log log_0@8192: ", 0), 0u);
}

TEST(TaurusRecovery, AnAnchorBeyondAnotherLogsEndIsEvidenceOfDamage) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t first = Command(images[0], 1, {}, {1});
  const uint64_t second = Command(images[0], 2, {}, {1});
  images[1].Anchor({second, 0});
  EXPECT_EQ(Refusal(images), "");
  images[0].at(first + 20) ^= std::byte{1};
  const std::string refusal = Refusal(images);
  EXPECT_EQ(refusal.rfind("damaged log log_0@" + std::to_string(8192 + first) + ": ", 0), 0u) << refusal;
  EXPECT_NE(refusal.find("anchor at log_1@8192"), std::string::npos) << refusal;
}

TEST(TaurusRecovery, APadBehindTheDamageIsEvidence) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t first = Command(images[0], 1, {}, {1});
  const uint64_t second = Command(images[0], 2, {}, {1});
  images[0].Pad(first);
  images[0].at(first + 40) ^= std::byte{1};
  EXPECT_EQ(Refusal(images), "");  // 1 had been durable, 2 not: a cut
  images[0].Pad(second);
  EXPECT_NE(Refusal(images).find("PAD"), std::string::npos);
}

TEST(TaurusRecovery, ARecordThatReusesTheRingIsEvidence) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t first = Command(images[0], 1, {}, {1});
  while (images[0].end() < first + 4096) Command(images[0], 2, {}, {1});
  images[0].at(first) ^= std::byte{1};
  EXPECT_EQ(Refusal(images, {.ring_bytes = 8192}), "");
  EXPECT_NE(Refusal(images, {.ring_bytes = 2048}).find("but the record at"), std::string::npos);
}

TEST(TaurusRecovery, EvidenceFarBehindALongHoleIsFound) {
  std::vector<LogImage> images = TwoLogs();
  while (images[0].end() < 6 << 20) Command(images[0], 1, {}, {1});
  std::memset(&images[0].at(images[0].starts()[1]), 0, 4 << 20);
  EXPECT_NE(Refusal(images, {.ring_bytes = 4096}), "");
}

TEST(TaurusRecovery, RunEndInEveryLogIsACleanEnd) {
  std::vector<LogImage> images = TwoLogs();
  Command(images[0], 1, {}, {1});
  images[0].RunEnd();
  EXPECT_FALSE(RecoverImages(images).summary.clean_end);
  images[1].RunEnd();
  EXPECT_TRUE(RecoverImages(images).summary.clean_end);
}

TEST(TaurusRecovery, RunEndThatCountsOtherTransactionsIsRefused) {
  std::vector<LogImage> images = TwoLogs();
  Command(images[0], 1, {}, {1});
  images[0].RunEnd(2);
  EXPECT_NE(Refusal(images).find("RUN_END counts 2"), std::string::npos);
}

TEST(TaurusRecovery, ATornRecordIsCutAndCounted) {
  std::vector<LogImage> images = TwoLogs();
  const uint64_t first = Command(images[0], 1, {}, {1});
  const uint64_t second = Command(images[0], 2, {}, {1});
  images[0].at(second - 1) ^= std::byte{0x80};
  images[0].Zeros(10000);
  const Recovered recovered = RecoverImages(images);
  EXPECT_EQ(recovered.txns, std::set<uint64_t>{1});
  EXPECT_EQ(recovered.summary.torn_logs, 1u);
  EXPECT_EQ(recovered.summary.cut_bytes, second - first);
}

TEST(TaurusRecovery, MalformedRecordsWithGoodChecksumsAreRefused) {
  const auto refused = [](RecordKind kind, uint16_t procedure, uint16_t mask, const std::vector<uint64_t>& body) {
    std::vector<LogImage> images = TwoLogs();
    images[0].Append(kind, body, mask, procedure);
    return Refusal(images).rfind("damaged log log_0@8192: ", 0) == 0;
  };
  EXPECT_TRUE(refused(RecordKind::kCommand, kMix, 0, {}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kMix, 0, {1}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kMix, 0, {1, 9, 3}));
  EXPECT_TRUE(refused(RecordKind::kCommand, 77, 0, {1, 1, 3}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kGiveUp, 0, {1, 1, 3}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kMix, 3, {1, 1}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kMix, 4, {1, 0, 1, 3}));
  EXPECT_TRUE(refused(RecordKind::kCommand, kDelete, 0, {1, 1, kKeys}));
  EXPECT_TRUE(refused(RecordKind::kAnchor, 0, 0, {0}));
  EXPECT_TRUE(refused(RecordKind::kAnchor, 0, 0, {8, 0}));
  EXPECT_TRUE(refused(RecordKind::kPad, 0, 0, {}));
}

TEST(TaurusRecovery, MalformedImagesAreRefused) {
  const auto refused = [](uint16_t table, uint8_t op, uint32_t length, size_t words) {
    const format::WriteEntry entry{1, table, op, 0, length};
    std::vector<uint64_t> body(3 + words);
    std::memcpy(&body[1], &entry, sizeof entry);
    std::vector<LogImage> images = TwoLogs();
    images[0].Append(RecordKind::kData, body);
    return !Refusal(images).empty();
  };
  EXPECT_FALSE(refused(0, 1, 8, 1));
  EXPECT_FALSE(refused(0, 2, 0, 0));
  EXPECT_TRUE(refused(1, 1, 8, 1));
  EXPECT_TRUE(refused(0, 3, 8, 1));
  EXPECT_TRUE(refused(0, 1, 16, 2));
  EXPECT_TRUE(refused(0, 1, 16, 1));
  EXPECT_TRUE(refused(0, 1, 0xFFFFFFFF, 1));
  EXPECT_TRUE(refused(0, 2, 0xFFFFFFF8, 0));
}

TEST(TaurusRecovery, AnyFlippedBitIsCutOrRefusedAndNeverReplayed) {
  History history({.seed = 4, .logs = 2, .txns = 40, .anchor_percent = 10});
  State state;
  const uint64_t end = history.Ends()[0];
  for (uint64_t bit = 0; bit < end * 8; bit += 13) {
    std::vector<LogImage> images = history.images();
    images[0].at(bit / 8) ^= static_cast<std::byte>(1 << bit % 8);
    try {
      const Recovered recovered = RecoverImages(images);
      std::vector<uint64_t> ends = recovered.frontier();
      SCOPED_TRACE("bit " + std::to_string(bit));
      ExpectSurvivors(history, recovered, ends);
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::kCorrupt);
    }
  }
}

TEST(TaurusRecovery, AReadErrorEndsAllWorkers) {
  History history({.seed = 4, .logs = 2, .txns = 500});
  std::vector<std::unique_ptr<ImageDevice>> devices;
  std::vector<LogSource> sources;
  for (const LogImage& image : history.images()) {
    devices.push_back(std::make_unique<ImageDevice>("log", image.bytes()));
    sources.push_back({devices.back().get(), kRunId, 1 << 20, image.index(), image.count()});
  }
  devices[1]->FailAt(format::kStreamOffset + 8192);
  Database db({}, 4);
  MixWorkload workload;
  workload.CreateTables(db);
  workload.Load(db, 0, 1);
  TaurusRecovery recovery({4, 4096, ReplaySettings::Serially::kNever});
  EXPECT_THROW(Recover(recovery, sources, db, workload, 4), Error);
}

}  // namespace
}  // namespace dbx::recovery_test
