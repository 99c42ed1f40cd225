// Whether transactions of a model that have committed can be put into one order.
#pragma once

#include <cstddef>

#include "tests/models/expectations.h"
#include "tests/models/explorer.h"

namespace dbx::models {

inline constexpr const char* kNoSerialOrder = "there is no serial order";

// A transaction is an array of accesses, each with a kind and a row; the model's locals have an outcome, kCommitted
// among others, and per access the tuple that was read or overwritten: versions of a row, counted up. One comes before
// the other if it wrote what the other accessed, or accessed what the other wrote.
template <class Model, class Txn, size_t kTxns>
bool ComesBefore(const Core<Model>& core, const Txn (&txns)[kTxns], size_t a, size_t b) {
  using Access = typename Txn::value_type;
  const auto& first = core.LocalsOf(a);
  const auto& last = core.LocalsOf(b);
  if (first.outcome != Model::kCommitted || last.outcome != Model::kCommitted) return false;
  for (size_t i = 0; i < txns[a].size(); ++i) {
    for (size_t j = 0; j < txns[b].size(); ++j) {
      const Access one = txns[a][i], other = txns[b][j];
      if (one.kind == Access::kNone || other.kind == Access::kNone || one.row != other.row) continue;
      if (one.kind == Access::kWrite && last.tuple[j] > first.tuple[i]) return true;
      if (other.kind == Access::kWrite && first.tuple[i] <= last.tuple[j]) return true;
    }
  }
  return false;
}

// Fails the model if what has committed goes round in a circle.
template <class Model, class Txn, size_t kTxns>
void JudgeSerialOrder(Core<Model>& core, const Txn (&txns)[kTxns]) {
  bool before[kTxns][kTxns] = {};
  for (size_t a = 0; a < kTxns; ++a) {
    for (size_t b = 0; b < kTxns; ++b) before[a][b] = a != b && ComesBefore(core, txns, a, b);
  }
  for (size_t via = 0; via < kTxns; ++via) {
    for (size_t a = 0; a < kTxns; ++a) {
      for (size_t b = 0; b < kTxns; ++b) before[a][b] |= before[a][via] && before[via][b];
    }
  }
  for (size_t a = 0; a < kTxns; ++a) {
    if (before[a][a]) core.Fail(kNoSerialOrder);
  }
}

template <class Model>
void ExpectNoSerialOrder(const Model& model) {
  ExpectFound(model, kNoSerialOrder);
}

}  // namespace dbx::models
