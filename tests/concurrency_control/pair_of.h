// A TestPair of two types, for the files that instantiate them.
#pragma once

#include "tests/concurrency_control/harness.h"
#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {

template <template <class> class Cc, class Log>
TestPair PairOf(Isolation isolation = Isolation::kSerializable) {
  const CcTraits& cc = Cc<Log>::kTraits;
  const LogTraits& log = Log::kTraits;
  std::string name(cc.name);
  if (cc.lock_table) name += "_TABLE";
  if (isolation == Isolation::kSnapshot) name += "_SNAPSHOT";
  if (log.version_heap) name += "_HEAP";
  if (log.logs)
    name += "_" + std::string(log.name.substr(4)) + (log.payload == PayloadKind::kData ? "_DATA" : "_COMMAND");
  return {name, cc, log, isolation, [](const EngineOptions& options) -> std::unique_ptr<TestEngine> {
            return std::make_unique<Harness<Cc<Log>, Log>>(options);
          }};
}

// Those of the other files.
std::vector<TestPair> NoWaitPairs();
std::vector<TestPair> WaitingPairs();
std::vector<TestPair> OptimisticPairs();
std::vector<TestPair> MultiVersionPairs();

}  // namespace dbx::testing
