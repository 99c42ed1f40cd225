// What a change of a slot costs beside its record (differential logging): the latch of its page with number and dirty
// bits, as the difference of UnderLatch and Alone; the XOR of two tuples; and the search for the runs that changed.
// All in caches. Time is per change.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/xor_bytes.h"
#include "benchmarks/micro/key_generator.h"
#include "benchmarks/micro/tuple_pages.h"
#include "logging/differential/slot_change.h"

namespace dbx {
namespace {

constexpr uint32_t kPages = 64;

PageSpace::Place PlaceOf(uint64_t number, const PageSpace& space) {
  return {static_cast<uint32_t>(number % kPages), static_cast<uint32_t>(number / kPages % space.rows_per_page())};
}

// The first 8 of 100 bytes change, as in a YCSB tuple.
std::vector<std::byte> Delta(size_t tuple_bytes) {
  std::vector<std::byte> delta(RoundedUpToWords(tuple_bytes));
  for (size_t i = 0; i < tuple_bytes; ++i) delta[i] = i % 100 < 8 ? std::byte{1} : std::byte{0};
  return delta;
}

void Alone(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  TuplePages pages(bytes, kPages);
  const auto delta = Delta(bytes);
  KeyGenerator numbers(0, 1 << 20);
  for (auto _ : state) {
    Row* const row = pages.space.RowAt(PlaceOf(numbers.Next(), pages.space));
    XorBytes(pages.space.TupleOf(row), delta.data(), bytes);
  }
}

void UnderLatch(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  TuplePages pages(bytes, kPages);
  const auto delta = Delta(bytes);
  KeyGenerator numbers(0, 1 << 20);
  for (auto _ : state) {
    const PageSpace::Place at = PlaceOf(numbers.Next(), pages.space);
    PageSpace::Latched latched(pages.space, at.page);
    benchmark::DoNotOptimize(latched.number());
    latched.SetDirty();
    XorBytes(pages.space.TupleOf(pages.space.RowAt(at)), delta.data(), bytes);
  }
}

void Runs(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto delta = Delta(bytes);
  std::vector<std::byte> to(delta.size() + 8);
  for (auto _ : state) benchmark::DoNotOptimize(EncodeRuns(std::span(delta).first(bytes), to.data()));
}

BENCHMARK(Alone)->Arg(8)->Arg(256)->Arg(1000);
BENCHMARK(UnderLatch)->Arg(8)->Arg(256)->Arg(1000);
BENCHMARK(Runs)->Arg(256)->Arg(1000);

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
