// A series and the host's counters, in their file, in the record and in the lines printed from it.
#include "system/command_line/series_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "system/command_line/environment.h"
#include "system/command_line/output.h"
#include "system/command_line/parse_options.h"
#include "system/command_line/perf_record.h"

namespace dbx {
namespace {

using Json = nlohmann::ordered_json;

std::string Row(const std::string& csv, size_t number) {
  size_t begin = 0;
  for (; number > 0; --number) begin = csv.find('\n', begin) + 1;
  return csv.substr(begin, csv.find('\n', begin) - begin);
}

TEST(SeriesCsv, ALineHasCountsRatesAndMarks) {
  SeriesStep s;
  s.begin_seconds = 0.5, s.end_seconds = 1;
  s.acknowledged = 100, s.executed = 120, s.aborts = 3;
  s.p50_nanos = 1500, s.p99_nanos = 2'000'000;
  s.log_bytes = 3'000'000, s.flushes = 4, s.flush_nanos = 20'000;
  s.checkpoints = {1, 2}, s.log_full = {5, 7'500'000}, s.acks_full = {6, 1'000};
  EXPECT_EQ(Row(SeriesCsv({s}), 1),
            "0.500000,1.000000,100,120,3,200.0,240.0,1.500,2000.000,3000000,6.000,4,5.000,1,2,5,7.500,6,0.001");
}

TEST(SeriesCsv, WhatThereIsNotIsEmpty) {
  std::vector<SeriesStep> steps(2);
  steps[0].end_seconds = steps[1].begin_seconds = steps[1].end_seconds = 0.1;
  const std::string csv = SeriesCsv(steps);
  EXPECT_EQ(Row(csv, 1), "0.000000,0.100000,0,0,0,0.0,0.0,,,,,0,,0,0,0,0.000,0,0.000");
  // A step of no length has no rate, and no infinite one.
  EXPECT_EQ(Row(csv, 2), "0.100000,0.100000,0,0,0,0.0,0.0,,,,,0,,0,0,0,0.000,0,0.000");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), ','), 3 * 18);
}

class RecordOfPerf : public testing::Test {
 protected:
  RecordOfPerf() {
    result_.workers.resize(1);
    result_.workers[0].acknowledged = 100;
    result_.perf.emplace();
    result_.perf->kernel = {.task_clock_nanos = 2'000'000'000, .context_switches = 50, .page_faults = 7};
  }
  void Add(const std::string& name, std::optional<uint64_t> count, const std::string& missing = "", double share = 1) {
    result_.perf->processor.push_back({name, count, missing, share, false});
  }
  std::string Record() const { return RunRecord(DefaultOptions(), result_, ReadEnvironment()); }
  Json Perf() const { return Json::parse(Record()).at("metrics").at("perf"); }
  bool Says(const std::string& part) const { return RecordText(Record()).find(part) != std::string::npos; }

  RunResult result_;
};

TEST_F(RecordOfPerf, CountersArePerTransaction) {
  Add("cycles", 2000), Add("instructions", 3000), Add("llc_misses", 0);
  const Json perf = Perf();
  EXPECT_EQ(perf.at("counters").at("cycles").at("count"), 2000);
  EXPECT_EQ(perf.at("counters").at("cycles").at("per_txn"), 20.0);
  EXPECT_EQ(perf.at("counters").at("llc_misses").at("count"), 0);
  EXPECT_EQ(perf.at("instructions_per_cycle"), 1.5);
  EXPECT_EQ(perf.at("task_clock_us_per_txn"), 20'000.0);
  EXPECT_EQ(perf.at("context_switches_per_txn"), 0.5);
  EXPECT_TRUE(perf.at("missing").empty());
  EXPECT_TRUE(
      Says("perf: cycles 20/txn, instructions 30/txn, llc_misses 0/txn, 1.50 instructions per cycle, task "
           "clock 2.00 s, 50 context switches, 7 page faults\n"));
}

TEST_F(RecordOfPerf, AMissingCounterHasAReasonAndNoNumber) {
  Add("cycles", std::nullopt, "because"), Add("instructions", 3000), Add("llc_misses", std::nullopt, "because");
  const Json perf = Perf();
  EXPECT_FALSE(perf.at("counters").contains("cycles"));
  EXPECT_EQ(perf.at("missing").at("cycles"), "because");
  EXPECT_TRUE(perf.at("instructions_per_cycle").is_null());
  EXPECT_EQ(perf.at("page_faults"), 7);
  EXPECT_TRUE(Says("7 page faults; not counted: cycles, llc_misses (because)\n"));
}

TEST_F(RecordOfPerf, AnEstimateIsSaidToBeOne) {
  Add("cycles", 2000, "", 0.25);
  EXPECT_EQ(Perf().at("counters").at("cycles").at("running_share"), 0.25);
  EXPECT_TRUE(Says("cycles 20/txn (scaled: counted 25 % of the time)"));
}

TEST_F(RecordOfPerf, WithoutTransactionsThereIsNothingPerTransaction) {
  result_.workers[0].acknowledged = 0;
  Add("cycles", 2000);
  EXPECT_TRUE(Perf().at("counters").at("cycles").at("per_txn").is_null());
  EXPECT_TRUE(Perf().at("page_faults_per_txn").is_null());
  EXPECT_TRUE(Says("perf: cycles 2000, task clock"));
}

TEST_F(RecordOfPerf, ThatWasNotAskedForIsNull) {
  result_.perf.reset();
  EXPECT_TRUE(Perf().is_null());
  EXPECT_FALSE(Says("perf:"));
}

TEST(RecordOfASeries, NamesItsFile) {
  Options options = DefaultOptions();
  EXPECT_TRUE(SeriesJson(options, {}).is_null());
  options.series_file = "s.csv", options.series_interval_ms = 20;
  RunResult result;
  result.series.resize(3);
  result.series[1].log_full.count = 4, result.series[2].log_full.count = 1;
  const std::string record = RunRecord(options, result, ReadEnvironment());
  const Json series = Json::parse(record).at("metrics").at("series");
  EXPECT_EQ(series.dump(), R"({"file":"s.csv","interval_ms":20,"steps":3,"log_full_waits":5})");
  EXPECT_NE(RecordText(record).find("series: 3 steps of 20 ms in s.csv\n"), std::string::npos);
}

}  // namespace
}  // namespace dbx
