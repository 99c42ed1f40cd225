// The pairs of concurrency control and log scheme that tests go over by name, each instantiated once (pairs_*.cpp).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "concurrency_control/contract.h"
#include "logging/contract.h"
#include "tests/concurrency_control/test_engine.h"

namespace dbx::testing {

struct TestPair {
  std::string name;  // NO_WAIT_TABLE_TAURUS_COMMAND
  CcTraits cc;
  LogTraits log;
  Isolation isolation;
  std::unique_ptr<TestEngine> (*make)(const EngineOptions& options);
};

using TestPairs = std::vector<const TestPair*>;
TestPairs PairsWhere(bool (*holds)(const TestPair& pair));

// Throws if no pair has that name.
std::unique_ptr<TestEngine> EngineNamed(std::string_view name, const EngineOptions& options);

// The concurrency controls without a log.
inline TestPairs ControlsWhere(auto holds) {
  TestPairs controls = PairsWhere([](const TestPair& pair) { return !pair.log.logs; });
  std::erase_if(controls, [&](const TestPair* pair) { return !holds(*pair); });
  return controls;
}

inline bool LocksRows(const TestPair& pair) { return pair.cc.reads_are_locked; }
inline bool LocksInRows(const TestPair& pair) { return LocksRows(pair) && !pair.cc.lock_table; }
inline bool WaitsForLocks(const TestPair& pair) { return LocksRows(pair) && pair.cc.name != "NO_WAIT"; }
inline bool IsSerializable(const TestPair& pair) { return pair.isolation == Isolation::kSerializable; }
inline bool ReadsSnapshots(const TestPair& pair) { return pair.isolation == Isolation::kSnapshot; }
inline bool IsTaurus(const TestPair& pair) { return pair.log.name == "LOG_TAURUS"; }
// Records depend on those whose reads they overwrite.
inline bool TracksReads(const TestPair& pair) { return IsTaurus(pair) && pair.log.tracks_reads; }

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOfPair(const ::testing::TestParamInfo<const TestPair*>& info) { return info.param->name; }
inline auto In(const TestPairs& pairs) { return ::testing::ValuesIn(pairs); }

// A test over pairs. The engine has two logs, or the one that its scheme has.
class PairTest : public ::testing::TestWithParam<const TestPair*> {
 protected:
  explicit PairTest(EngineOptions options = {}) : engine_(MakeEngine(options)), h_(*engine_) {}

  static std::unique_ptr<TestEngine> MakeEngine(EngineOptions options) {
    if (GetParam()->log.single_stream) options.logs = 1;
    return GetParam()->make(options);
  }

 private:
  const std::unique_ptr<TestEngine> engine_;

 protected:
  TestEngine& h_;
};

}  // namespace dbx::testing
