// What log_dump --parallelism takes from records, byte by byte: costs, LSN vectors, orders; its flags and its output.
#include "system/runs/parallelism_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/logging/log_builder.h"

namespace dbx {
namespace {

using enum ModelledOrder;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kRunId = 17;
constexpr uint32_t kStripeBytes = 4096;

// Every record costs 1, whatever it holds.
ParallelismOptions EqualCosts() {
  ParallelismOptions options;
  options.replay_ns = 1;
  options.byte_ns = 0;
  options.threads = {1, 2, kUnlimitedThreads};
  return options;
}

LogBuilder TwoLogs(uint32_t log) { return LogBuilder(kRunId, log, 2, format::Scheme::kTaurus); }
LogBuilder Partition(uint32_t log) { return LogBuilder(kRunId, log, 2, format::Scheme::kPlover); }

// Gives the meter the log's records below `end`, of which one batch holds all.
void Take(ParallelismMeter& meter, LogBuilder& log, uint64_t end) {
  const format::FileHeader& header = log.header();
  LogSource source;
  source.log_index = header.log_index;
  source.log_count = header.stripe_bytes != 0 ? 1 : header.log_count;
  meter.Begin(header, source);
  LsnPerLog anchor{};
  for (const uint64_t start : log.Starts()) {
    if (start >= end) break;
    format::RecordHeader record;
    std::memcpy(&record, &log.Stream()[start], sizeof record);
    const std::span body(&log.Stream()[start] + sizeof record, record.length - sizeof record);
    const RecordType& type = *TypeOf(record.kind);
    meter.Take(type, {record, body, source.log_count}, anchor, 0);
    if (type.role == RecordRole::kAnchor) std::memcpy(anchor.data(), body.data(), body.size());
  }
  meter.End(Lsn(end));
}

ParallelismReport ReportOf(std::vector<LogBuilder> logs, const ParallelismOptions& options = EqualCosts(),
                           std::optional<Stamp> last = {}) {
  ParallelismMeter meter(options);
  for (LogBuilder& log : logs) Take(meter, log, log.End());
  return meter.Finish(last);
}

const ParallelismReport::Order& In(const ParallelismReport& report, ModelledOrder order) {
  for (const ParallelismReport::Order& o : report.orders) {
    if (o.order == order) return o;
  }
  throw std::out_of_range("the report lacks an order");
}

std::vector<ModelledOrder> OrdersOf(const ParallelismReport& report) {
  std::vector<ModelledOrder> orders;
  for (const ParallelismReport::Order& o : report.orders) orders.push_back(o.order);
  return orders;
}

std::string RefusalOf(std::string_view flag) {
  ParallelismOptions options;
  try {
    ParseParallelismFlag(flag, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kUsage);
    return error.what();
  }
  return "";
}

TEST(ParallelismReport, ARecordCostsByItsChangesAndItsBytes) {
  ParallelismOptions options = EqualCosts();
  LogBuilder log(kRunId);
  log.Data(1, {Put(0, 1, "one")}).Data(2, {Put(0, 1, "x"), Put(0, 2, "y"), Delete(0, 3)}).Data(3, {}).Void().Pad();
  EXPECT_EQ(ReportOf({log}, options).records, 3) << "voids and pads are no work";
  EXPECT_DOUBLE_EQ(ReportOf({log}, options).work_ns, 1 + 3 + 1);
  EXPECT_DOUBLE_EQ(In(ReportOf({log}, options), kNewestWins).critical_path_ns, 3);
  options.replay_ns = 100;
  options.byte_ns = 0.5;
  EXPECT_DOUBLE_EQ(ReportOf({log}, options).work_ns, 500 + 0.5 * static_cast<double>(log.Start(3)));
}

TEST(ParallelismReport, ACommandCostsWhatItsProcedureDoes) {
  ParallelismOptions options = EqualCosts();
  options.procedure_ns = {{2, 10}, {3, 100}};
  LogBuilder log(kRunId);
  log.Command(1, /*procedure=*/1).Command(2, 2).Command(3, 3).Command(4, 2);
  EXPECT_DOUBLE_EQ(ReportOf({log}, options).work_ns, 1 + 10 + 100 + 10);
}

TEST(ParallelismReport, ElementsThatARecordOmitsAreThoseOfTheAnchor) {
  ParallelismOptions options = EqualCosts();
  options.procedure_ns = {{9, 10}};
  LogBuilder first = TwoLogs(0), second = TwoLogs(1);
  first.Command(1, 0, {}, {0, 0}).Command(2, /*procedure=*/9, {}, {0, 0});
  const uint64_t middle = first.Start(1), end = first.End();
  second.Command(3, 0, {}, {middle, 0});  // waits for the first one
  EXPECT_DOUBLE_EQ(In(ReportOf({first, second}, options), kLsnVectors).critical_path_ns, 10);
  second.Anchor({end, 0}).Command(4, 0, {}, {middle, 0});  // and now for both
  EXPECT_DOUBLE_EQ(In(ReportOf({first, second}, options), kLsnVectors).critical_path_ns, 11);
  second.Command(5, 0, {}, {middle, second.End()});  // and for those before it in its log
  const ParallelismReport report = ReportOf({first, second}, options);
  EXPECT_DOUBLE_EQ(In(report, kLsnVectors).critical_path_ns, 12);
  EXPECT_EQ(report.dropped, 0);
}

TEST(ParallelismReport, ALogCutAtItsTailLosesWhatDependsOnIt) {
  LogBuilder first = TwoLogs(0), second = TwoLogs(1);
  first.Command(1, 0, {}, {0, 0}).Command(2, 0, {}, {0, 0});
  second.Command(3, 0, {}, {first.Start(1), 0}).Command(4, 0, {}, {first.End(), 0}).Command(5, 0, {}, {0, 0});
  ParallelismMeter meter(EqualCosts());
  Take(meter, first, first.Start(1));
  Take(meter, second, second.End());
  const ParallelismReport report = meter.Finish({});
  EXPECT_EQ(report.dropped, 1);
  EXPECT_EQ(report.records, 3);
}

TEST(ParallelismReport, OrdersAreThoseThatTheRecordsAllow) {
  const std::vector<BuiltWrite> row = {Put(0, 1, "x")};
  EXPECT_THAT(OrdersOf(ReportOf({LogBuilder(kRunId).Command(1, 0)})), ElementsAre(kTotal));
  EXPECT_THAT(OrdersOf(ReportOf({LogBuilder(kRunId).Data(1, row)})), ElementsAre(kNewestWins, kTotal));
  EXPECT_THAT(OrdersOf(ReportOf({TwoLogs(0).Command(1, 0, {}, {0, 0}), TwoLogs(1)})),
              ElementsAre(kLsnVectors, kLanes, kTotal));
  EXPECT_THAT(OrdersOf(ReportOf({TwoLogs(0).Data(1, row, {0, 0}), TwoLogs(1)})),
              ElementsAre(kLsnVectors, kLanes, kNewestWins, kTotal));
  EXPECT_THAT(OrdersOf(ReportOf({Partition(0).Stamped(1, 1, 1, row), Partition(1).Mark(1)})),
              ElementsAre(kPartitions, kNewestWins, kTotal));
}

TEST(ParallelismReport, AnOrderThatTheRecordsDoNotAllowIsRefused) {
  ParallelismOptions options = EqualCosts();
  options.orders = {kPartitions};
  try {
    ReportOf({LogBuilder(kRunId).Command(1, 0)}, options);
    FAIL() << "commands were partitioned";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kUsage);
    EXPECT_STREQ(error.what(), "--orders=partitions is no order of these records; there are total");
  }
}

TEST(ParallelismReport, PartsWaitForMarksAndWholeTransactionsForTheFrontier) {
  const std::vector<BuiltWrite> row = {Put(0, 1, "x")};
  const ParallelismReport parts =
      ReportOf({Partition(0).Stamped(1, 1, 3, row).Stamped(2, 2, 1, row).Stamped(3, 5, 1, row),
                Partition(1).Stamped(1, 1, 3, row).Mark(4)});
  EXPECT_EQ(parts.dropped, 1);
  EXPECT_DOUBLE_EQ(In(parts, kPartitions).critical_path_ns, 2);
  ParallelismMeter meter(EqualCosts());
  LogBuilder whole(kRunId, 0, 1, format::Scheme::kSiloR);
  whole.Stamped(1, 7, 0, row).Stamped(2, 5, 0, row).Stamped(3, 6, 0, row);
  Take(meter, whole, whole.End());
  EXPECT_TRUE(meter.needs_frontier());
  const ParallelismReport report = meter.Finish(Stamp(6));
  EXPECT_EQ(report.dropped, 1);
  EXPECT_DOUBLE_EQ(In(report, kNewestWins).critical_path_ns, 1);
}

TEST(ParallelismReport, ADeviceReadsItsLogOrItsStripes) {
  ParallelismOptions options = EqualCosts();
  options.device_mb_per_s = 100;  // 10 ns a byte
  LogBuilder log(kRunId);
  log.Command(1, 0).Command(2, 0);
  EXPECT_DOUBLE_EQ(In(ReportOf({log}, options), kTotal).times.back().ns, 10 * static_cast<double>(log.End()) + 1);
  log.header().required_features = format::kFeatureStriped;
  log.header().stripe_bytes = kStripeBytes;
  log.header().log_count = 2;
  EXPECT_DOUBLE_EQ(In(ReportOf({log}, options), kTotal).times.back().ns, 5 * static_cast<double>(log.End()) + 1);
}

TEST(ParallelismReport, LogsThatAreNotReplayedByTransactionsAreRefused) {
  for (const format::Scheme scheme : {format::Scheme::kDifferential, format::Scheme::kWriteBehind}) {
    LogBuilder log(kRunId, 0, 1, scheme);
    EXPECT_THROW(ParallelismMeter::CheckModelled(log.header()), Error);
  }
  ParallelismMeter::CheckModelled(LogBuilder(kRunId).header());
}

TEST(ParallelismReport, EveryRowSaysThatItIsModelled) {
  LogBuilder log(kRunId);
  log.PayloadIs(format::Payload::kData).Data(1, {Put(0, 1, "x")}).Data(2, {Put(0, 2, "x")});
  const ParallelismReport report = ReportOf({log});
  const std::string table = report.Table();
  EXPECT_THAT(table, HasSubstr("2 records in 1 logs (serial, data), 0 dropped"));
  size_t rows = 0;
  for (size_t at = 0; (at = table.find("  modelled\n", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(rows, 2 * (1 + 3)) << table;
  const auto json = nlohmann::json::parse(report.JsonRecord());
  EXPECT_EQ(json.at("kind"), "replay_parallelism");
  for (const auto& order : json.at("orders")) {
    EXPECT_TRUE(order.at("modelled"));
    EXPECT_EQ(order.at("times").back().at("threads"), "unlimited");
    for (const auto& time : order.at("times")) EXPECT_TRUE(time.at("modelled"));
  }
  EXPECT_EQ(json.at("orders")[0].at("parallelism"), 2);
}

TEST(ParallelismReport, FlagsAreParsed) {
  ParallelismOptions options;
  for (const char* flag : {"--parallelism", "--orders=total,newest_wins", "--threads=3,unlimited", "--replay_ns=2.5",
                           "--byte_ns=0", "--procedure_ns=1:10,2:20", "--device_mb_per_s=29", "--json=x"}) {
    EXPECT_TRUE(ParseParallelismFlag(flag, options)) << flag;
  }
  EXPECT_TRUE(options.asked);
  EXPECT_THAT(options.orders, ElementsAre(kTotal, kNewestWins));
  EXPECT_THAT(options.threads, ElementsAre(3, kUnlimitedThreads));
  EXPECT_THAT(options.procedure_ns, ElementsAre(std::pair(1, 10), std::pair(2, 20)));
  EXPECT_EQ(options.replay_ns, 2.5);
  EXPECT_EQ(options.device_mb_per_s, 29);
  for (const char* other : {"--nix=1", "--verify", "log"}) EXPECT_FALSE(ParseParallelismFlag(other, options)) << other;
}

TEST(ParallelismReport, ValuesThatMakeNoSenseAreRefused) {
  for (const char* flag :
       {"--threads=0", "--threads=", "--threads=1,,2", "--threads=two", "--threads=-1", "--threads=99999999",
        "--replay_ns=0", "--replay_ns=nan", "--replay_ns=1x", "--byte_ns=-1", "--device_mb_per_s=0",
        "--device_mb_per_s=inf", "--procedure_ns=1", "--procedure_ns=x:1", "--procedure_ns=1:0", "--json="}) {
    EXPECT_THAT(RefusalOf(flag), HasSubstr(" wants ")) << flag;
  }
  EXPECT_THAT(RefusalOf("--orders=newest"),
              HasSubstr("some of total, lsn_vectors, lanes, partitions, newest_wins, not 'newest'"));
}

}  // namespace
}  // namespace dbx
