// The cost of a checksum: the inline SSE4.2 loop against ISA-L by length (where kCrc32cInlineBytes should be), and a
// copy followed by a checksum against a loop that does both.
// Run by hand. On a Zen 4 core the two CRCs cross between 192 and 256 B (12 against 17 ns, 20 against 10 ns),
// and for a 1000-byte row a copy followed by a checksum takes two thirds of the fused loop's time.
#include <benchmark/benchmark.h>
#include <nmmintrin.h>

#include <cstring>
#include <vector>

#include "base/crc32c.h"

namespace dbx {
namespace {

std::vector<std::byte> Source(size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 131);
  return data;
}

void BM_CrcInline(benchmark::State& state) {
  const auto data = Source(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(crc32c_internal::UpdateInline(~0u, data.data(), data.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_CrcLong(benchmark::State& state) {
  const auto data = Source(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(crc32c_internal::UpdateLong(~0u, data.data(), data.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_CopyThenCrc(benchmark::State& state) {
  const auto data = Source(static_cast<size_t>(state.range(0)));
  std::vector<std::byte> to(data.size());
  for (auto _ : state) {
    std::memcpy(to.data(), data.data(), data.size());
    benchmark::DoNotOptimize(Crc32c(to));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

uint32_t CopyAndCrcFused(std::byte* to, const std::byte* from, size_t bytes) {
  uint64_t crc = ~0u;
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t word;
    std::memcpy(&word, from + i, 8);
    crc = _mm_crc32_u64(crc, word);
    std::memcpy(to + i, &word, 8);
  }
  return ~static_cast<uint32_t>(crc);
}

void BM_CopyAndCrcFused(benchmark::State& state) {
  const auto data = Source(static_cast<size_t>(state.range(0)));
  std::vector<std::byte> to(data.size());
  for (auto _ : state) benchmark::DoNotOptimize(CopyAndCrcFused(to.data(), data.data(), data.size()));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK(BM_CrcInline)->Arg(24)->Arg(64)->Arg(128)->Arg(192)->Arg(256)->Arg(384)->Arg(512)->Arg(1024);
BENCHMARK(BM_CrcLong)
    ->Arg(24)
    ->Arg(64)
    ->Arg(128)
    ->Arg(192)
    ->Arg(256)
    ->Arg(384)
    ->Arg(512)
    ->Arg(960)
    ->Arg(1000)
    ->Arg(1008)
    ->Arg(1024)
    ->Arg(1072)
    ->Arg(65536);
BENCHMARK(BM_CopyThenCrc)->Arg(64)->Arg(256)->Arg(1000)->Arg(4096);
BENCHMARK(BM_CopyAndCrcFused)->Arg(64)->Arg(256)->Arg(1000)->Arg(4096);

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
