// Algorithms 2, 3 and 4 of the Taurus paper (PVLDB 14(2), 2021), step by step as printed: each test searches for the
// shortest run in which the printed algorithm loses, hangs or misorders a transaction, prints it (docs/errata.md quotes
// it), and shows that the corrected rule has none. Algorithm 6 is in occ_model_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"

namespace dbx::models {
namespace {

// ---- Algorithm 1, lines 22 to 27, and Algorithm 2: one log, two workers, of which the second never writes ----

struct FlushModel {
  enum : uint8_t { kLogLsn, kPlv, kAllocated, kFilled = kAllocated + 2, kCellCount = kFilled + 2 };
  static constexpr size_t kCells = kCellCount;
  static constexpr size_t kThreads = 3;  // two workers and the log manager
  static constexpr size_t kBufferedMax = 2;
  static constexpr uint8_t kManager = 2;
  struct Locals {
    uint8_t pc, lsn, ready, worker;
  };
  bool idle_is_explicit;  // the correction: a worker that fills nothing has allocatedLSN < filledLSN from the start

  void Initial(Machine<FlushModel>& machine) const {
    if (!idle_is_explicit) return;  // "initially, all elements are 0", both vectors
    for (size_t j = 0; j < 2; ++j) machine.memory[kFilled + j] = 1;
  }
  bool IsEnd(const Machine<FlushModel>& machine) const { return machine.memory[kPlv] == 2; }
  static std::string CellName(size_t cell) {
    static const char* const kNames[] = {"logLSN",          "PLV",          "allocatedLSN[0]",
                                         "allocatedLSN[1]", "filledLSN[0]", "filledLSN[1]"};
    return kNames[cell];
  }
  static std::string ThreadName(size_t thread) {
    return thread == kManager ? "the log manager" : "worker " + std::to_string(thread);
  }

  void Step(Core<FlushModel>& core) const {
    if (core.thread() == kManager) return StepManager(core);
    if (core.thread() == 1) return core.Block();
    Locals& my = core.locals();
    switch (my.pc++) {
      case 0:
        my.lsn = core.Load(kLogLsn);
        return;
      case 1:
        return core.Store(kAllocated, my.lsn, Order::kRelease);
      case 2:
        my.lsn = core.FetchAdd(kLogLsn, 2);  // the record is 2 long
        return;
      case 3:
        return core.Store(kFilled, static_cast<uint8_t>(my.lsn + 2), Order::kRelease);
      default:
        core.Block();
    }
  }

  void StepManager(Core<FlushModel>& core) const {
    Locals& my = core.locals();
    if (my.pc == 0) {  // line 1
      my.ready = core.Load(kLogLsn);
      my.pc = 1;
    } else if (my.pc == 1) {  // lines 2 to 4; both are "fetched together atomically"
      const uint8_t allocated = core.Load(kAllocated + my.worker), filled = core.Load(kFilled + my.worker);
      if (allocated >= filled) my.ready = std::min(my.ready, allocated);
      if (++my.worker == 2) my.pc = 2;
    } else {  // lines 5 and 6
      core.Store(kPlv, my.ready, Order::kRelease);
      my.pc = my.worker = my.ready = 0;
    }
  }
};

TEST(PrintedTaurus, Algorithm2NeverFlushesWhereOneWorkerWritesNothing) {
  ExpectFound(FlushModel{false}, "no end can be reached any more");
  ExpectNone("an explicit idle value", FlushModel{true});
}

// ---- Algorithm 4: T1 and T2 in log A with two workers; T3 in log B depends on T1 -------------------------------

struct ReplayedModel {
  enum : uint8_t { kRlvA, kPoolA, kRowOfT1, kRowOfT2, kCellCount };  // the pool: how many have been dequeued
  static constexpr size_t kCells = kCellCount;
  static constexpr size_t kThreads = 3;
  static constexpr size_t kBufferedMax = 2;
  static constexpr uint8_t kWorkerOfB = 2;
  enum Pc : uint8_t { kFetch, kRecover, kRaise, kDone };
  struct Locals {
    uint8_t pc, txn;  // txn: in Recover, by its LSN; 0: none
  };
  bool in_flight_counts;  // the correction: RLV stays below transactions that are still in Recover

