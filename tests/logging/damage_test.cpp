// Damage to logs that show what had been durable: of histories with anchors, PADs and VOIDs every truncation and every
// flipped bit. Below what is shown to be durable all of it is refused; elsewhere engine and reference recover the same.
// So it is with a log in stripes, of which one is cut or damaged.
//
// A sample with a fixed stride, unless DBX_EXHAUSTIVE=1.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "logging/device/striped_device.h"
#include "system/reference/reference_replay.h"
#include "system/runs/file_header.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

struct Outcomes {
  uint64_t whole = 0;
  uint64_t cut = 0;
  uint64_t refused = 0;
};

// True if recovery refuses. What the reference refuses it must refuse; else both recover the same.
template <class Recovery>
bool Compare(const History& history, const reference::RecoveredSet& expected, const std::string& damage,
             Outcomes& outcomes, Recovery&& recover) {
  try {
    const Recovered recovered = recover();
    EXPECT_EQ(expected.damage, "") << damage;
    EXPECT_EQ(recovered.txns, std::set<uint64_t>(expected.txn_ids.begin(), expected.txn_ids.end())) << damage;
    State state;
    EXPECT_EQ(recovered.txns, history.Survivors(expected.frontier, state)) << damage;
    EXPECT_EQ(recovered.state, state) << damage;
    ++(recovered.txns.size() == history.txns().size() ? outcomes.whole : outcomes.cut);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kCorrupt) << damage << ": " << error.what();
    EXPECT_NE(expected.damage, "") << damage << ": " << error.what();
    ++outcomes.refused;
    return true;
  }
}

// Odd, so that all bits of a byte have their turn.
uint64_t StrideFor(uint64_t places, uint64_t wanted) {
  const char* all = std::getenv("DBX_EXHAUSTIVE");
  return all != nullptr && std::string(all) == "1" ? 1 : (places / wanted) | 1;
}

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
    uint64_t places = 0;
    for (const LogImage& image : images_) places += units * image.end();
    const uint64_t stride = StrideFor(places, wanted);
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

  bool Try(const std::vector<LogImage>& images, const std::string& damage) {
    std::vector<std::vector<std::byte>> files;
    for (const LogImage& image : images) files.push_back(image.bytes());
    const reference::RecoveredSet expected = reference::Recover(reference::ReadLogs(files));
    const RunSettings run{.workers = 1, .many_versions = history_.shape().versions};
    return Compare(history_, expected, damage, outcomes_, [&] {
      return serial_ ? RecoverImages<SerialRecovery>(images, run) : RecoverImages<TaurusRecovery>(images, run);
    });
  }

  History history_;
  std::vector<LogImage> images_;
  bool serial_;
  Outcomes outcomes_;
};

// A serial log that lies in stripes of one block a piece.
class DamagedStripes {
 public:
  DamagedStripes(uint32_t stripes, bool data)
      : history_({.seed = 17, .logs = 1, .txns = 300, .data = data, .vectors = false, .anchor_percent = 0}) {
    const std::vector<std::byte>& stream = history_.images().front().stream();
    for (uint32_t i = 0; i < stripes; ++i) files_.push_back(HeaderOf(i, stripes));
    for (size_t at = 0; at < stream.size(); at += kUnit) {
      const std::span piece = std::span(stream).subspan(at, std::min(kUnit, stream.size() - at));
      std::vector<std::byte>& file = files_[at / kUnit % stripes];
      file.insert(file.end(), piece.begin(), piece.end());
    }
    Try(files_, "nothing");
    EXPECT_EQ(outcomes_.whole, 1u);
  }

  void TryTruncations(uint64_t wanted) {
    ForEach(1, wanted, [&](Files& files, size_t stripe, uint64_t at) {
      files[stripe].resize(at);
      Try(files, "a cut of stripe " + std::to_string(stripe) + " at " + std::to_string(at));
    });
  }
  void TryFlippedBits(uint64_t wanted) {
    ForEach(8, wanted, [&](Files& files, size_t stripe, uint64_t bit) {
      files[stripe][bit / 8] ^= std::byte{1} << bit % 8;
      const uint64_t whole = outcomes_.whole;
      const bool refused = Try(files, "stripe " + std::to_string(stripe) + ", bit " + std::to_string(bit));
      if (LsnOf(stripe, bit / 8) < history_.durable(0)) {
        EXPECT_TRUE(refused || outcomes_.whole > whole) << "bit " << bit << " below what was durable";
      }
    });
  }
  const Outcomes& outcomes() const { return outcomes_; }

