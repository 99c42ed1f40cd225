// The instruction sets behind lsn_vector.h. Vector loads and stores of aligned 8-byte elements do not tear an element
// on x86-64, which suffices for the callers; C++ cannot express that, so ThreadSanitizer is run on the scalar path,
// which does the same with atomics.
#include "logging/lsn_vector.h"

#include <immintrin.h>

#include "base/error.h"

namespace dbx {
namespace {

void RaiseScalar(uint64_t* lv, const uint64_t* shared, size_t n) {
  for (size_t j = 0; j < n; ++j) {
    const uint64_t value = lv::Load(shared[j]);
    if (value > lv[j]) lv[j] = value;
  }
}
void StoreScalar(uint64_t* shared, const uint64_t* lv, size_t n) {
  for (size_t j = 0; j < n; ++j) lv::Store(shared[j], lv[j]);
}
uint32_t ExceedsScalar(const uint64_t* lv, const uint64_t* shared, size_t n) {
  uint32_t mask = 0;
  for (size_t j = 0; j < n; ++j) mask |= uint32_t{lv[j] > lv::Load(shared[j])} << j;
  return mask;
}
constexpr LsnVectorOps kScalar = {RaiseScalar, StoreScalar, ExceedsScalar, "scalar"};

// LSNs stay below 2^63, so AVX2's signed comparison is right.
__attribute__((target("avx2"))) void RaiseAvx2(uint64_t* lv, const uint64_t* shared, size_t n) {
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lv + j));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(shared + j));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lv + j), _mm256_blendv_epi8(a, b, _mm256_cmpgt_epi64(b, a)));
  }
  RaiseScalar(lv + j, shared + j, n - j);
}
__attribute__((target("avx2"))) void StoreAvx2(uint64_t* shared, const uint64_t* lv, size_t n) {
  size_t j = 0;
  for (; j + 4 <= n; j += 4) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(shared + j),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lv + j)));
  }
  StoreScalar(shared + j, lv + j, n - j);
}
__attribute__((target("avx2"))) uint32_t ExceedsAvx2(const uint64_t* lv, const uint64_t* shared, size_t n) {
  size_t j = 0;
  uint32_t mask = 0;
  for (; j + 4 <= n; j += 4) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lv + j));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(shared + j));
    const int greater = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(a, b)));
    mask |= static_cast<uint32_t>(greater) << j;
  }
  return mask | (ExceedsScalar(lv + j, shared + j, n - j) << j);
}
constexpr LsnVectorOps kAvx2 = {RaiseAvx2, StoreAvx2, ExceedsAvx2, "avx2"};

// Whole vectors of eight only: masked stores are not forwarded to the loads that follow.
__attribute__((target("avx512f"))) void RaiseAvx512(uint64_t* lv, const uint64_t* shared, size_t n) {
  size_t j = 0;
  for (; j + 8 <= n; j += 8) {
    const __m512i a = _mm512_loadu_si512(lv + j);
    const __m512i b = _mm512_loadu_si512(shared + j);
    _mm512_storeu_si512(lv + j, _mm512_maskz_max_epu64(0xFF, a, b));
  }
  RaiseAvx2(lv + j, shared + j, n - j);
}
__attribute__((target("avx512f"))) void StoreAvx512(uint64_t* shared, const uint64_t* lv, size_t n) {
  size_t j = 0;
  for (; j + 8 <= n; j += 8) _mm512_storeu_si512(shared + j, _mm512_loadu_si512(lv + j));
  StoreAvx2(shared + j, lv + j, n - j);
}
__attribute__((target("avx512f"))) uint32_t ExceedsAvx512(const uint64_t* lv, const uint64_t* shared, size_t n) {
  size_t j = 0;
  uint32_t mask = 0;
  for (; j + 8 <= n; j += 8) {
    const __mmask8 greater = _mm512_cmpgt_epu64_mask(_mm512_loadu_si512(lv + j), _mm512_loadu_si512(shared + j));
    mask |= static_cast<uint32_t>(greater) << j;
  }
  return mask | (ExceedsAvx2(lv + j, shared + j, n - j) << j);
}
constexpr LsnVectorOps kAvx512 = {RaiseAvx512, StoreAvx512, ExceedsAvx512, "avx512"};

}  // namespace

const LsnVectorOps* lsn_vector_ops = &kScalar;

std::string SelectLsnVectorOps(const std::string& simd) {
  const bool has_avx2 = __builtin_cpu_supports("avx2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f");
  if (simd == "avx512" && !has_avx512)
    throw Error(ExitStatus::kUsage, "--simd=avx512: this machine has no AVX-512; use --simd=auto");
  if (simd == "avx2" && !has_avx2)
    throw Error(ExitStatus::kUsage, "--simd=avx2: this machine has no AVX2; use --simd=auto");
  if (simd == "scalar") {
    lsn_vector_ops = &kScalar;
  } else if (simd == "avx2" || (simd == "auto" && !has_avx512 && has_avx2)) {
    lsn_vector_ops = &kAvx2;
  } else if (simd == "avx512" || (simd == "auto" && has_avx512)) {
    lsn_vector_ops = &kAvx512;
  } else {
    lsn_vector_ops = &kScalar;
  }
  return std::string(lsn_vector_ops->name);
}

}  // namespace dbx
