// Operations on LSN vectors (Taurus, section 3.1): arrays of `n` 64-bit LSNs, one element per log.
//
// Two kinds of arrays take part. A *private* one belongs to a single transaction. A *shared* one lies in a row, in a
// lock table entry or in the durable vector, and others may change it meanwhile: every element is loaded and stored
// whole, and the caller must tolerate the effect of concurrent changes on the result (it is conservative: elements only
// grow, and each value ever seen was a real LSN).
//
// Up to four elements are handled in place, which measures best; more go to the widest instruction set of the machine,
// chosen once by SelectLsnVectorOps. All paths give equal results and are tested against each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/host.h"

namespace dbx {

struct LsnVectorOps {
  void (*raise)(uint64_t* lv, const uint64_t* shared, size_t n);
  void (*store)(uint64_t* shared, const uint64_t* lv, size_t n);
  uint32_t (*exceeds)(const uint64_t* lv, const uint64_t* shared_bound, size_t n);
  std::string_view name;
};

extern const LsnVectorOps* lsn_vector_ops;

// `simd`: auto, scalar, avx2 or avx512. Call before any thread uses a vector. Throws Error(kUsage) when the machine
// lacks the instruction set. Returns the name of the one in use.
std::string SelectLsnVectorOps(const std::string& simd);

namespace lv {

// Elements that any thread may touch. Sequentially consistent loads cost nothing on x86-64 and are needed between the
// raise of readLV and validation (Raise and RaiseShared of one row on two threads: at least one sees the other).
inline uint64_t Load(const uint64_t& element) {
  return AtomicRef<uint64_t>(const_cast<uint64_t&>(element)).load(std::memory_order_seq_cst);
}
// Release: a reader that sees the vector through a later release of the row's lock or version also sees this store.
inline void Store(uint64_t& element, uint64_t value) {
  AtomicRef<uint64_t>(element).store(value, std::memory_order_release);
}

// lv = ElemWiseMax(lv, shared)
[[gnu::always_inline]] inline void Raise(uint64_t* lv, const uint64_t* shared, size_t n) {
  if (n > 4) return lsn_vector_ops->raise(lv, shared, n);
  for (size_t j = 0; j < n; ++j) {
    const uint64_t value = Load(shared[j]);
    if (value > lv[j]) lv[j] = value;
  }
}

// shared = lv, where the caller is the only writer and lv covers the old value of shared.
inline void StoreShared(uint64_t* shared, const uint64_t* lv, size_t n) {
  if (n > 4) return lsn_vector_ops->store(shared, lv, n);
  for (size_t j = 0; j < n; ++j) Store(shared[j], lv[j]);
}

// shared = ElemWiseMax(shared, lv) among concurrent raisers: compare-and-swap, element by element.
inline void RaiseShared(uint64_t* shared, const uint64_t* lv, size_t n) {
  if (n > 4 && lsn_vector_ops->exceeds(lv, shared, n) == 0) return;
  for (size_t j = 0; j < n; ++j) {
    uint64_t seen = Load(shared[j]);
    while (seen < lv[j] && !AtomicRef<uint64_t>(shared[j]).compare_exchange_weak(seen, lv[j])) {
    }
  }
}

// Bit j: lv[j] > bound[j].
inline uint32_t Exceeds(const uint64_t* lv, const uint64_t* shared_bound, size_t n) {
  if (n > 4) return lsn_vector_ops->exceeds(lv, shared_bound, n);
  uint32_t mask = 0;
  for (size_t j = 0; j < n; ++j) mask |= uint32_t{lv[j] > Load(shared_bound[j])} << j;
  return mask;
}

// lv <= bound
inline bool CoveredBy(const uint64_t* lv, const uint64_t* shared_bound, size_t n) {
  return Exceeds(lv, shared_bound, n) == 0;
}

}  // namespace lv
}  // namespace dbx
