// The record and what is printed from it: DBx1000's lines, the keys that scripts read, the arithmetic.
#include "system/command_line/output.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "system/command_line/parse_options.h"

namespace dbx {
namespace {

using Json = nlohmann::json;

// Two workers, two streams, 2 seconds, figures that are easy to divide.
RunResult SomeRun() {
  RunResult r;
  r.workers.resize(2);
  r.workers[0].executed = 110, r.workers[0].acknowledged = 100, r.workers[0].run_seconds = 2;
  r.workers[0].acknowledged_log_bytes = 1000, r.workers[1].acknowledged_log_bytes = 1700;
  r.workers[0].aborts = {7, 0, 0, 0, 1};
  r.workers[1].executed = 210, r.workers[1].acknowledged = 200, r.workers[1].run_seconds = 2.5;
  r.workers[1].aborts = {70, 2, 0, 0, 0};
  r.workers[0].max_tries = 3, r.workers[1].max_tries = 41;
  r.workers[0].acknowledged_late = 7, r.workers[1].acknowledged_late = 5;
  r.workers[0].late_nanos_max = 9000, r.workers[1].late_nanos_max = 70000;
  r.workers[1].user_rollbacks = 5, r.workers[1].wait_seconds = 0.25;
  r.streams.resize(2);
  r.streams[0] = {
      .record_bytes = 3000, .void_bytes = 100, .pad_bytes = 50, .anchor_bytes = 20, .flushes = 3, .flush_nanos = 9000};
  r.streams[1] = {
      .record_bytes = 1000, .void_bytes = 0, .pad_bytes = 30, .anchor_bytes = 0, .flushes = 1, .flush_nanos = 3000};
  for (uint64_t us = 1; us <= 100; ++us) r.latency.Record(us * 1000);
  r.procedure_names = {"Payment", "New-Order"};
  r.workers[0].executed_of = {70, 40}, r.workers[1].executed_of = {90, 120};
  r.seconds = 2, r.interval_log_bytes = 3000;  // of 4200: the rest was warm-up
  r.logged_txns = 200;
  r.stop_reason = "done";
  r.directories = {{"./logs/run-0001", "real", "ext4", "io_uring+O_DIRECT"}};
  return r;
}

RecoveryResult SomeRecovery() {
  RecoveryResult r;
  r.recovered = 5000, r.dropped_dependency = 3, r.voids = 2, r.torn_logs = 1, r.cut_bytes = 77;
  r.log_bytes = 1'000'000, r.frontier = {Lsn(600'000), Lsn(400'000)}, r.threads = 4, r.parallelism = 3.5;
  r.replay_seconds = 0.5, r.run_number = 12, r.verified = "a,c", r.digest = "d16e57";
  return r;
}

Options WithVerify() {
  Options o = DefaultOptions();
  o.verify = true;
  return o;
}

Environment TwoCores() {
  Environment e = ReadEnvironment();
  e.cores = 2;
  return e;
}

Json RunJson(const Options& options = DefaultOptions()) {
  return Json::parse(RunRecord(options, SomeRun(), TwoCores()));
}
std::string RunText(const Options& options = DefaultOptions()) {
  return RecordText(RunRecord(options, SomeRun(), TwoCores()));
}
bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Record, MetricsAreSumsAndRatiosOfTheResult) {
  const Json m = RunJson().at("metrics");
  EXPECT_EQ(m.at("acknowledged_txns"), 300);
  EXPECT_EQ(m.at("acknowledged_log_bytes"), 2700);
  EXPECT_EQ(m.at("executed_txns"), 320);
  EXPECT_DOUBLE_EQ(m.at("throughput_acknowledged"), 150.0);
  EXPECT_DOUBLE_EQ(m.at("throughput_executed"), 160.0);
  EXPECT_EQ(m.at("abort_cnt"), 80);
  EXPECT_DOUBLE_EQ(m.at("abort_rate"), 0.2);
  EXPECT_EQ(m.at("aborts").at("lock_conflict"), 77);
  EXPECT_EQ(m.at("aborts").at("validation"), 2);
  EXPECT_EQ(m.at("aborts").at("record_too_large"), 1);
  EXPECT_EQ(m.at("user_rollbacks"), 5);
}

TEST(Record, WhatWasAcknowledgedBehindTheIntervalIsSaid) {
  const Json m = RunJson().at("metrics");
  EXPECT_EQ(m.at("acknowledged_late"), 12);
  EXPECT_DOUBLE_EQ(m.at("latency_late_max_us"), 70.0);
  EXPECT_TRUE(Contains(RunText(), "(12 more after the interval, within 70")) << RunText();
}

TEST(Record, TheMostTriesOfATransactionAreThoseOfTheWorkerWithMost) {
  const Json record = RunJson();
  EXPECT_EQ(record.at("metrics").at("max_tries"), 41);
  EXPECT_EQ(record.at("workers").at(0).at("max_tries"), 3);
  EXPECT_TRUE(Contains(RunText(), ", flush_cnt=4, max_tries=41\n")) << RunText();
}

TEST(Record, LogMetricsAreSumsAndRatiosOfTheStreams) {
  Options options = DefaultOptions();
  options.device_ceiling = 3000;
  const Json m = RunJson(options).at("metrics");
  EXPECT_EQ(m.at("log_bytes"), 4200);
  EXPECT_EQ(m.at("record_bytes"), 4000);
  EXPECT_DOUBLE_EQ(m.at("bytes_per_txn"), 20.0);
  EXPECT_DOUBLE_EQ(m.at("log_bytes_per_second"), 1500.0);
  EXPECT_DOUBLE_EQ(m.at("device_share"), 0.5);
  EXPECT_EQ(m.at("flushes"), 4);
  EXPECT_DOUBLE_EQ(m.at("mean_flush_us"), 3.0);
  EXPECT_TRUE(RunJson().at("metrics").at("device_share").is_null());
}

TEST(Record, ChargedReadsAreToldWhereTheyAreCompiledIn) {
  EXPECT_TRUE(RunJson().at("metrics").at("charged_reads").is_null());
  EXPECT_FALSE(Contains(RunText(), "PM_READS"));
  RunResult run = SomeRun();
  run.workers[0].charged_reads = 40, run.workers[1].charged_reads = 2;
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  EXPECT_EQ(Json::parse(record).at("metrics").at("charged_reads"), 42);
  EXPECT_EQ(Json::parse(record).at("config").at("PM_READS"), 1);
  EXPECT_TRUE(Contains(RecordText(record), "reads of persistent memory: 42 charged for"));
}

TEST(Record, SharesOfTheWorkersTimeAreThereIfItWasTold) {
  EXPECT_TRUE(RunJson().at("metrics").at("time_shares").is_null());
  EXPECT_EQ(RunJson().at("config").at("TIME_PARTS"), 0);
  EXPECT_EQ(RunJson().at("config").at("PM_READS"), 0);
  EXPECT_FALSE(Contains(RunText(), "workers' time"));
  RunResult run = SomeRun();
  run.workers[0].time_parts = {10, 20, 3, 40, 5, 2};
  run.workers[1].time_parts = {30, 20, 7, 50, 5, 8};
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  const Json shares = Json::parse(record).at("metrics").at("time_shares");
  EXPECT_EQ(Json::parse(record).at("config").at("TIME_PARTS"), 1);
  EXPECT_DOUBLE_EQ(shares.at("work"), 0.2);
  EXPECT_DOUBLE_EQ(shares.at("tracking"), 0.2);
  EXPECT_DOUBLE_EQ(shares.at("metadata"), 0.05);
  EXPECT_DOUBLE_EQ(shares.at("record"), 0.45);
  EXPECT_DOUBLE_EQ(shares.at("aborted"), 0.05);
  EXPECT_DOUBLE_EQ(shares.at("rest"), 0.05);
  EXPECT_TRUE(Contains(RecordText(record),
                       "workers' time: work 20.0 %, tracking 20.0 %, metadata 5.0 %, record 45.0 %, "
                       "aborted 5.0 %, rest 5.0 %\n"));
}

// By the names that DBx1000 has for them; others are left out, in the summary they are 0.
TEST(Record, DBx1000sTimesAreThoseOfTheLedger) {
  for (const char* name : {"time_man", "time_index", "time_abort", "time_cleanup", "time_ts_alloc"}) {
    EXPECT_FALSE(RunJson().at("metrics").contains(name));
  }
  RunResult run = SomeRun();
  run.workers[0].time_parts = {0, 1e9, 0, 0, 2e8, 1};
  run.workers[1].time_parts = {0, 5e8, 0, 0, 5e7, 1};
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  EXPECT_DOUBLE_EQ(Json::parse(record).at("metrics").at("time_man"), 1.5);
  EXPECT_DOUBLE_EQ(Json::parse(record).at("metrics").at("time_abort"), 0.25);
  EXPECT_TRUE(Contains(RecordText(record), "time_man=1.500000, time_index=0.000000, time_abort=0.250000, "));
}

TEST(Record, LookAheadIsPartOfTheConfiguration) {
  Options options = DefaultOptions();
  EXPECT_EQ(RunJson(options).at("config").at("LOOKAHEAD"), 6);
  options.lookahead = 0;
  EXPECT_EQ(RunJson(options).at("config").at("LOOKAHEAD"), 0);
}

TEST(Record, ACentralLogShowsWhatTrackingItsFillsTook) {
  EXPECT_TRUE(RunJson().at("metrics").at("central_log").is_null());
  RunResult run = SomeRun();
  run.central_log = CentralCounters{.crawled_bytes = 3000, .crawled_records = 30, .crawl_operations = 60};
  run.central_log->hopped_bytes = 1000, run.central_log->hopped_records = 10, run.central_log->hop_operations = 5;
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  const Json c = Json::parse(record).at("metrics").at("central_log");
  EXPECT_DOUBLE_EQ(c.at("crawling_ratio"), 0.75);
  EXPECT_DOUBLE_EQ(c.at("operations_per_crawled_record"), 2.0);
  EXPECT_DOUBLE_EQ(c.at("operations_per_hopped_record"), 0.5);
  EXPECT_TRUE(Contains(RecordText(record), "crawled 75.0 % of the log (2.00 operations per record)"));
}

TEST(Record, CheckpointsAreShownWhereThereWereAny) {
  EXPECT_TRUE(RunJson().at("metrics").at("checkpoints").is_null());
  RunResult run = SomeRun();
  run.checkpoints = CheckpointCounters{};
  EXPECT_FALSE(Contains(RecordText(RunRecord(DefaultOptions(), run, TwoCores())), "checkpoints:"));
  run.checkpoints = CheckpointCounters{.checkpoints = 3, .failed = 1, .pages = 20, .bytes = 2'000'000, .seconds = 0.5};
  run.checkpoints->latches.Record(100);
  run.checkpoints->latches.Record(7500);
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  EXPECT_EQ(Json::parse(record).at("metrics").at("checkpoints").at("complete"), 3);
  EXPECT_TRUE(Contains(RecordText(record),
                       "checkpoints: 3 complete, 1 failed, 0 abandoned at the end, 20 pages, 2.0 MB in 0.50 s; a page "
                       "latched for 7.5 us (p99), 7.5 us at most"));
  EXPECT_EQ(Json::parse(record).at("metrics").at("checkpoints").at("latch_histogram"),
            Json::parse("[[100, 1], [7500, 1]]"));
}

TEST(Record, DeadlocksAreToldWhereTheyAreLookedFor) {
  EXPECT_TRUE(RunJson().at("metrics").at("deadlocks").is_null());
  RunResult run = SomeRun();
  run.deadlocks = DeadlockCounters{.searches = 40, .cycles = 3, .search_seconds = 0.25, .wait_seconds = 1.5};
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  EXPECT_EQ(Json::parse(record).at("metrics").at("deadlocks").at("cycles"), 3);
  EXPECT_TRUE(Contains(SummaryText(record),
                       "deadlock_cnt=3, cycle_detect=40, dl_detect_time=0.250000, dl_wait_time=1.500000, time_query="));
}

TEST(Record, LatenciesAreMicrosecondsAndTheHistogramSumsUp) {
  const Json record = RunJson();
  const Json latency = record.at("metrics").at("latency_us");
  EXPECT_NEAR(latency.at("p50"), 50, 50.0 / 64);
  EXPECT_NEAR(latency.at("p99"), 99, 99.0 / 64);
  EXPECT_DOUBLE_EQ(latency.at("max"), 100.0);
  EXPECT_DOUBLE_EQ(latency.at("mean"), 50.5);
  uint64_t sum = 0;
  for (const Json& bucket : record.at("latency_histogram")) sum += bucket.at(1).get<uint64_t>();
  EXPECT_EQ(sum, 100u);
}

TEST(Record, ConfigurationHoldsEverySwitchWithNumbersAsNumbers) {
  const Json config = RunJson().at("config");
  for (const auto& [name, value] : EffectiveConfiguration(DefaultOptions())) EXPECT_TRUE(config.contains(name)) << name;
  EXPECT_TRUE(config.at("THREAD_CNT").is_number_integer());
  EXPECT_TRUE(config.at("ZIPF_THETA").is_number());
  EXPECT_EQ(config.at("CC_ALG"), DefaultOptions().cc);
  Options named_like_a_number = DefaultOptions();
  named_like_a_number.json_file = "5";
  EXPECT_TRUE(RunJson(named_like_a_number).at("config").at("JSON_FILE").is_string());
}

TEST(Record, EnvironmentNamesBuildMachineAndDevices) {
  const Json e = RunJson().at("environment");
  for (const char* name : {"commit", "dirty", "compiler", "flags", "allocator", "kernel", "cpu", "cores", "governor",
                           "numa_nodes", "memory_bytes", "huge_pages", "virtualisation", "time", "log_directories"}) {
    EXPECT_TRUE(e.contains(name)) << name;
  }
  EXPECT_TRUE(std::regex_match(e.at("time").get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
  EXPECT_EQ(e.at("log_directories").at(0).at("kind"), "real");
  EXPECT_GT(e.at("memory_bytes").get<uint64_t>(), uint64_t{64} << 20);
}

TEST(Record, AnEmulatedDeviceIsNamedWithItsFiguresWhereverThereIsAResult) {
  const DeviceEmulation emulation{{"hdd:0.5", 80'000'000, 4'170'000, 6'300'000, 32, 0}, "ram"};
  RunResult run = SomeRun();
  run.directories = {{"./logs/run-0001", "emulated", "tmpfs", "pwrite, buffered, fdatasync", emulation}};
  RecoveryResult recovery = SomeRecovery();
  recovery.directories = run.directories;
  for (const std::string& record :
       {RunRecord(DefaultOptions(), run, TwoCores()), RecoveryRecord(DefaultOptions(), recovery, TwoCores())}) {
    const Json directory = Json::parse(record).at("environment").at("log_directories").at(0);
    EXPECT_EQ(directory.at("kind"), "emulated");
    const Json expected = {{"profile", "hdd:0.5"},
                           {"bytes_per_second", 80'000'000},
                           {"flush_us", 4170.0},
                           {"seek_us", 6300.0},
                           {"read_us", 0.0},
                           {"queue_depth", 32},
                           {"channel_bytes_per_second", 0},
                           {"over", "ram"}};
    EXPECT_EQ(directory.at("emulation"), expected);
    const std::string words = "on 1 EMULATED hdd:0.5 (80 MB/s, flush 4.17 ms, seek 6.3 ms, depth 32) over tmpfs";
    EXPECT_TRUE(Contains(RecordText(record), words)) << RecordText(record);
  }
}

TEST(Record, TheChannelOfEmulatedDevicesIsNamed) {
  const DeviceEmulation emulation{{"disk29,channel=160M", 29'000'000, 4'170'000, 6'300'000, 32, 160u << 20}, "ram"};
  RunResult run = SomeRun();
  run.directories.assign(2, {"./logs/run-0001", "emulated", "tmpfs", "pwrite, buffered, fdatasync", emulation});
  const std::string record = RunRecord(DefaultOptions(), run, TwoCores());
  const Json parsed = Json::parse(record);
  for (const Json& directory : parsed.at("environment").at("log_directories")) {
    EXPECT_EQ(directory.at("emulation").at("profile"), "disk29,channel=160M");
    EXPECT_EQ(directory.at("emulation").at("channel_bytes_per_second"), 160u << 20);
  }
  const std::string words =
      "on 2 EMULATED disk29,channel=160M (29 MB/s, flush 4.17 ms, seek 6.3 ms, depth 32, one channel 168 MB/s) over";
  EXPECT_TRUE(Contains(RecordText(record), words)) << RecordText(record);
}

TEST(Record, ARestartTellsWhereItsTimeWent) {
  RecoveryResult recovery = SomeRecovery();
  const auto record = [&] { return RecoveryRecord(DefaultOptions(), recovery, TwoCores()); };
  EXPECT_TRUE(Json::parse(record()).at("metrics").at("restart").is_null());
  EXPECT_FALSE(Contains(RecordText(record()), "restart by "));
  recovery.restart = {0.5, 0.25, 0.5, 1.5, 0.125, 1.75, DiffMethod::kPl2p, 3};
  const Json expected = {{"method", "PL2P"},         {"level", 3},
                         {"ends_seconds", 0.5},      {"backup_seconds", 0.25},
                         {"redo_seconds", 0.5},      {"backward_seconds", 1.5},
                         {"adopt_seconds", 0.125},   {"log_seconds", 2.0},
                         {"log_read_seconds", 1.75}, {"log_play_seconds", 0.25},
                         {"log_throughput", 2000.0}};
  EXPECT_EQ(Json::parse(record()).at("metrics").at("restart"), expected);
  EXPECT_EQ(Json::parse(record()).at("config").at("DIFF_METHOD"), "PL2P") << "the log's, not the command line's";
  EXPECT_TRUE(Contains(
      RecordText(record()),
      "\nrestart by PL2P at level 3, seconds: ends of the logs 0.500, backup 0.250, logs 2.000 (reading 1.750, playing "
      "0.250), pages 0.125\n"))
      << RecordText(record());
}

TEST(Record, ARealDeviceIsNotCalledEmulated) {
  EXPECT_FALSE(RunJson().at("environment").at("log_directories").at(0).contains("emulation"));
  EXPECT_FALSE(Contains(RunText(), "EMULATED"));
}

TEST(Record, MoreWorkersAndWritersThanCoresAreOversubscribed) {
  EXPECT_EQ(RunJson().at("environment").at("oversubscribed"), true);
  Environment many = TwoCores();
  many.cores = 3;  // two workers and the one writer of the one directory
  EXPECT_EQ(Json::parse(RunRecord(DefaultOptions(), SomeRun(), many)).at("environment").at("oversubscribed"), false);
}

TEST(Record, ARunOfNothingHasZeroesAndNoInfinities) {
  const Json m = Json::parse(RunRecord(DefaultOptions(), RunResult{}, TwoCores())).at("metrics");
  for (const char* name :
       {"throughput_acknowledged", "abort_rate", "bytes_per_txn", "log_bytes_per_second", "mean_flush_us"}) {
    EXPECT_EQ(m.at(name), 0.0) << name;
  }
}

TEST(Record, ARecoveryHoldsTheDigestOfWhatItFound) {
  const Json record = Json::parse(RecoveryRecord(WithVerify(), SomeRecovery(), TwoCores()));
  EXPECT_EQ(record["verification"], (Json{{"asked", true}, {"verified", "a,c"}, {"digest", "d16e57"}}));
}

TEST(Record, IsOneLine) {
  Options options = DefaultOptions();
  options.log_dirs = {"a\nb\xff"};  // not even valid UTF-8
  const std::string record = RunRecord(options, SomeRun(), TwoCores());
  EXPECT_EQ(record.find('\n'), std::string::npos);
  EXPECT_TRUE(Json::accept(record));
}

TEST(Text, TheLineThatScriptsWaitForComesFirst) {
  EXPECT_EQ(RunText().rfind("PASS! SimTime = 2000000000\n", 0), 0u) << RunText();
}

TEST(Text, ThroughputMatchesTheExpressionOfScripts) {
  std::smatch match;
  const std::string text = RunText();
  ASSERT_TRUE(std::regex_search(text, match, std::regex(R"(Throughput:\s+([\d\.\+e\-]+))")));
  EXPECT_DOUBLE_EQ(std::stod(match[1]), 150.0);
}

TEST(Text, EachWorkerHasItsLine) {
  const std::string text = RunText();
  EXPECT_TRUE(Contains(text, "[tid=0] txn_cnt=100,abort_cnt=8\n"));
  EXPECT_TRUE(Contains(text, "[tid=1] txn_cnt=200,abort_cnt=72\n"));
}

TEST(Text, TheSummaryHasDbx1000sKeysInItsOrder) {
  const std::string expected =
      "[summary] txn_cnt=300, abort_cnt=80, run_time=4.500000, time_wait=0.000000, time_ts_alloc=0.000000, "
      "time_man=0.000000, time_index=0.000000, time_abort=0.000000, time_cleanup=0.000000, latency=0.000051, "
      "deadlock_cnt=0, cycle_detect=0, dl_detect_time=0.000000, dl_wait_time=0.000000, time_query=0.000000, ";
  EXPECT_TRUE(Contains(RunText(), expected)) << RunText();
}

TEST(Text, TheReadableLineSaysWhatWasMeasuredAndWhetherItWasVerified) {
  Options options = WithVerify();
  options.device_ceiling = 3000;
  RunResult run = SomeRun();
  run.verified = "d";
  const std::string text = RecordText(RunRecord(options, run, TwoCores()));
  for (const char* part : {"acknowledged 150 txn/s", "executed 160 txn/s", "aborts 20.00 %", "p99.9", "log 20 B/txn",
                           "1.5 kB/s", "50 % of the device", "verified: d"}) {
    EXPECT_TRUE(Contains(text, part)) << part << "\n" << text;
  }
  EXPECT_TRUE(Contains(RunText(), "not verified"));
}

TEST(Text, TpccShowsItsMixAndThatNobodyThinks) {
  Options options = DefaultOptions();
  EXPECT_FALSE(Contains(RunText(options), "mix:"));
  options.workload = WorkloadKind::kTpcc;
  const Json by_procedure = RunJson(options).at("metrics").at("executed_by_procedure");
  EXPECT_EQ(by_procedure.at("Payment"), 160);
  EXPECT_EQ(by_procedure.at("New-Order"), 160);
  EXPECT_TRUE(
      Contains(RunText(options),
               "\nmix: Payment 50.0 %, New-Order 50.0 %; 4800 New-Orders per minute, executed without think times\n"));
}

TEST(Text, AnUnsyncedRunSaysSo) {
  Options options = DefaultOptions();
  options.log_no_flush = true;
  EXPECT_TRUE(Contains(RunText(options), "NOT SYNCED"));
  EXPECT_FALSE(Contains(RunText(), "NOT SYNCED"));
  EXPECT_EQ(RunJson(options).at("metrics").at("unsynced"), true);
}

TEST(Text, AnEarlyStopIsNamed) {
  RunResult run = SomeRun();
  run.stop_reason = "log_limit";
  EXPECT_TRUE(Contains(RecordText(RunRecord(DefaultOptions(), run, TwoCores())), "stopped at the log limit"));
  run.stop_reason = "signal";
  EXPECT_TRUE(Contains(RecordText(RunRecord(DefaultOptions(), run, TwoCores())), "stopped by a signal"));
}

TEST(Text, TheTestWorkloadPrintsPassOrWhatFailed) {
  Options options = DefaultOptions();
  options.workload = WorkloadKind::kTest;
  RunResult run = SomeRun();
  EXPECT_EQ(RunText(options).rfind("PASS\n", 0), 0u);
  EXPECT_TRUE(RecordPassed(RunRecord(options, run, TwoCores())));
  run.workload_note = "row 3 lost an update";
  const std::string failed = RunRecord(options, run, TwoCores());
  EXPECT_FALSE(RecordPassed(failed));
  EXPECT_FALSE(Contains(RecordText(failed), "PASS"));
  EXPECT_TRUE(Contains(RecordText(failed), "row 3 lost an update"));
}

TEST(Text, LatencyDistributionIsPrintedOnRequest) {
  Options options = DefaultOptions();
  EXPECT_FALSE(Contains(RunText(options), "[latency]"));
  options.prt_lat_distr = true;
  EXPECT_TRUE(Contains(RunText(options), "[latency] <= 1.0"));
  EXPECT_TRUE(Contains(RunText(options), "(100.0000 %)"));
}

TEST(Text, ARecoveryReportsWhatItFoundAndHowFast) {
  const std::string record = RecoveryRecord(WithVerify(), SomeRecovery(), TwoCores());
  EXPECT_DOUBLE_EQ(Json::parse(record).at("metrics").at("throughput"), 10'000.0);
  EXPECT_DOUBLE_EQ(Json::parse(record).at("metrics").at("bytes_per_second"), 2e6);
  EXPECT_EQ(Json::parse(record).at("metrics").at("frontier"), (std::vector<uint64_t>{600'000, 400'000}));
  const std::string text = RecordText(record);
  for (const char* part :
       {"PASS! SimTime = 500000000", "run-0012", "5000 transactions", "3 dropped", "2 void", "no clean end",
        "1 of the logs torn", "77 bytes cut", "Throughput: 10000", "parallelism 3.50", "verified: a,c\n"}) {
    EXPECT_TRUE(Contains(text, part)) << part << "\n" << text;
  }
}

TEST(Text, ARecoveryOfAnUnsyncedLogSaysSo) {
  Options options = DefaultOptions();
  const auto text = [&] { return RecordText(RecoveryRecord(options, SomeRecovery(), TwoCores())); };
  EXPECT_FALSE(Contains(text(), "NOT SYNCED"));
  options.log_no_flush = true;
  EXPECT_TRUE(Contains(text(), "NOT SYNCED"));
  const Json record = Json::parse(RecoveryRecord(options, SomeRecovery(), TwoCores()));
  EXPECT_EQ(record.at("metrics").at("unsynced"), true);
}

}  // namespace
}  // namespace dbx