  void Initial(Machine<ReplayedModel>&) const {}
  bool IsEnd(const Machine<ReplayedModel>& machine) const {
    for (const Locals& locals : machine.locals) {
      if (locals.pc != kDone) return false;
    }
    return true;
  }
  static std::string CellName(size_t cell) {
    static const char* const kNames[] = {"RLV[A]", "dequeued from pool A", "T1's row", "T2's row"};
    return kNames[cell];
  }
  static std::string ThreadName(size_t thread) {
    return thread == kWorkerOfB ? "the worker of log B" : "worker " + std::to_string(thread) + " of log A";
  }

  void Step(Core<ReplayedModel>& core) const {
    Locals& my = core.locals();
    if (my.pc == kDone) return core.Block();
    if (core.thread() == kWorkerOfB) return StepDependent(core);
    if (my.pc == kFetch) {  // line 2
      my.txn = static_cast<uint8_t>(core.FetchAdd(kPoolA, 1) + 1);
      my.pc = my.txn > 2 ? kDone : kRecover;
      if (my.txn > 2) my.txn = 0;
    } else if (my.pc == kRecover) {  // line 3
      core.Store(kRowOfT1 + my.txn - 1, 1, Order::kSeqCst);
      my.pc = kRaise;
    } else {  // lines 4 to 7, the atomic section
      const uint8_t dequeued = core.Ghost(kPoolA);
      uint8_t replayed = dequeued >= 2 ? 2 : dequeued;  // pool.maxLSN, or pool.head.LSN - 1
      my.txn = 0;
      my.pc = kFetch;
      for (size_t other = 0; other < 2 && in_flight_counts; ++other) {
        const uint8_t txn = core.LocalsOf(other).txn;
        if (txn != 0) replayed = std::min(replayed, static_cast<uint8_t>(txn - 1));
      }
      core.Store(kRlvA, std::max(replayed, core.Ghost(kRlvA)), Order::kSeqCst);
    }
  }

  void StepDependent(Core<ReplayedModel>& core) const {
    if (core.Load(kRlvA) < 1) return core.Block();  // T3.LV <= RLV, where T3.LV[A] = 1
    core.locals().pc = kDone;
    if (core.Ghost(kRowOfT1) == 0) core.Fail("T3 is replayed before T1, on which it depends");
  }
};

TEST(PrintedTaurus, Algorithm4PassesOverATransactionThatIsStillBeingReplayed) {
  ExpectFound(ReplayedModel{false}, "T3 is replayed before T1, on which it depends");
  ExpectNone("transactions in flight hold RLV back", ReplayedModel{true});
}

// ---- Algorithm 3: which transactions are recovered ------------------------------------------------------------

// A run of up to four transactions in commit order. Each is one record of one byte in one log, and may have read what
// one transaction before it wrote. At the crash each log has a durable prefix, and the file may be one byte longer: a
// record that is torn.
struct CrashedRun {
  struct Txn {
    int log, reads_from;  // reads_from: -1, or the number of an earlier transaction
  };
  std::vector<Txn> txns;
  std::array<int, 3> durable{};    // records
  std::array<int, 3> file_size{};  // with the torn one

