// The cost of a look-up: random keys of a table of 1 M rows x 1 KB, one cache line of each row read.
//
//   Dependent   the next key depends on the row just read: the latency of a look-up
//   Plain       independent look-ups: what the processor overlaps by itself
//   Prefetched  bucket and row are fetched some look-ups ahead, as a worker does for the calls queued behind
//               the current one
//   Cached      independent look-ups in a table of 1000 small rows: the instructions alone
//   Insert      fresh rows into the index, with and without clustered keys
//
// Results are look-ups (inserts) per second, of all threads together. Needs about 1.2 GB.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmarks/micro/key_generator.h"
#include "storage/table.h"

namespace dbx {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr uint32_t kTupleBytes = 1000;

std::unique_ptr<Table> Load(uint64_t rows, uint32_t tuple_bytes) {
  Schema schema;
  schema.name = "rows";
  schema.tuple_bytes = tuple_bytes;
  schema.expected_rows = rows;
  auto table = std::make_unique<Table>(TableId(0), schema, RowLayout(), 1);
  const std::vector<std::byte> tuple(tuple_bytes);
  for (Key key = 0; key < rows; ++key) table->LoadRow(WorkerId(0), key, tuple);
  return table;
}

const Table& LoadedTable() {
  static const std::unique_ptr<Table> table = Load(kRows, kTupleBytes);
  return *table;
}

uint64_t FirstWord(const Table& table, const Row* row) {
  uint64_t word;
  std::memcpy(&word, table.tuple(row), sizeof word);
  return word;
}

void FindDependent(benchmark::State& state) {
  const Table& table = LoadedTable();
  KeyGenerator keys(state.thread_index(), kRows);
  uint64_t word = 0;
  for (auto _ : state) word = FirstWord(table, table.Find(keys.Next() ^ word));  // every word is 0
  benchmark::DoNotOptimize(word);
  state.SetItemsProcessed(state.iterations());
}

void FindPlain(benchmark::State& state) {
  const Table& table = LoadedTable();
  KeyGenerator keys(state.thread_index(), kRows);
  uint64_t sum = 0;
  for (auto _ : state) sum += FirstWord(table, table.Find(keys.Next()));
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

void FindPrefetched(benchmark::State& state) {
  const Table& table = LoadedTable();
  KeyGenerator keys(state.thread_index(), kRows);
  const auto bucket_ahead = static_cast<size_t>(state.range(0));
  const auto row_ahead = static_cast<size_t>(state.range(1));
  constexpr size_t kQueue = 16;
  Key queue[kQueue];
  for (Key& key : queue) key = keys.Next();
  uint64_t sum = 0;
  size_t i = 0;
  for (auto _ : state) {
    Key& last = queue[(i + bucket_ahead) % kQueue];
    last = keys.Next();
    table.PrefetchBucket(last);
    table.PrefetchRow(queue[(i + row_ahead) % kQueue], sizeof(uint64_t));
    sum += FirstWord(table, table.Find(queue[i % kQueue]));
    ++i;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

void FindCached(benchmark::State& state) {
  constexpr uint64_t kCachedRows = 1000;
  const std::unique_ptr<Table> table = Load(kCachedRows, 8);
  KeyGenerator keys(0, kCachedRows);
  uint64_t sum = 0;
  for (auto _ : state) sum += FirstWord(*table, table->Find(keys.Next()));
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

void Insert(benchmark::State& state) {
  Schema schema;
  schema.tuple_bytes = 48;
  schema.expected_rows = kRows;
  schema.clustered_key_bits = static_cast<uint32_t>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto table = std::make_unique<Table>(TableId(0), schema, RowLayout(), 1);
    table->PrefaultRows(WorkerId(0), kRows);
    state.ResumeTiming();
    // Runs of ten keys, like the lines of an order.
    for (uint64_t i = 0; i < kRows; ++i) {
      table->FindOrCreate(WorkerId(0), i / 10 * 16 + i % 10, [](Row& row) { row.control = Row::kAbsent; });
    }
    state.PauseTiming();
    state.counters["index_bytes_per_row"] = static_cast<double>(table->index_bytes()) / static_cast<double>(kRows);
    table.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(static_cast<uint64_t>(state.iterations()) * kRows));
}

BENCHMARK(FindDependent)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindPlain)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindPrefetched)->ArgNames({"bucket", "row"})->Args({4, 2})->Args({8, 4})->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindCached)->UseRealTime();
BENCHMARK(Insert)->ArgName("clustered_bits")->Arg(0)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
