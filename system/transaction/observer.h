// Hooks by which tests observe a running engine: the accesses of each transaction, its acknowledgement, and the
// recovered database. Empty here.
//
// The simulation puts a header of the same name before this one (tests/simulation/seam/system/observer.h).
#pragma once

#include "base/types.h"
#include "benchmarks/workload.h"
#include "storage/database.h"

namespace dbx::observer {

// The context on which a stored procedure runs `call`.
template <class Txn>
Txn& ContextOf(Txn& txn, const Call&) {
  return txn;
}

// Called by the worker, for read-only transactions too.
inline void Acknowledged(TxnId) {}

// Called once a recovery has replayed its logs.
inline void Recovered(const Database&) {}

}  // namespace dbx::observer
