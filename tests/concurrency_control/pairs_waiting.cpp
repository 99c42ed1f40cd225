// The pairs of WAIT_DIE and DL_DETECT.
#include "tests/concurrency_control/pair_of.h"

namespace dbx::testing {

std::vector<TestPair> WaitingPairs() {
  return {PairOf<WaitDieRows, NoLog>(),
          PairOf<WaitDieTable, NoLog>(),
          PairOf<DlDetectRows, NoLog>(),
          PairOf<DlDetectTable, NoLog>(),
          PairOf<WaitDieRows, HeapStampsLog>(),
          PairOf<DlDetectRows, HeapStampsLog>(),
          PairOf<DlDetectTable, HeapStampsLog>(),
          PairOf<WaitDieRows, TaurusLog<CommandPayload>>(),
          PairOf<WaitDieTable, TaurusLog<CommandPayload>>(),
          PairOf<DlDetectRows, TaurusLog<CommandPayload>>(),
          PairOf<DlDetectTable, TaurusLog<CommandPayload>>(),
          PairOf<WaitDieRows, TaurusLog<DataPayload>>(),
          PairOf<DlDetectRows, TaurusLog<DataPayload>>(),
          PairOf<DlDetectTable, TaurusLog<DataPayload>>(),
          PairOf<WaitDieRows, SerialLog<CommandPayload>>(),
          PairOf<DlDetectRows, SerialLog<CommandPayload>>(),
          PairOf<WaitDieTable, PloverLog<DataPayload>>(),
          PairOf<DlDetectTable, PloverLog<DataPayload>>(),
          PairOf<WaitDieRows, DifferentialLog<DataPayload>>(),
          PairOf<DlDetectTable, DifferentialLog<DataPayload>>()};
}

}  // namespace dbx::testing
