// The cost of the ordered index: 1 M rows of 64 bytes, next to the hash index.
//
//   FindDependent  the next key depends on the row just read: the latency of a look-up
//   FindPlain      independent look-ups: what the processor overlaps by itself
//   FindPrefetched the leaf is fetched some look-ups ahead
//   FindCached     independent look-ups among 1000 rows: the instructions alone
//   Insert         ascending, in ten districts that ascend in turn, in random order; 1 M entries
//   Scan           from a random key on: the entries alone (rows: 0), or a word of each row too (rows: 1)
//
// Results are look-ups, inserts, or entries scanned per second, of all threads together.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/epoch.h"
#include "base/random.h"
#include "benchmarks/micro/key_generator.h"
#include "storage/btree_scan.h"
#include "storage/hash_index.h"

namespace dbx {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr uint64_t kCachedRows = 1000;
constexpr size_t kRowBytes = 64;

// Rows whose first word of data is 0, in an index of either kind; keys are dense.
template <class Index>
class Data {
 public:
  Data(uint64_t rows, std::unique_ptr<Index> index) : index_(std::move(index)) {
    // In random order: neighbours in key are not neighbours in memory, and leaves are as full as inserts leave them.
    std::vector<Key> keys(rows);
    for (uint64_t i = 0; i < rows; ++i) keys[i] = i;
    Random random(1);
    for (uint64_t i = rows; i > 1; --i) std::swap(keys[i - 1], keys[random.Below(i)]);
    for (const Key key : keys) {
      index_->FindOrInsert(key, [&] {
        Row* const row = arena_.Allocate();
        row->key = key;
        return row;
      });
    }
  }
  const Index& index() const { return *index_; }

 private:
  RowArena arena_{kRowBytes, kRowBytes};
  std::unique_ptr<Index> index_;
};

template <class Index>
Data<Index> MakeData(uint64_t rows);
template <>
Data<BTreeIndex> MakeData(uint64_t rows) {
  return {rows, std::make_unique<BTreeIndex>(0)};
}
template <>
Data<HashIndex> MakeData(uint64_t rows) {
  return {rows, std::make_unique<HashIndex>(rows, 0)};
}
template <class Index>
const Data<Index>& LoadedData() {
  static const Data<Index> data = MakeData<Index>(kRows);
  return data;
}

uint64_t FirstWord(Row* row) {
  uint64_t word;
  std::memcpy(&word, row->meta(), sizeof word);
  return word;
}

template <class Index>
void FindDependent(benchmark::State& state) {
  const Index& index = LoadedData<Index>().index();
  KeyGenerator keys(state.thread_index(), kRows);
  uint64_t word = 0;
  for (auto _ : state) word = FirstWord(index.Find(keys.Next() ^ word));  // every word is 0
  benchmark::DoNotOptimize(word);
  state.SetItemsProcessed(state.iterations());
}

template <class Index>
void FindPlain(benchmark::State& state) {
  const Index& index = LoadedData<Index>().index();
  KeyGenerator keys(state.thread_index(), kRows);
  uint64_t sum = 0;
  for (auto _ : state) sum += FirstWord(index.Find(keys.Next()));
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

void FindPrefetched(benchmark::State& state) {
  const BTreeIndex& index = LoadedData<BTreeIndex>().index();
  KeyGenerator keys(state.thread_index(), kRows);
  constexpr size_t kAhead = 4;
  Key queue[kAhead];
  for (Key& key : queue) key = keys.Next();
  uint64_t sum = 0;
  size_t i = 0;
  for (auto _ : state) {
    const Key key = queue[i];
    queue[i] = keys.Next();
    index.PrefetchLeaf(queue[i]);
    sum += FirstWord(index.Find(key));
    i = (i + 1) % kAhead;
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

template <class Index>
void FindCached(benchmark::State& state) {
  const Data<Index> data = MakeData<Index>(kCachedRows);
  KeyGenerator keys(0, kCachedRows);
  uint64_t sum = 0;
  for (auto _ : state) sum += FirstWord(data.index().Find(keys.Next()));
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

Key Ascending(uint64_t i) { return i; }
Key Districts(uint64_t i) { return (i % 10) << 32 | i / 10; }
Key Scattered(uint64_t i) { return Mix64(i); }

// Each thread inserts a part of the keys, none of which are in the index.
template <Key (*kKeyOf)(uint64_t)>
void Insert(benchmark::State& state) {
  static std::unique_ptr<BTreeIndex> index;
  static Row row{};
  const auto threads = static_cast<uint64_t>(state.threads());
  const auto thread = static_cast<uint64_t>(state.thread_index());
  if (thread == 0) index = std::make_unique<BTreeIndex>(0);
  for (auto _ : state) {
    for (uint64_t i = thread; i < kRows; i += threads) index->FindOrInsert(kKeyOf(i), [] { return &row; });
  }
  state.SetItemsProcessed(static_cast<int64_t>(kRows / threads));
  if (thread == 0) {
    state.counters["bytes_per_entry"] =
        benchmark::Counter(static_cast<double>(index->memory_bytes()) / static_cast<double>(kRows));
  }
}

void Scan(benchmark::State& state) {
  const BTreeIndex& index = LoadedData<BTreeIndex>().index();
  const auto length = static_cast<uint64_t>(state.range(0));
  KeyGenerator keys(state.thread_index(), kRows - length);
  const bool with_rows = state.range(1) != 0;
  const auto order = state.range(2) != 0 ? ScanOrder::kDescending : ScanOrder::kAscending;
  uint64_t sum = 0;
  for (auto _ : state) {
    const Key low = keys.Next();
    BTreeScan scan(index, low, low + length - 1, order);
    while (scan.NextBatch()) {
      for (const BTreeEntry& entry : scan.entries()) sum += with_rows ? FirstWord(entry.row) : entry.key;
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(FindDependent<BTreeIndex>)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindDependent<HashIndex>)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindPlain<BTreeIndex>)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindPlain<HashIndex>)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindPrefetched)->ThreadRange(1, 2)->UseRealTime();
BENCHMARK(FindCached<BTreeIndex>)->UseRealTime();
BENCHMARK(FindCached<HashIndex>)->UseRealTime();
BENCHMARK(Insert<Ascending>)->Iterations(1)->ThreadRange(1, 2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Insert<Districts>)->Iterations(1)->ThreadRange(1, 2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Insert<Scattered>)->Iterations(1)->ThreadRange(1, 2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Scan)
    ->ArgNames({"length", "rows", "descending"})
    ->ArgsProduct({{10, 100}, {0, 1}, {0}})
    ->Args({100, 0, 1})
    ->UseRealTime();

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