  int LsnOf(size_t txn) const {
    int lsn = 0;
    for (size_t i = 0; i <= txn; ++i) lsn += txns[i].log == txns[txn].log;
    return lsn;
  }
  // T.LV, its own LSN included.
  std::array<int, 3> VectorOf(size_t txn) const {
    std::array<int, 3> lv{};
    if (txns[txn].reads_from >= 0) lv = VectorOf(static_cast<size_t>(txns[txn].reads_from));
    lv[static_cast<size_t>(txns[txn].log)] = LsnOf(txn);
    return lv;
  }
};

bool Covers(const std::array<int, 3>& above, const std::array<int, 3>& lv) {
  return lv[0] <= above[0] && lv[1] <= above[1] && lv[2] <= above[2];
}
bool IsDurable(const CrashedRun& run, size_t txn) {
  return run.LsnOf(txn) <= run.durable[static_cast<size_t>(run.txns[txn].log)];
}

// Algorithm 1, line 20: PLV >= T.LV, and all with smaller LSNs in its log have committed.
std::vector<bool> Acknowledged(const CrashedRun& run) {
  std::vector<bool> acknowledged(run.txns.size());
  for (size_t t = 0; t < run.txns.size(); ++t) {
    acknowledged[t] = Covers(run.durable, run.VectorOf(t));
    for (size_t before = 0; before < t; ++before) {
      if (run.txns[before].log == run.txns[t].log && !acknowledged[before]) acknowledged[t] = false;
    }
  }
  return acknowledged;
}

enum class Membership { kAsPrinted, kPerTransaction };

// kAsPrinted: a log's transactions up to the first with an LV beyond ELV, where ELV is the size of the file.
// kPerTransaction: each with an LV within ELV, where ELV is the end of the valid records.
std::vector<bool> Recovered(const CrashedRun& run, Membership rule, bool elv_is_file_size) {
  std::vector<bool> recovered(run.txns.size());
  std::array<bool, 3> ended{};
  for (size_t t = 0; t < run.txns.size(); ++t) {
    const auto log = static_cast<size_t>(run.txns[t].log);
    const bool fits = Covers(elv_is_file_size ? run.file_size : run.durable, run.VectorOf(t));
    if (rule == Membership::kAsPrinted && !fits) ended[log] = true;
    recovered[t] = IsDurable(run, t) && fits && !ended[log];
  }
  return recovered;
}

std::string Describe(const CrashedRun& run) {
  std::string text;
  for (size_t t = 0; t < run.txns.size(); ++t) {
    text += "  T" + std::to_string(t + 1) + " in log " + "ABC"[run.txns[t].log];
    if (run.txns[t].reads_from >= 0) text += ", reads from T" + std::to_string(run.txns[t].reads_from + 1);
    text += IsDurable(run, t) ? ": durable" : ": not durable";
    text += Acknowledged(run)[t] ? ", acknowledged\n" : "\n";
  }
  return text;
}

struct Search {
  Membership rule;
  bool elv_is_file_size;
  bool torn_tails;
  std::string fault;
  CrashedRun run;

  // Tries all runs, the short ones first; stops at the first in which the rule is wrong.
  bool Run() {
    for (size_t count = 1; count <= 4; ++count) {
      run.txns.assign(count, {0, -1});
      if (Place(0)) return true;
    }
    return false;
  }
  bool Place(size_t t) {
    if (t == run.txns.size()) return Cut(0);
    for (int log = 0; log < 3; ++log) {
      for (int from = -1; from < static_cast<int>(t); ++from) {
        run.txns[t] = {log, from};
        if (Place(t + 1)) return true;
      }
    }
    return false;
  }
  bool Cut(size_t log) {
    if (log == 3) return IsWrong();
    int records = 0;
    for (const auto& txn : run.txns) records += txn.log == static_cast<int>(log);
    for (int durable = records; durable >= 0; --durable) {
      for (int torn = 0; torn <= (torn_tails && durable < records ? 1 : 0); ++torn) {
        run.durable[log] = durable;
        run.file_size[log] = durable + torn;
        if (Cut(log + 1)) return true;
      }
    }
    return false;
  }
  bool IsWrong() {
    const std::vector<bool> acknowledged = Acknowledged(run), recovered = Recovered(run, rule, elv_is_file_size);
    fault.clear();
    for (size_t t = 0; t < run.txns.size(); ++t) {
      const int from = run.txns[t].reads_from;
      if (acknowledged[t] && !recovered[t]) fault = "is acknowledged and not recovered";
      if (recovered[t] && from >= 0 && !recovered[static_cast<size_t>(from)]) {
        fault = "is recovered without T" + std::to_string(from + 1) + ", from which it read";
      }
      if (fault.empty()) continue;
      fault = "T" + std::to_string(t + 1) + " " + fault;
      return true;
    }
    return false;
  }
};

void ExpectWrong(Search search, size_t txns) {
  ASSERT_TRUE(search.Run());
  EXPECT_EQ(search.run.txns.size(), txns);
  std::printf("%s:\n%s", search.fault.c_str(), Describe(search.run).c_str());
}

TEST(PrintedTaurus, Algorithm3LeavesOutWhatOthersDependOn) {
  ExpectWrong({Membership::kAsPrinted, false, false, {}, {}}, 4);
}
TEST(PrintedTaurus, AnElvThatIsTheFileSizeCoversATornRecord) {
  ExpectWrong({Membership::kPerTransaction, true, true, {}, {}}, 2);
}
TEST(PrintedTaurus, OneTestPerTransactionAgainstTheValidEndsIsRight) {
  EXPECT_FALSE((Search{Membership::kPerTransaction, false, true, {}, {}}.Run()));
}

}  // namespace
}  // namespace dbx::models
