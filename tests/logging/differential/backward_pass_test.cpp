// The pass backward: which transactions count, and what it refuses of a log.
#include "logging/differential/backward_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/logging/caught.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::recovery_test {
namespace {

LogBuilder Log(uint32_t index = 0, uint32_t count = 1) {
  return LogBuilder(kRunId, index, count, format::Scheme::kDifferential);
}

constexpr BackwardPass::Options kOptions{.block_bytes = 4096, .with_names = true};

// Passes over all logs of a run, in their order.
class Passes {
 public:
  // `cut`: the logs were truncated below what is needed.
  explicit Passes(const std::vector<LogBuilder>& logs, const RestartPoint& point = {}, bool cut = false)
      : Passes(logs, std::vector<RestartPoint>(logs.size(), point), cut) {}
  Passes(const std::vector<LogBuilder>& logs, const std::vector<RestartPoint>& points, bool cut = false) {
    // Tuples without bytes.
    database_.PageEveryTable(4096, {4});
    database_.CreateTable({.name = "table", .columns = {}});
    const auto count = static_cast<uint32_t>(logs.size());
    for (uint32_t i = 0; i < count; ++i) {
      devices_.push_back(std::make_unique<ImageDevice>("log_" + std::to_string(i), logs[i].Bytes()));
      LogSource source{devices_.back().get(), kRunId, 1 << 20, i, count};
      if (cut) source.needed = points[i].needed;
      ends_.push_back(std::make_unique<LogEnd>(source, points[i].end, LogEnd::Options{.block_bytes = 4096}));
      ends_.back()->Run();
      positions_.push_back(ends_.back()->end());
    }
    for (uint32_t i = 0; i < count; ++i) {
      passes_.push_back(std::make_unique<BackwardPass>(*ends_[i], points[i], positions_, database_, kOptions));
      passes_.back()->Run();
    }
  }
  const BackwardPass& pass(size_t log) const { return *passes_[log]; }
  const BackwardChecks& operator[](size_t log) const { return passes_[log]->checks(); }

