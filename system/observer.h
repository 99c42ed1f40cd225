// What the tests watch of a running engine: the accesses of each transaction, and its acknowledgement. Nothing, here.
//
// The simulation puts a header of the same name before this one (tests/simulation/seam/system/observer.h).
#pragma once

#include "base/types.h"
#include "benchmarks/workload.h"

namespace dbx::observer {

// What a stored procedure is given to run `call` on.
template <class Txn>
Txn& ContextOf(Txn& txn, const Call&) {
  return txn;
}

// Called by the worker, for readers too.
inline void Acknowledged(TxnId) {}

}  // namespace dbx::observer
