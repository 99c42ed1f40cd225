// The pairs of NO_WAIT, which never waits.
#include "tests/concurrency_control/pair_of.h"

namespace dbx::testing {

std::vector<TestPair> NoWaitPairs() {
  return {PairOf<NoWaitRows, NoLog>(),
          PairOf<NoWaitTable, NoLog>(),
          PairOf<NoWaitRows, HeapStampsLog>(),
          PairOf<NoWaitTable, HeapStampsLog>(),
          PairOf<NoWaitRows, TaurusLog<CommandPayload>>(),
          PairOf<NoWaitTable, TaurusLog<CommandPayload>>(),
          PairOf<NoWaitRows, TaurusLog<DataPayload>>(),
          PairOf<NoWaitTable, TaurusLog<DataPayload>>(),
          PairOf<NoWaitRows, SerialLog<CommandPayload>>(),
          PairOf<NoWaitTable, SerialLog<CommandPayload>>(),
          PairOf<NoWaitRows, PloverLog<DataPayload>>(),
          PairOf<NoWaitTable, PloverLog<DataPayload>>(),
          PairOf<NoWaitRows, DifferentialLog<DataPayload>>(),
          PairOf<NoWaitTable, DifferentialLog<DataPayload>>()};
}

}  // namespace dbx::testing
