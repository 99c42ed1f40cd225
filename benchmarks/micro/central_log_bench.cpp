// The cost of the methods of a central log, without I/O.
//
// Append: a filler's time per record (place, copy, checksum, report), by method, record size and number of producers,
// over a device that completes every write at once. STREAM is LogStream's own way, a bound per filler. Advance: the
// ELEDA worker's time per record, and the operations that a record takes altogether: those of its producer (append the
// node, count the bytes, once more where they are split or a range begins) and those of the worker. One thread takes
// all roles, so that the counts do not depend on the host. `lag` is how far the log is ahead of SBL.
#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "benchmarks/micro/null_device.h"
#include "logging/eleda/central_log.h"
#include "logging/log_set.h"
#include "logging/record_builder.h"

namespace dbx {
namespace {

// ---- A filler's side ----------------------------------------------------------------------------------------

constexpr int kStream = -1;

struct Log {
  explicit Log(int method, uint32_t workers) {
    std::vector<LogSet::Target> targets;
    targets.push_back({std::make_unique<NullDevice>(), 0});
    LogSetOptions options;
    options.workers = workers;
    logs = std::make_unique<LogSet>(std::move(targets), options);
    if (method != kStream) {
      central = std::make_unique<CentralLog>(*logs, LogOptions{.central_method = static_cast<CentralMethod>(method)});
    }
    logs->Start(no_hooks);
  }
  FlushHooks no_hooks;
  std::unique_ptr<CentralLog> central;  // outlives the writer
  std::unique_ptr<LogSet> logs;
};

std::unique_ptr<Log> log;

void Append(uint32_t worker, uint32_t bytes, const std::vector<std::byte>& body) {
  LogStream& stream = log->logs->stream(0);
  format::RecordHeader header{};
  std::byte* const staged = log->central ? log->central->StageFor(worker, bytes) : nullptr;
  if (staged != nullptr) {
    std::memcpy(staged, body.data(), body.size());
    header.body_crc = Crc32c(std::span(staged, body.size()));
  }
  const LogPlace place = log->central ? log->central->Reserve(worker, bytes) : stream.Reserve(worker, bytes);
  header.length = bytes;
  header.lsn = place.lsn.value();
  header.kind = static_cast<uint8_t>(format::RecordKind::kCommand);
  std::byte* const at = stream.at(place);
  std::memcpy(at + sizeof header, staged != nullptr ? staged : body.data(), body.size());
  staged != nullptr ? SealHeader(at, header) : SealRecord(at, header);
  log->central ? log->central->Submit(worker, place) : stream.Submit(worker, place);
}

void BM_Append(benchmark::State& state, int method) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  const auto worker = static_cast<uint32_t>(state.thread_index());
  if (worker == 0) log = std::make_unique<Log>(method, static_cast<uint32_t>(state.threads()));
  const std::vector<std::byte> body(bytes - sizeof(format::RecordHeader), std::byte{1});
  for (auto _ : state) Append(worker, bytes, body);
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * bytes);
  if (worker == 0) log.reset();
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  for (const int bytes : {128, 512, 1024, 4096}) benchmark->Arg(bytes);
  for (const int threads : {1, 2, 4, 8, 16, 32}) benchmark->Threads(threads);
  benchmark->UseRealTime();
}
BENCHMARK_CAPTURE(BM_Append, STREAM, kStream)->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Append, ELEDA, static_cast<int>(CentralMethod::kEleda))->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Append, MUTEX, static_cast<int>(CentralMethod::kMutex))->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Append, CONSOLIDATION, static_cast<int>(CentralMethod::kConsolidation))->Apply(Shapes);
BENCHMARK_CAPTURE(BM_Append, BITMAP, static_cast<int>(CentralMethod::kBitmap))->Apply(Shapes);

// ---- The ELEDA worker's side --------------------------------------------------------------------------------

class Field {
 public:
  static constexpr uint64_t kDistance = 4 << 20, kRing = 64 << 20;

  explicit Field(uint32_t producers) : index_(kDistance, kRing, Lsn(0)), open_(producers) {
    for (uint32_t p = 0; p < producers; ++p) lists_.push_back(std::make_unique<GrasshopperList>(index_, 1 << 20));
    grasshopper_.emplace(index_, lists_, Lsn(0));
  }

  // Every producer has a place and fills it when its turn comes, so that the order of fills is not that of places.
  void Fill(uint64_t bytes_in_all, uint32_t bytes) {
    for (const Lsn end = reserved_ + bytes_in_all; reserved_ < end;) {
      const size_t producer = random_() % open_.size();
      if (open_[producer]) Submit(producer);
      open_[producer] = LogPlace{reserved_, bytes};
      reserved_ += bytes;
    }
    for (size_t p = 0; p < open_.size(); ++p) {
      if (open_[p]) Submit(p);
    }
  }
  void Advance() { grasshopper_->Advance(reserved_); }
  void Collect() {
    for (auto& list : lists_) list->Collect(grasshopper_->sbl(), [](Lsn) {});
  }
  CentralCounters counters() const { return grasshopper_->counters(); }
  uint64_t producer_operations() const { return producer_operations_; }

 private:
  void Submit(size_t producer) {
    const LogPlace place = *std::exchange(open_[producer], std::nullopt);
    const uint64_t hops = lists_[producer]->hop_tail();
    lists_[producer]->Enqueue(place, true);
    const uint64_t ranges = index_.RangeOf(Lsn(place.end().value() - 1)) - index_.RangeOf(place.lsn) + 1;
    producer_operations_ += 1 + ranges + (lists_[producer]->hop_tail() - hops);
  }

  HoppingIndex index_;
  std::vector<std::unique_ptr<GrasshopperList>> lists_;
  std::vector<std::optional<LogPlace>> open_;
  std::optional<Grasshopper> grasshopper_;
  std::minstd_rand random_{1};
  Lsn reserved_;
  uint64_t producer_operations_ = 0;
};

void BM_Advance(benchmark::State& state, uint64_t lag) {
  const auto bytes = static_cast<uint32_t>(state.range(0));
  Field field(static_cast<uint32_t>(state.range(1)));
  for (auto _ : state) {
    state.PauseTiming();
    field.Collect();
    field.Fill(lag, bytes);
    state.ResumeTiming();
    field.Advance();
  }
  const CentralCounters c = field.counters();
  const auto records = static_cast<double>(c.crawled_records + c.hopped_records);
  const auto operations = static_cast<double>(field.producer_operations() + c.crawl_operations + c.hop_operations);
  state.counters["operations/record"] = operations / records;
  state.counters["crawling_ratio"] =
      static_cast<double>(c.crawled_bytes) / static_cast<double>(c.crawled_bytes + c.hopped_bytes);
  state.counters["time/record"] =
      benchmark::Counter(records, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int producers : {1, 2, 4, 8, 16, 32}) {
    for (const int bytes : {128, 512, 1024, 4096}) benchmark->Args({bytes, producers});
  }
  benchmark->ArgNames({"bytes", "producers"})->Iterations(20);
}
BENCHMARK_CAPTURE(BM_Advance, hopping, Field::kDistance * 4)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Advance, crawling, Field::kDistance / 16)->Apply(Sizes);

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
