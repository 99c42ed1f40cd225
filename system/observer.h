// What the tests watch of a running engine: the accesses of each transaction, its acknowledgement, and what a recovery
// makes of it. Nothing, here.
//
// The simulation puts a header of the same name before this one (tests/simulation/seam/system/observer.h).
#pragma once

#include "base/types.h"
#include "benchmarks/workload.h"
#include "storage/database.h"

namespace dbx::observer {

// What a stored procedure is given to run `call` on.
template <class Txn>
Txn& ContextOf(Txn& txn, const Call&) {
  return txn;
}

// Called by the worker, for readers too.
inline void Acknowledged(TxnId) {}

// Called once a recovery has replayed its logs.
inline void Recovered(const Database&) {}

}  // namespace dbx::observer
