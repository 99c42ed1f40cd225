// The cost of one record to a worker: reserve, fill, checksum, submit, by body size and number of threads on one
// stream. The device completes every write at once, so the ring never fills up: this is the cost of the log on the
// transaction path.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "benchmarks/micro/null_device.h"
#include "logging/log_set.h"
#include "logging/record_builder.h"

namespace dbx {
namespace {

std::unique_ptr<LogSet> logs;

void BM_Append(benchmark::State& state) {
  const auto body_bytes = static_cast<size_t>(state.range(0));
  const auto worker = static_cast<uint32_t>(state.thread_index());
  if (worker == 0) {
    std::vector<LogSet::Target> targets;
    targets.push_back({std::make_unique<NullDevice>(), 0});
    LogSetOptions options;
    options.workers = static_cast<uint32_t>(state.threads());
    logs = std::make_unique<LogSet>(std::move(targets), options);
    static FlushHooks no_hooks;
    logs->Start(no_hooks);
  }
  std::vector<std::byte> body(body_bytes, std::byte{1});
  const uint32_t bytes = AlignRecord(sizeof(format::RecordHeader) + body_bytes);
  for (auto _ : state) {
    LogStream& stream = logs->stream(0);
    const LogStream::Place place = stream.Reserve(worker, bytes);
    std::byte* at = stream.at(place);
    std::memcpy(at + sizeof(format::RecordHeader), body.data(), body.size());
    format::RecordHeader header{};
    header.length = bytes;
    header.lsn = place.lsn.value();
    header.kind = static_cast<uint8_t>(format::RecordKind::kCommand);
    SealRecord(at, header);
    stream.Submit(worker, place);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * bytes);
  if (worker == 0) logs.reset();
}
BENCHMARK(BM_Append)->Arg(24)->Arg(128)->Arg(1032)->Arg(4096)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace dbx

BENCHMARK_MAIN();