 private:
  Database database_{{}, 1};
  std::vector<std::unique_ptr<ImageDevice>> devices_;
  std::vector<std::unique_ptr<LogEnd>> ends_;
  std::vector<Lsn> positions_;
  std::vector<std::unique_ptr<BackwardPass>> passes_;
};

// A transaction with one change, and COMMIT.
LogBuilder& AppendTxn(LogBuilder& log, uint64_t id, const LogBuilder::Elements& lv = {}) {
  return log.Change({.txn_id = id, .flags = format::kChangeFirst}).Commit(id, lv);
}

// Oldest first.
std::vector<uint64_t> NamesOf(const BackwardChecks& checks) {
  std::vector<uint64_t> names;
  for (const TxnId id : checks.names()) names.push_back(id.value);
  std::ranges::reverse(names);
  return names;
}

std::string Refusal(const LogBuilder& log, const RestartPoint& point = {}, bool cut = false) {
  std::string what;
  EXPECT_EQ(Caught([&] { Passes({log}, point, cut); }, what), ExitStatus::kCorrupt);
  return what.substr(what.find(": ") + 2);
}

TEST(BackwardPass, CommitsOfOneLogAllCount) {
  LogBuilder log = Log();
  AppendTxn(log, 1, {0}).Void();
  AppendTxn(log, 2, {40}).Change({.txn_id = 3, .flags = format::kChangeFirst}).Abort(3).Pad();
  const Passes passes({log});
  EXPECT_EQ(NamesOf(passes[0]), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(passes[0].winners(), 2u);
  EXPECT_EQ(passes[0].losers(), 0u);
}

TEST(BackwardPass, ACommitWhoseVectorIsNotCoveredDoesNotCount) {
  // The log that the other one depends on is read first, or last.
  for (const uint32_t one : {0u, 1u}) {
    const uint32_t other = 1 - one;
    std::vector<LogBuilder> logs = {Log(0, 2), Log(1, 2)};
    const auto on_other = [&](uint64_t lsn) {
      LogBuilder::Elements lv(2);
      lv[other] = lsn;
      return lv;
    };
    AppendTxn(logs[other], 9);
    const uint64_t end = logs[other].End();
    AppendTxn(logs[one], 1, on_other(end));
    AppendTxn(logs[one], 2, on_other(end + 8));
    AppendTxn(logs[one], 3, on_other(0));
    const Passes passes(logs);
    EXPECT_EQ(NamesOf(passes[one]), (std::vector<uint64_t>{1, 3}));
    EXPECT_EQ(passes[one].losers(), 1u);
    EXPECT_EQ(passes[other].winners(), 1u);
  }
}

TEST(BackwardPass, ElementsThatAnAnchorCoversAreNotCompared) {
  LogBuilder one = Log(0, 2), two = Log(1, 2);
  AppendTxn(two, 9);
  const uint64_t end = two.End();
  AppendTxn(two, 8);
  AppendTxn(one.Anchor({0, end}), 1, {0, end});
  AppendTxn(one, 2, {0, two.End()});
  two.Cut(end);
  const Passes passes({one, two});
  EXPECT_EQ(NamesOf(passes[0]), (std::vector<uint64_t>{1}));
}

TEST(BackwardPass, ACommitThatMissesSeveralLogsIsOneLoser) {
  LogBuilder one = Log(0, 3);
  AppendTxn(one, 1, {0, 8, 8});
  AppendTxn(one, 2, {0, 0, 8});
  const Passes passes({one, Log(1, 3), Log(2, 3)});
  EXPECT_EQ(passes[0].losers(), 2u);
  EXPECT_EQ(passes[0].winners(), 0u);
}

// The anchor shows that all logs were durable up to END, whatever they have lost since. What has its place above BEGIN
// may depend on what lies behind the END of another log.
TEST(BackwardPass, AnEndBelowTheCheckpointsBeginThatDoesNotCountIsRefused) {
  for (const bool below : {true, false}) {
    LogBuilder one = Log(0, 2);
    one.Uncompressed();
    const uint64_t lost = 1 << 20;
    if (below) AppendTxn(one, 1, {0, lost});
    one.CheckpointBegin(1);
    if (!below) AppendTxn(one, 1, {0, lost});
    one.CheckpointEnd(1);
    LogBuilder other = Log(1, 2).CheckpointBegin(1).CheckpointEnd(1);
    const std::vector<RestartPoint> points = {{1, Lsn(one.Start(below ? 2 : 0)), Lsn(one.Start(3)), Lsn(0)},
                                              {1, Lsn(0), Lsn(other.Start(1)), Lsn(0)}};
    std::string what;
    const ExitStatus status = Caught([&] { Passes({one, other}, points); }, what);
    EXPECT_EQ(status, below ? ExitStatus::kCorrupt : ExitStatus::kOk) << what;
    EXPECT_EQ(what.find("depends on what a log has lost") != std::string::npos, below) << what;
  }
}

TEST(BackwardPass, FindsTheRecordsOfItsCheckpoint) {
  LogBuilder log = Log();
  log.CheckpointBegin(1).CheckpointEnd(1).CheckpointBegin(2).Void().CheckpointEnd(2).CheckpointBegin(3);
  const auto refusal = [&](uint32_t number, size_t begin, size_t end) {
    return Refusal(log, {number, Lsn(log.Start(begin)), Lsn(log.Start(end)), Lsn(0)});
  };
  EXPECT_EQ(Passes({log}, {2, Lsn(log.Start(2)), Lsn(log.Start(4)), Lsn(0)})[0].winners(), 0u);
  const char* const none = "no checkpoint begins or ends here, as the run's anchor says";
  EXPECT_EQ(refusal(3, 5, 5), none);
  EXPECT_EQ(refusal(4, 5, 5), none);
  EXPECT_EQ(refusal(1, 2, 1), "checkpoint that began elsewhere, according to the anchor");
  EXPECT_EQ(refusal(1, 0, 3), "checkpoint that ended elsewhere, according to the anchor");
}

TEST(BackwardPass, ACheckpointMayFailAndLeaveNoEnd) {
  LogBuilder log = Log();
  log.CheckpointBegin(1).Change({.txn_id = 1, .number = 1, .flags = format::kChangeFirst}).CheckpointBegin(2);
  log.Change({.txn_id = 1, .number = 1}).Change({.txn_id = 1, .number = 2}).CheckpointEnd(2, {1});
  EXPECT_EQ(Passes({log}, {2, Lsn(log.Start(2)), Lsn(log.Start(5)), Lsn(0)})[0].winners(), 0u);
}

TEST(BackwardPass, CheckpointsOutOfOrderAreRefused) {
  EXPECT_EQ(Refusal(Log().CheckpointBegin(1).CheckpointBegin(1)), "checkpoint that began before");
  EXPECT_EQ(Refusal(Log().CheckpointBegin(2).CheckpointBegin(1)), "checkpoint that began before");
  EXPECT_EQ(Refusal(Log().CheckpointEnd(1)), "end of a checkpoint that is not under way");
  EXPECT_EQ(Refusal(Log().CheckpointBegin(1).CheckpointEnd(1).CheckpointEnd(1)),
            "end of a checkpoint that is not under way");
  EXPECT_EQ(Refusal(Log().CheckpointBegin(1).CheckpointBegin(2).CheckpointEnd(1)),
            "end of a checkpoint that is not under way");
}

TEST(BackwardPass, ChangesOfOtherCheckpointsThanTheOneAroundThemAreRefused) {
  EXPECT_EQ(Refusal(Log().Change({.txn_id = 1, .number = 1, .flags = format::kChangeFirst}).CheckpointBegin(1)),
            "change of a checkpoint that has not begun");
  EXPECT_EQ(Refusal(Log().CheckpointBegin(1).CheckpointBegin(2).Change({.txn_id = 1, .flags = format::kChangeFirst})),
            "change that a later checkpoint should have reached");
}

TEST(BackwardPass, ADependencyOnItsOwnFutureIsRefused) {
  LogBuilder log = Log();
  AppendTxn(log.Uncompressed(), 1, {0});
  log.Change({.txn_id = 2, .flags = format::kChangeFirst});
  log.Commit(2, {log.End() + 8});
  EXPECT_EQ(Refusal(log), "transaction that depends on its own log's future");
}

TEST(BackwardPass, TransactionsOfOtherSchemesAreRefused) {
  EXPECT_EQ(Refusal(Log().Data(2, {})), "transaction of another scheme in a differential log");
  EXPECT_EQ(Refusal(Log().Command(2, 0)), "transaction of another scheme in a differential log");
}

TEST(BackwardPass, AttemptsWithoutABeginningOrWithTwoAreRefused) {
  const BuiltChange first{.txn_id = 1, .flags = format::kChangeFirst}, further{.txn_id = 1};
  const BuiltChange undo{.txn_id = 1, .flags = format::kChangeCompensation};
  EXPECT_EQ(Refusal(Log().Change(further)), "change of a transaction that has not begun");
  EXPECT_EQ(Refusal(Log().Change(first).Change(first)), "transaction that begins twice");
  EXPECT_EQ(Refusal(Log().Change(first).Abort(1).Change(further)), "change of a transaction that has not begun");
  EXPECT_EQ(Refusal(Log().Commit(1)), "end of a transaction that has changed nothing");
  EXPECT_EQ(Refusal(Log().Change(first).Abort(1).Abort(1)), "end of a transaction that has changed nothing");
  EXPECT_EQ(Refusal(Log().Change(first).Change(undo).Commit(1)), "COMMIT of a transaction that was taken back");
  const Passes retried({Log().Change(first).Change(further).Change(undo).Abort(1).Change(first).Commit(1)});
  EXPECT_EQ(NamesOf(retried[0]), (std::vector<uint64_t>{1}));
}

constexpr RestartPoint kTwoPass{0, Lsn(), Lsn(), Lsn(), {}, DiffMethod::kDl2p};
constexpr RestartPoint kPhysical{0, Lsn(), Lsn(), Lsn(), {}, DiffMethod::kPl2p};

TEST(BackwardPass, WhatAnAbortLeavesOfItsChangesIsRefusedWhereAllIsCompensated) {
  const BuiltChange first{.txn_id = 1, .flags = format::kChangeFirst}, further{.txn_id = 1};
  const BuiltChange undo{.txn_id = 1, .flags = format::kChangeCompensation};
  const char* const refusal = "ABORT of a transaction whose changes were not all taken back";
  EXPECT_EQ(Refusal(Log().Change(first).Abort(1), kTwoPass), refusal);
  EXPECT_EQ(Refusal(Log().Change(first).Change(further).Change(undo).Abort(1), kTwoPass), refusal);
  EXPECT_EQ(Refusal(Log().Change(first).Change(undo).Change(undo)), "compensation of nothing");
  EXPECT_EQ(Refusal(Log().Change(first).Change(undo).Change(undo).Change(further).Change(further).Abort(1)),
            "compensation of nothing");
  EXPECT_EQ(Passes({Log().Change(first).Change(undo).Abort(1)}, kTwoPass)[0].winners(), 0u);
}

TEST(BackwardPass, RecordsOfAnotherMethodThanTheAnchorsAreRefused) {
  const BuiltChange xor_change{.txn_id = 1, .flags = format::kChangeFirst};
  const BuiltChange images{.txn_id = 1, .flags = format::kChangeFirst | format::kChangeImages};
  const char* const refusal = "record of another method than the anchor's";
  EXPECT_EQ(Refusal(Log().Change(images)), refusal);
  EXPECT_EQ(Refusal(Log().Change(images), kTwoPass), refusal);
  EXPECT_EQ(Refusal(Log().Change(xor_change), kPhysical), refusal);
  EXPECT_EQ(Refusal(Log().Change(xor_change).Commit(1, {}, 1)), refusal);
  EXPECT_EQ(Refusal(Log().Change(images).Commit(1), kPhysical), refusal);
  EXPECT_EQ(Refusal(Log().Change(images).Abort(1), kPhysical), refusal);
  EXPECT_EQ(Passes({Log().Change(images).Commit(1, {}, 1)}, kPhysical)[0].winners(), 1u);
}

TEST(BackwardPass, AnAbortWhoseVectorIsNotCoveredDoesNotCountAndIsNoLostTransaction) {
  constexpr uint16_t kImages = format::kChangeImages;
  LogBuilder log = Log(0, 2);
  for (const uint64_t needed : {8, 0}) {
    log.Change({.txn_id = 1, .flags = format::kChangeFirst | kImages});
    log.Change({.txn_id = 1, .flags = format::kChangeCompensation | kImages}).Abort(1, {0, needed}, 1);
  }
  const Passes passes({log, Log(1, 2)}, kPhysical);
  const auto covered = [&](uint64_t needed) {
    LogBuilder end = Log(0, 2);
    end.Uncompressed().Abort(1, {0, needed}, 1);
    format::RecordHeader header;
    std::memcpy(&header, end.Stream().data(), sizeof header);
    const std::vector<Lsn> ends = {Lsn(log.End()), Lsn(0)};
    return IsCovered({header, std::span(end.Stream()).subspan(sizeof header), 2}, 0, ends);
  };
  EXPECT_FALSE(covered(8));
  EXPECT_TRUE(covered(0));
  EXPECT_EQ(passes[0].winners(), 0u);
  EXPECT_EQ(passes[0].losers(), 0u);
}

TEST(BackwardPass, ChangesThatFitNoTableAreRefused) {
  EXPECT_EQ(Refusal(Log().Change({.txn_id = 1, .table = 1, .flags = format::kChangeFirst})),
            "change of an unknown table");
  EXPECT_EQ(Refusal(Log().Change({.txn_id = 1, .slot = 4, .flags = format::kChangeFirst})),
            "slot beyond the end of its page");
  EXPECT_EQ(Refusal(Log().Change({.txn_id = 1, .image = "01234567", .flags = format::kChangeFirst})),
            "image of another length than its table's tuples");
}

TEST(BackwardPass, WhatTheAnchorPromisesOfTransactionsIsChecked) {
  const BuiltChange first{.txn_id = TxnId::Make(WorkerId(1), 7).value, .flags = format::kChangeFirst};
  LogBuilder log = Log();
  log.Change(first).CheckpointBegin(1).CheckpointEnd(1).Abort(first.txn_id);
  RestartPoint point{1, Lsn(log.Start(1)), Lsn(log.Start(2)), Lsn(0)};
  EXPECT_EQ(Refusal(log, point), "checkpoint's end that does not list a transaction with changes in the backup");
  LogBuilder listed = Log();
  listed.Change(first).CheckpointBegin(1).CheckpointEnd(1, {3, first.txn_id, 4}).Abort(first.txn_id);
  EXPECT_EQ(Passes({listed}, point)[0].winners(), 0u);
  point.needed = Lsn(8);
  EXPECT_EQ(Refusal(listed, point), "change that is needed, and not according to the anchor");
  point.needed = Lsn(0);
  const std::vector<uint64_t> ended_below = {0, 8};
  point.ended_below = ended_below;
  EXPECT_EQ(Refusal(listed, point), "record of a transaction that had ended before the anchor's checkpoint began");
}

TEST(BackwardPass, ARunEndThatCountsOtherTransactionsIsRefused) {
  LogBuilder log = Log();
  AppendTxn(log, 1);
  AppendTxn(log, 2).RunEnd();
  EXPECT_EQ(Passes({log})[0].winners(), 2u);
  LogBuilder wrong = Log();
  AppendTxn(wrong, 1).RunEnd({}, 2);
  EXPECT_EQ(Refusal(wrong), "RUN_END counts 2 transactions, the log holds 1");
}

// ---- Logs that were truncated below what is needed ----------------------------------------------------------------

uint64_t Id(uint32_t worker, uint64_t sequence) { return TxnId::Make(WorkerId(worker), sequence).value; }

// Two workers, which were at their transactions 5 and 9 when checkpoint 3 began.
const std::vector<uint64_t> kEnded = {5, 9};

// Of the log: its n-th record is the first that is needed; BEGIN(3) and END(3) are its last two.
RestartPoint PointAt(const LogBuilder& log, size_t needed) {
  const size_t count = log.Starts().size();
  return {3, Lsn(log.Start(count - 2)), Lsn(log.Start(count - 1)), Lsn(log.Start(needed)), kEnded};
}
LogBuilder WithCheckpoint(LogBuilder log) {
  log.CheckpointBegin(3).CheckpointEnd(3);
  return log;
}
BuiltChange Change(uint64_t id, uint32_t number, uint16_t flags = 0) {
  return {.txn_id = id, .number = number, .flags = flags};
}
// What is refused of these records behind others that were truncated, or an empty text.
std::string RefusalBehindACut(const std::function<void(LogBuilder&)>& append) {
  LogBuilder log = Log();
  log.CheckpointBegin(1).CheckpointEnd(1).CheckpointBegin(2).CheckpointEnd(2);
  append(log);
  log = WithCheckpoint(log);
  std::string what;
  const ExitStatus status = Caught([&] { Passes({log}, PointAt(log, 4), /*cut=*/true); }, what);
  return status == ExitStatus::kOk ? "" : what.substr(what.find(": ") + 2);
}

TEST(BackwardPassOfACutLog, BeginsWhereTheAnchorSays) {
  LogBuilder log = Log();
  for (int i = 0; i < 300; ++i) AppendTxn(log, Id(0, 1));
  log.Change(Change(Id(0, 4), 2, format::kChangeFirst)).Commit(Id(0, 4));
  log.At(50) ^= std::byte{1};  // what was truncated is not looked at
  log = WithCheckpoint(log);
  const Passes passes({log}, PointAt(log, 600), /*cut=*/true);
  EXPECT_EQ(NamesOf(passes[0]), (std::vector<uint64_t>{Id(0, 4)}));
  EXPECT_EQ(passes.pass(0).Starts().front(), Lsn(log.Start(600)));
}

TEST(BackwardPassOfACutLog, AttemptsWithoutAFirstChangeHadEnded) {
  const auto change = [](uint64_t id) { return Change(id, 2); };
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Change(change(Id(0, 4))).Commit(Id(0, 4)); }), "");
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Commit(Id(0, 4)).Abort(Id(1, 9)); }), "");
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) {
              log.Abort(Id(1, 9)).Change(Change(Id(1, 9), 2, format::kChangeFirst)).Commit(Id(1, 9));
            }),
            "")
      << "it is tried again under its id";
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Change(change(Id(0, 4))); }),
            "checkpoint's end that does not list a transaction with changes in the backup");
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Commit(Id(0, 5)); }),
            "COMMIT of a transaction that is needed, and not according to the anchor");
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Abort(Id(0, 6)); }),
            "end of a transaction that has changed nothing");
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Change(change(Id(2, 1))).Commit(Id(2, 1)); }),
            "change of a transaction that has not begun")
      << "there is no such worker";
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) { log.Commit(Id(0, 3)).Commit(Id(0, 4)); }),
            "end of a transaction that has changed nothing")
      << "one attempt of a worker at most is cut";
  EXPECT_EQ(RefusalBehindACut([&](LogBuilder& log) {
              log.Change(Change(Id(0, 4), 2, format::kChangeCompensation)).Commit(Id(0, 4));
            }),
            "COMMIT of a transaction that was taken back");
}

