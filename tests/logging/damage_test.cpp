// Damage to logs that show what had been durable: of histories with anchors, PADs and VOIDs every truncation and every
// flipped bit. Below what is shown to be durable all of it is refused; elsewhere engine and reference recover the same.
//
// A sample with a fixed stride, unless DBX_EXHAUSTIVE=1.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/logging/recovery_harness.h"
#include "tests/reference/reference_replay.h"

namespace dbx::recovery_test {
namespace {

struct Outcomes {
  uint64_t whole = 0;
  uint64_t cut = 0;
  uint64_t refused = 0;
};

class DamagedHistory {
 public:
  DamagedHistory(const History::Shape& shape, bool serial)
      : history_(shape), images_(history_.images()), serial_(serial) {
    Try(images_, "nothing");
    EXPECT_EQ(outcomes_.whole, 1u);
  }

  void TryTruncations(uint64_t wanted) {
    ForEach(1, wanted, [&](std::vector<LogImage>& images, LogImage& log, uint64_t at) {
      log.Cut(at);
      const bool refused = Try(images, "a cut of log " + std::to_string(log.index()) + " at " + std::to_string(at));
      EXPECT_TRUE(refused || at >= ShownByOthers(log.index())) << "a cut at " << at << " below what was durable";
    });
  }
  void TryFlippedBits(uint64_t wanted) {
    ForEach(8, wanted, [&](std::vector<LogImage>& images, LogImage& log, uint64_t bit) {
      log.at(bit / 8) ^= std::byte{1} << bit % 8;
      const uint64_t whole = outcomes_.whole;
      const bool refused = Try(images, "log " + std::to_string(log.index()) + ", bit " + std::to_string(bit));
      // A flip in the body of a VOID changes nothing.
      if (bit / 8 < history_.durable(log.index())) {
        EXPECT_TRUE(refused || outcomes_.whole > whole) << "bit " << bit << " below what was durable";
      }
    });
  }
  const Outcomes& outcomes() const { return outcomes_; }

 private:
  // Every place of every log, `units` a byte, or about `wanted` of them.
  template <class Damage>
  void ForEach(uint64_t units, uint64_t wanted, Damage&& damage) {
    const char* all = std::getenv("DBX_EXHAUSTIVE");
    uint64_t places = 0;
    for (const LogImage& image : images_) places += units * image.end();
    // Odd, so that all bits of a byte have their turn.
    const uint64_t stride = all != nullptr && std::string(all) == "1" ? 1 : (places / wanted) | 1;
    for (size_t log = 0; log < images_.size(); ++log) {
      for (uint64_t at = 0; at < units * images_[log].end(); at += stride) {
        std::vector<LogImage> images = images_;
        damage(images, images[log], at);
      }
    }
  }

  // How far anchors of the other logs show this one to have been durable.
  uint64_t ShownByOthers(uint32_t index) const {
    uint64_t shown = 0;
    for (const LogImage& image : images_) {
      const std::vector<std::byte> bytes = image.bytes();
      for (const uint64_t start : image.starts()) {
        format::RecordHeader header;
        const std::byte* at = bytes.data() + format::kStreamOffset + start;
        std::memcpy(&header, at, sizeof header);
        if (image.index() == index || header.kind != static_cast<uint8_t>(format::RecordKind::kAnchor)) continue;
        uint64_t durable;
        std::memcpy(&durable, at + sizeof header + index * sizeof durable, sizeof durable);
        shown = std::max(shown, durable);
      }
    }
    return shown;
  }

  // True if recovery refuses. What the reference refuses it must refuse; else both recover the same.
  bool Try(const std::vector<LogImage>& images, const std::string& damage) {
    std::vector<std::vector<std::byte>> files;
    for (const LogImage& image : images) files.push_back(image.bytes());
    const reference::RecoveredSet expected = reference::Recover(reference::ReadLogs(files));
    try {
      const RunSettings run{.workers = 1};
      const Recovered recovered =
          serial_ ? RecoverImages<SerialRecovery>(images, run) : RecoverImages<TaurusRecovery>(images, run);
      EXPECT_EQ(expected.damage, "") << damage;
      EXPECT_EQ(recovered.txns, std::set<uint64_t>(expected.txn_ids.begin(), expected.txn_ids.end())) << damage;
      State state;
      EXPECT_EQ(recovered.txns, history_.Survivors(expected.frontier, state)) << damage;
      EXPECT_EQ(recovered.state, state) << damage;
      ++(recovered.txns.size() == history_.txns().size() ? outcomes_.whole : outcomes_.cut);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), ExitStatus::kCorrupt) << damage << ": " << error.what();
      EXPECT_NE(expected.damage, "") << damage << ": " << error.what();
      ++outcomes_.refused;
      return true;
    }
  }

  History history_;
  std::vector<LogImage> images_;
  bool serial_;
  Outcomes outcomes_;
};

class LogDamageTest : public ::testing::TestWithParam<std::tuple<uint32_t, bool>> {};
std::string NameOf(const ::testing::TestParamInfo<std::tuple<uint32_t, bool>>& info) {
  const auto [logs, data] = info.param;
  return (logs == 0 ? "serial" : "taurus" + std::to_string(logs)) + (data ? "_data" : "_commands");
}
INSTANTIATE_TEST_SUITE_P(Formats, LogDamageTest, ::testing::Combine(::testing::Values(0, 1, 2, 3), ::testing::Bool()),
                         NameOf);

TEST_P(LogDamageTest, EverythingBelowADurableClaimIsRefusedAndTheRestIsTheReferences) {
  const auto [logs, data] = GetParam();
  const bool serial = logs == 0;
  // A serial log has neither anchors nor vectors: PADs show what had been durable.
  const uint32_t count = std::max(logs, 1u);
  History::Shape shape{.seed = 11, .logs = count, .txns = 30, .data = data, .anchor_percent = 12};
  if (serial) shape.seed = 13, shape.txns = 60, shape.anchor_percent = 0, shape.vectors = false;
  DamagedHistory history(shape, serial);
  history.TryTruncations(400);
  history.TryFlippedBits(1600);
  const Outcomes& seen = history.outcomes();
  std::printf("%s %s, %u logs: %lu whole, %lu cut, %lu refused\n", serial ? "serial" : "taurus",
              data ? "data" : "commands", count, seen.whole, seen.cut, seen.refused);
  EXPECT_GT(seen.cut, 0u);
  EXPECT_GT(seen.refused, 0u);
}

}  // namespace
}  // namespace dbx::recovery_test
