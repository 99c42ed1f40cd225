// The product's hooks; the first transaction switches the instrument on.
#pragma once

#include "base/types.h"
#include "benchmarks/workload.h"
#include "storage/database.h"
#include "tests/instruments/line_transfers/instrument.h"

namespace dbx::observer {

template <class Txn>
Txn& ContextOf(Txn& txn, const Call&) {
  lines::OnTransaction();
  return txn;
}

inline void Acknowledged(TxnId) {}

inline void Recovered(const Database&) {}

}  // namespace dbx::observer