TEST(BackwardPassOfACutLog, AnAbortHasTakenBackWhatIsLeftOfItsChanges) {
  const BuiltChange change = Change(Id(0, 4), 2), undo = Change(Id(0, 4), 2, format::kChangeCompensation);
  for (const bool all : {true, false}) {
    LogBuilder log = Log();
    log.CheckpointBegin(1).CheckpointEnd(1).CheckpointBegin(2).CheckpointEnd(2).Change(change).Change(undo);
    if (all) log.Change(undo);
    if (!all) log.Change(change);
    log = WithCheckpoint(log.Abort(Id(0, 4)));
    RestartPoint point = PointAt(log, 4);
    point.method = DiffMethod::kDl2p;
    std::string what;
    EXPECT_EQ(Caught([&] { Passes({log}, point, /*cut=*/true); }, what), all ? ExitStatus::kOk : ExitStatus::kCorrupt);
    EXPECT_EQ(what.find("not all taken back") != std::string::npos, !all) << what;
  }
}

TEST(BackwardPass, AnAnchorThatShowsMoreOfAnotherLogIsRefused) {
  for (const bool more : {false, true}) {
    LogBuilder one = Log(0, 2), two = Log(1, 2);
    AppendTxn(two, 9);
    AppendTxn(one.Anchor({0, two.End() + (more ? 8 : 0)}), 1);
    std::string what;
    EXPECT_EQ(Caught([&] { Passes({one, two}); }, what), more ? ExitStatus::kCorrupt : ExitStatus::kOk);
    EXPECT_EQ(what.find("anchor that shows log 1 to have been durable") != std::string::npos, more) << what;
  }
}

