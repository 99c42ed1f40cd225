// The cost of LSN vectors: each operation of lsn_vector.h by number of logs and instruction set, and all operations of
// one transaction of two accesses. Rows are spread over 64 MiB, so that "cold" includes the cache miss of the row
// access.
#include <benchmark/benchmark.h>

#include <vector>

#include "logging/format.h"
#include "logging/lsn_vector.h"

namespace dbx {
namespace {

constexpr const char* kInstructionSets[] = {"scalar", "avx2", "avx512"};

bool Select(benchmark::State& state) {
  try {
    SelectLsnVectorOps(kInstructionSets[state.range(0)]);
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
    return false;
  }
  state.SetLabel(kInstructionSets[state.range(0)]);
  return true;
}

// One update and one read of a command-logging transaction: merge two vectors for the write and one for the read,
// compare with the anchor, publish both, check once whether the result is durable.
void BM_TransactionOfTwoAccesses(benchmark::State& state) {
  if (!Select(state)) return;
  const auto n = static_cast<size_t>(state.range(1));
  alignas(64) uint64_t lv[format::kMaxLogs] = {};
  alignas(64) uint64_t anchor[format::kMaxLogs] = {};
  std::vector<uint64_t> rows(64 * 4 * format::kMaxLogs);
  size_t at = 0;
  uint64_t lsn = 0;
  for (auto _ : state) {
    uint64_t* written = &rows[at * 4 * n];
    uint64_t* read = written + 2 * n;
    at = (at + 1) % 64;
    for (size_t j = 0; j < n; ++j) lv[j] = 0;
    lv::Raise(lv, written, n);
    lv::Raise(lv, written + n, n);
    lv::Raise(lv, read, n);
    uint32_t mask = lv::Exceeds(lv, anchor, n);
    benchmark::DoNotOptimize(mask);
    lv[0] = lsn += 56;
    lv::RaiseShared(read + n, lv, n);
    lv::StoreShared(written, lv, n);
    bool durable = lv::CoveredBy(lv, anchor, n);
    benchmark::DoNotOptimize(durable);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_TransactionOfTwoAccesses)->ArgsProduct({{0, 1, 2}, {1, 2, 4, 8, 16}});

void BM_Raise(benchmark::State& state) {
  if (!Select(state)) return;
  const auto n = static_cast<size_t>(state.range(1));
  alignas(64) uint64_t lv[format::kMaxLogs] = {};
  alignas(64) uint64_t shared[format::kMaxLogs] = {};
  for (auto _ : state) {
    lv::Raise(lv, shared, n);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Raise)->ArgsProduct({{0, 1, 2}, {1, 4, 16}});

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
