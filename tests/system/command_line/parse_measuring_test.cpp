// The flags that say when a run is measured and what is recorded of it.
#include <gtest/gtest.h>

#include "tests/system/command_line/parsed.h"

namespace dbx {
namespace {

TEST(MeasuringOptions, ASeriesHasAFileAndAnInterval) {
  EXPECT_EQ(Parse({}).series_interval_ms, 0u);
  EXPECT_EQ(Parse({"--series=s.csv"}).series_interval_ms, 100u);
  EXPECT_EQ(Parse({"--series", "s.csv", "--series_interval=20"}).series_interval_ms, 20u);
  EXPECT_EQ(Parse({"--series=s.csv", "--interval=2s"}).series_interval_ms, 2000u);
  EXPECT_EQ(Parse({"--series=s.csv", "--interval=1s", "--seconds=1"}).series_interval_ms, 1000u);
  EXPECT_REFUSED("add --series=FILE", {"--series_interval=100"});
  EXPECT_REFUSED("SERIES_INTERVAL 0 is no series", {"--series=s.csv", "--series_interval=0"});
  EXPECT_REFUSED("must not be negative", {"--series=s.csv", "--interval=-1"});
  EXPECT_REFUSED("SERIES_INTERVAL", {"--series=s.csv", "--interval=often"});
  EXPECT_REFUSED("SERIES_INTERVAL 1001 ms is longer than the run of 1 s",
                 {"--series=s.csv", "--interval=1001", "--seconds=1"});
  EXPECT_REFUSED("the same file, r.json", {"--series=r.json", "--json=r.json"});
  EXPECT_REFUSED("--series", {"--series="});
}

TEST(MeasuringOptions, ARecoveryIgnoresASeriesAndCounters) {
  Parse({"-Lr1", "--series=s.csv", "--perf", "--warmup_seconds=1"});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("--warmup_seconds, --series, --perf"), std::string::npos) << warnings[0];
}

TEST(MeasuringOptions, WarmUpTakesTransactionsAndSeconds) {
  EXPECT_EQ(Parse({}).warmup_seconds, 0);
  const Options both = Parse({"--warmup=1000", "--warmup_seconds=1500ms"});
  EXPECT_EQ(both.warmup, 1000u);
  EXPECT_EQ(both.warmup_seconds, 1.5);
  EXPECT_REFUSED("must not be negative", {"--warmup_seconds=-1"});
  EXPECT_TRUE(Parse({"--perf"}).perf);
  EXPECT_REFUSED("PERF", {"--perf=2"});
}

}  // namespace
}  // namespace dbx
