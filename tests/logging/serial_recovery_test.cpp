// Recovery of the serial log: a prefix, in order, by any number of workers.

#include <gtest/gtest.h>

#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

std::vector<LogImage> SerialLog(uint64_t txns) {
  std::vector<LogImage> images{LogImage(0, 1)};
  for (uint64_t id = 0; id < txns; ++id) {
    images[0].Txn(format::RecordKind::kCommand, id, kMix, {}, std::array<uint64_t, 3>{1, id % 5, id % 7});
    if (id % 50 == 0) images[0].Void(id % 30);
    if (id % 60 == 0) images[0].Pad(0, id % 40);
  }
  return images;
}

uint64_t CountBelow(const LogImage& image, uint64_t end) {
  uint64_t txns = 0;
  const auto& starts = image.starts();
  for (size_t i = 0; i < starts.size(); ++i) {
    format::RecordHeader header;
    std::memcpy(&header, image.stream().data() + starts[i], sizeof header);
    txns += header.kind == static_cast<uint8_t>(format::RecordKind::kCommand) && starts[i] + header.length <= end;
  }
  return txns;
}

TEST(SerialRecovery, AnyNumberOfWorkersReplaysInOrder) {
  const std::vector<LogImage> images = SerialLog(5000);
  const State expected = RecoverImages<SerialRecovery>(images, {.workers = 1}).state;
  EXPECT_NE(expected, LoadedState());
  for (const uint32_t workers : {2, 3, 8}) {
    const Recovered recovered = RecoverImages<SerialRecovery>(images, {.workers = workers});
    EXPECT_EQ(recovered.summary.recovered, 5000u);
    EXPECT_EQ(recovered.state, expected);
  }
}

TEST(SerialRecovery, ACutLeavesThePrefix) {
  const std::vector<LogImage> whole = SerialLog(30);
  for (uint64_t at = 0; at <= whole[0].end(); at += 8) {
    std::vector<LogImage> images = whole;
    images[0].Cut(at);
    EXPECT_EQ(RecoverImages<SerialRecovery>(images).summary.recovered, CountBelow(whole[0], at)) << "cut at " << at;
  }
}

// In the order of the log the writer comes first; the timestamps say that it ended later than the reader.
TEST(SerialRecovery, InManyVersionsAReaderSeesWhatWasOverwrittenBeforeItCommitted) {
  std::vector<LogImage> images{LogImage(0, 1)};
  const auto append = [&](uint64_t id, uint64_t read, uint64_t end, uint64_t written, uint64_t seen) {
    const std::array<uint64_t, 5> rest{read, end, 1, written, seen};
    images[0].Txn(format::RecordKind::kVersionedCommand, id, kMix, {}, rest);
  };
  append(1, 4, 6, 7, 7);
  append(2, 4, 5, 8, 7);
  const Recovered recovered = RecoverImages<SerialRecovery>(images, {.many_versions = true});
  EXPECT_EQ(recovered.state.at(8), Hash(Hash(Hash(2, LoadedState()[8]), LoadedState()[7]), 8));
}

TEST(SerialRecovery, InManyVersionsAnyNumberOfWorkersGivesTheSerialResult) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    History history({.seed = seed, .logs = 1, .txns = 3000, .vectors = false, .versions = true, .anchor_percent = 0});
    State expected;
    history.Survivors(history.Ends(), expected);
    for (const uint32_t workers : {1, 2, 4}) {
      const RunSettings run{.workers = workers, .many_versions = true};
      EXPECT_EQ(RecoverImages<SerialRecovery>(history.images(), run).state, expected) << seed;
    }
  }
}

// A stamped record has its parts where others have their vector.
TEST(SerialRecovery, AStampIsRefused) {
  std::vector<LogImage> images{LogImage(0, 1)};
  images[0].Stamped(1, 0, std::array<uint64_t, 1>{1});
  EXPECT_EQ(Refusal<SerialRecovery>(images), "damaged log log_0@8192: stamp in a serial log");
}

TEST(SerialRecovery, AnLsnVectorIsRefused) {
  std::vector<LogImage> images{LogImage(0, 1)};
  images[0].Txn(format::RecordKind::kCommand, 1, kMix, {{0, 0}}, std::array<uint64_t, 2>{1, 1});
  EXPECT_EQ(Refusal<SerialRecovery>(images), "damaged log log_0@8192: LSN vector in a serial log");
}

TEST(SerialRecovery, AnEmptyLogRecoversNothing) {
  const std::vector<LogImage> images{LogImage(0, 1)};
  const Recovered recovered = RecoverImages<SerialRecovery>(images, {.workers = 3});
  EXPECT_EQ(recovered.summary.recovered, 0u);
  EXPECT_EQ(recovered.state, LoadedState());
}

}  // namespace
}  // namespace dbx::recovery_test
