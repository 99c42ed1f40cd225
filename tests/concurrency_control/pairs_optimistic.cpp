// The pairs of SILO and TICTOC.
#include "tests/concurrency_control/pair_of.h"

namespace dbx::testing {

std::vector<TestPair> OptimisticPairs() {
  return {PairOf<Silo, NoLog>(),
          PairOf<TicToc, NoLog>(),
          PairOf<Silo, TaurusLog<CommandPayload>>(),
          PairOf<Silo, TaurusLog<DataPayload>>(),
          PairOf<TicToc, TaurusLog<DataPayload>>(),
          PairOf<Silo, SerialLog<CommandPayload>>(),
          PairOf<Silo, SerialLog<DataPayload>>(),
          PairOf<TicToc, SerialLog<DataPayload>>(),
          PairOf<Silo, PloverLog<DataPayload>>(),
          PairOf<TicToc, PloverLog<DataPayload>>(),
          PairOf<Silo, SiloRLog<DataPayload>>(),
          PairOf<Silo, DifferentialLog<DataPayload>>(),
          PairOf<TicToc, DifferentialLog<DataPayload>>()};
}

}  // namespace dbx::testing
