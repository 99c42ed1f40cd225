// The values of LOG_DEVICE.
#include "system/command_line/parse_device.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "system/command_line/parse_value.h"

namespace dbx {
namespace {

// The reason why a text is refused; empty if it is not.
std::string Refusal(const char* text) {
  try {
    ParseDevice(text);
  } catch (const BadValue& e) {
    return e.what();
  }
  return {};
}

TEST(ParseDeviceTest, TheRealDeviceIsNotEmulated) {
  EXPECT_FALSE(ParseDevice("real").has_value());
  EXPECT_FALSE(ParseDevice("none").has_value());
}

TEST(ParseDeviceTest, AFactorScalesTheBandwidthOfADeviceAlone) {
  const DeviceProfile whole = *ParseDevice("hdd"), half = *ParseDevice("hdd:0.5");
  EXPECT_EQ(whole.bytes_per_second, 160'000'000u);
  EXPECT_EQ(half.bytes_per_second, 80'000'000u);
  EXPECT_EQ(half.flush_nanos, whole.flush_nanos);
  EXPECT_EQ(half.seek_nanos, whole.seek_nanos);
  EXPECT_EQ(ParseDevice("nvme:0.025")->bytes_per_second, 50'000'000u);
}

TEST(ParseDeviceTest, FiguresReplaceThoseOfADeviceOrStandAlone) {
  const DeviceProfile alone = *ParseDevice("bandwidth=50M,flush=100us,seek=0,depth=4");
  EXPECT_EQ(alone.name, "bandwidth=50M,flush=100us,seek=0,depth=4");
  EXPECT_EQ(alone.bytes_per_second, 50u << 20);
  EXPECT_EQ(alone.flush_nanos, 100'000u);
  EXPECT_EQ(alone.queue_depth, 4u);
  EXPECT_EQ(ParseDevice("flush=7")->flush_nanos, 7000u) << "a bare number counts microseconds";
  EXPECT_EQ(ParseDevice("flush=7")->bytes_per_second, 0u);
  const DeviceProfile changed = *ParseDevice("hdd:2,seek=4ms");
  EXPECT_EQ(changed.bytes_per_second, 320'000'000u);
  EXPECT_EQ(changed.seek_nanos, 4'000'000u);
}

TEST(ParseDeviceTest, TheDiskOfDifferentialLoggingHasItsFigures) {
  const DeviceProfile disk = *ParseDevice("disk29");
  EXPECT_EQ(disk.bytes_per_second, 29'000'000u);
  EXPECT_EQ(disk.flush_nanos, 4'170'000u);
  EXPECT_EQ(disk.seek_nanos, 6'300'000u);
}

TEST(ParseDeviceTest, PersistentMemoryMayHaveAMultipleOfTheLatencyOfDram) {
  for (const auto& [text, flush, read] : {std::tuple("pm,latency=1", 120u, 0u),
                                          {"pm,latency=2", 280u, 160u},
                                          {"pm:0.5,latency=4", 600u, 480u},
                                          {"pm", 600u, 480u},
                                          {"pm,latency=8", 1240u, 1120u}}) {
    EXPECT_EQ(ParseDevice(text)->flush_nanos, flush) << text;
    EXPECT_EQ(ParseDevice(text)->read_nanos, read) << text;
  }
  EXPECT_EQ(ParseDevice("ssd")->read_nanos, 0u);
}

TEST(ParseDeviceTest, AChannelGoesWithAnyDeviceAndIsNotScaled) {
  const DeviceProfile half = *ParseDevice("disk29:0.5,channel=160M");
  EXPECT_EQ(half.name, "disk29:0.5,channel=160M");
  EXPECT_EQ(half.bytes_per_second, 14'500'000u);
  EXPECT_EQ(half.channel_bytes_per_second, 160u << 20);
  EXPECT_EQ(ParseDevice("channel=160000000")->channel_bytes_per_second, 160'000'000u);
}

TEST(ParseDeviceTest, NoDeviceHasAChannelUnlessAskedFor) {
  for (const NamedProfile& named : kDeviceProfiles) EXPECT_EQ(ParseDevice(named.name)->channel_bytes_per_second, 0u);
  EXPECT_EQ(ParseDevice("hdd,channel=0")->channel_bytes_per_second, 0u);
}

TEST(ParseDeviceTest, ADeviceAloneTransfersAtTheLowerOfItsRateAndTheChannels) {
  for (const auto& [text, rate] : {std::pair("bandwidth=5,channel=9", 5u),
                                   {"bandwidth=9,channel=5", 5u},
                                   {"bandwidth=0,channel=5", 5u},
                                   {"bandwidth=5", 5u},
                                   {"flush=1", 0u}}) {
    EXPECT_EQ(ParseDevice(text)->AloneBytesPerSecond(), rate) << text;
  }
}

TEST(ParseDeviceTest, AWrongTextIsRefusedWithItsPart) {
  for (const auto& [text, why] : {std::pair("floppy", "is not a device (there is real, nvme, "),
                                  {"floppy", "bandwidth=, flush=, seek=, depth=, channel=, latency= of pm)"},
                                  {"nvme:0", "has nvme:0, which is out of range"},
                                  {"nvme:fast", "has nvme:fast, which is not a number"},
                                  {"bandwidth=50MB", "has bandwidth=50MB, which is not a whole number"},
                                  {"hdd,seek=1h", "has seek=1h, which is not a duration"},
                                  {"depth=0", "has depth=0, which is out of range"},
                                  {"hdd,channel=fast", "has channel=fast, which is not a whole number"},
                                  {"flush=1us,flush=2us", "two figures flush="},
                                  {"channel=1M,channel=2M", "two figures channel="},
                                  {"iops=5", "unknown figure"},
                                  {"ssd,latency=2", "has latency=2, which is a figure of persistent memory"},
                                  {"latency=2", "has latency=2, which is a figure of persistent memory"},
                                  {"pm,latency=0.5", "has latency=0.5, which is out of range"},
                                  {"hdd,", "without a value"},
                                  {"flush=1us,hdd", "without a value"},
                                  {"real:2", "is not a device"}}) {
    EXPECT_NE(Refusal(text).find(why), std::string::npos) << text << ": " << Refusal(text);
  }
}

}  // namespace
}  // namespace dbx
