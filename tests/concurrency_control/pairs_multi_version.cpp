// The pairs of HEKATON, at both isolation levels.
#include "tests/concurrency_control/pair_of.h"

namespace dbx::testing {

std::vector<TestPair> MultiVersionPairs() {
  return {PairOf<Hekaton, NoLog>(),
          PairOf<HekatonSnapshot, NoLog>(Isolation::kSnapshot),
          PairOf<Hekaton, HeapOnlyLog>(),
          PairOf<HekatonSnapshot, HeapOnlyLog>(Isolation::kSnapshot),
          PairOf<Hekaton, TaurusLog<VersionedCommandPayload>>(),
          PairOf<HekatonSnapshot, TaurusLog<VersionedCommandPayload>>(Isolation::kSnapshot),
          PairOf<Hekaton, TaurusLog<DataPayload>>(),
          PairOf<HekatonSnapshot, TaurusLog<DataPayload>>(Isolation::kSnapshot),
          PairOf<Hekaton, SerialLog<VersionedCommandPayload>>(),
          PairOf<Hekaton, SerialLog<DataPayload>>(),
          PairOf<Hekaton, PloverLog<DataPayload>>(),
          PairOf<Hekaton, DifferentialLog<DataPayload>>(),
          PairOf<HekatonSnapshot, DifferentialLog<DataPayload>>(Isolation::kSnapshot)};
}

}  // namespace dbx::testing