TEST(BackwardPassOfACutLog, NothingIsCutAboveBegin) {
  LogBuilder log = Log();
  log.Void().CheckpointBegin(3).CheckpointEnd(3).Abort(Id(0, 5));
  const RestartPoint point{3, Lsn(log.Start(1)), Lsn(log.Start(2)), Lsn(log.Start(1)), kEnded};
  EXPECT_EQ(Refusal(log, point, true), "end of a transaction that has changed nothing");
}

TEST(BackwardPassOfACutLog, NumbersAreThoseOfTheCheckpointThatTheNextOneShows) {
  const auto change = [](uint32_t number) { return Change(Id(0, 4), number, format::kChangeFirst); };
  const auto refusal = [&](uint32_t number) {
    return RefusalBehindACut([&](LogBuilder& log) { log.Change(change(number)).Commit(Id(0, 4)); });
  };
  EXPECT_EQ(refusal(3), "change of a checkpoint that has not begun");
  EXPECT_EQ(refusal(2), "");
  EXPECT_EQ(refusal(1), "");
  EXPECT_EQ(refusal(0), "change that a later checkpoint should have reached");
}

// Checkpoint 2 began below what is needed, or behind it; or it ended there.
TEST(BackwardPassOfACutLog, AnEarlierCheckpointMayBeginOrEndInIt) {
  const auto change = [](uint32_t number) { return Change(Id(0, 4), number, format::kChangeFirst); };
  const auto refusal = [&](uint32_t number, bool begins) {
    LogBuilder log = Log();
    log.CheckpointBegin(1).CheckpointEnd(1);
    if (!begins) log.CheckpointBegin(2);
    const size_t needed = log.Starts().size();
    log.Change(change(number)).Commit(Id(0, 4));
    if (begins) log.CheckpointBegin(2);
    log = WithCheckpoint(log.CheckpointEnd(2));
    std::string what;
    const ExitStatus status = Caught([&] { Passes({log}, PointAt(log, needed), true); }, what);
    return status == ExitStatus::kOk ? "" : what.substr(what.find(": ") + 2);
  };
  EXPECT_EQ(refusal(2, true), "change of a checkpoint that has not begun");
  EXPECT_EQ(refusal(1, true), "");
  EXPECT_EQ(refusal(0, true), "");
  EXPECT_EQ(refusal(2, false), "");
  EXPECT_EQ(refusal(1, false), "");
  EXPECT_EQ(refusal(0, false), "change that a later checkpoint should have reached");
  EXPECT_EQ(RefusalBehindACut([](LogBuilder& log) { log.CheckpointBegin(4); }),
            "checkpoint that began before");
  EXPECT_EQ(RefusalBehindACut([](LogBuilder& log) { log.CheckpointEnd(3); }),
            "checkpoint that ended elsewhere, according to the anchor");
}

}  // namespace
}  // namespace dbx::recovery_test