 private:
  using Files = std::vector<std::vector<std::byte>>;
  static constexpr size_t kUnit = format::kBlockBytes;

  static std::vector<std::byte> HeaderOf(uint32_t index, uint32_t stripes) {
    RunIdentity identity;
    identity.run_id = kRunId;
    identity.scheme = format::Scheme::kSerial;
    identity.payload = format::Payload::kData;
    identity.log_count = stripes;
    identity.stripe_bytes = kUnit;
    std::vector<std::byte> file(format::kStreamOffset);
    EncodeHeader(MakeHeader(identity, index), std::span<std::byte, format::kStreamOffset>(file));
    return file;
  }
  uint64_t LsnOf(size_t stripe, uint64_t at) const {
    const uint64_t local = at - format::kStreamOffset;
    return (local / kUnit * files_.size() + stripe) * kUnit + local % kUnit;
  }

  template <class Damage>
  void ForEach(uint64_t units, uint64_t wanted, Damage&& damage) {
    uint64_t places = 0;
    for (const auto& file : files_) places += units * (file.size() - format::kStreamOffset);
    for (size_t stripe = 0; stripe < files_.size(); ++stripe) {
      for (uint64_t at = units * format::kStreamOffset; at < units * files_[stripe].size();
           at += StrideFor(places, wanted)) {
        Files files = files_;
        damage(files, stripe, at);
      }
    }
  }

  bool Try(const Files& files, const std::string& damage) {
    const reference::RecoveredSet expected = reference::Recover(reference::ReadLogs(files));
    std::vector<std::unique_ptr<BlockDevice>> stripes;
    for (const auto& file : files) stripes.push_back(std::make_unique<ImageDevice>("stripe", file));
    StripedDevice device(std::move(stripes), format::kStreamOffset, kUnit);
    return Compare(history_, expected, damage, outcomes_, [&] {
      return RecoverSources<SerialRecovery>({{&device, kRunId, 0}}, {.workers = 1});
    });
  }

  History history_;
  Files files_;
  Outcomes outcomes_;
};

using Records = std::tuple<uint32_t, const char*>;
class LogDamageTest : public ::testing::TestWithParam<Records> {};
std::string NameOf(const ::testing::TestParamInfo<Records>& info) {
  const auto [logs, records] = info.param;
  return (logs == 0 ? "serial_" : "taurus" + std::to_string(logs) + "_") + records;
}
INSTANTIATE_TEST_SUITE_P(Formats, LogDamageTest,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3),
                                            ::testing::Values("data", "commands", "versioned_commands")),
                         NameOf);

TEST_P(LogDamageTest, EverythingBelowADurableClaimIsRefusedAndTheRestIsTheReferences) {
  const auto [logs, records] = GetParam();
  const bool serial = logs == 0;
  // A serial log has neither anchors nor vectors: PADs show what had been durable.
  const uint32_t count = std::max(logs, 1u);
  History::Shape shape{.seed = 11, .logs = count, .txns = 30, .anchor_percent = 12};
  shape.data = std::string(records) == "data";
  shape.versions = std::string(records) == "versioned_commands";
  if (serial) shape.seed = 13, shape.txns = 60, shape.anchor_percent = 0, shape.vectors = false;
  DamagedHistory history(shape, serial);
  history.TryTruncations(400);
  history.TryFlippedBits(1600);
  const Outcomes& seen = history.outcomes();
  std::printf("%s %s, %u logs: %lu whole, %lu cut, %lu refused\n", serial ? "serial" : "taurus", records, count,
              seen.whole, seen.cut, seen.refused);
  EXPECT_GT(seen.cut, 0u);
  EXPECT_GT(seen.refused, 0u);
}

class StripedLogDamageTest : public ::testing::TestWithParam<std::tuple<uint32_t, bool>> {};
INSTANTIATE_TEST_SUITE_P(Stripes, StripedLogDamageTest, ::testing::Combine(::testing::Values(2, 3), ::testing::Bool()));

TEST_P(StripedLogDamageTest, EverythingBelowADurableClaimIsRefusedAndTheRestIsTheReferences) {
  const auto [stripes, data] = GetParam();
  DamagedStripes log(stripes, data);
  log.TryTruncations(300);
  log.TryFlippedBits(600);
  const Outcomes& seen = log.outcomes();
  std::printf("%u stripes: %lu whole, %lu cut, %lu refused\n", stripes, seen.whole, seen.cut, seen.refused);
  EXPECT_GT(seen.cut, 0u);
  EXPECT_GT(seen.refused, 0u);
}

}  // namespace
}  // namespace dbx::recovery_test
