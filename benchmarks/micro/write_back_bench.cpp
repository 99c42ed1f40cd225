// What it costs to make tuples durable in persistent memory (write-behind logging): so many slots of 1 KB, stored to,
// written back and drained together, by each instruction that the processor has. The memory is a file of the directory
// in DBX_PM_DIR, /dev/shm by default: where that is no persistent memory, RAM stands in for it. Time is per batch.
//
//   UnstoredSlots: the lines are written back and have not been stored to; StoredOnly: the other half of it
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "benchmarks/micro/key_generator.h"
#include "logging/device/posix_file_system.h"
#include "logging/device/posix_persistent_memory.h"

namespace dbx {
namespace {

constexpr size_t kSlotBytes = 1088, kSlots = 1 << 18;  // 17 lines; more than fits into caches

struct Memory {
  Memory() {
    const char* const directory = std::getenv("DBX_PM_DIR");
    path = std::string(directory == nullptr ? "/dev/shm" : directory) + "/dbx-write-back-bench." +
           std::to_string(::getpid());
  }
  ~Memory() {
    mapped.reset();
    files.Remove(path);
  }
  PersistentMemory& Map(FlushInstruction flush) {
    mapped.reset();
    mapped = files.MapPersistent(path, {.create_bytes = exists ? 0 : kSlots * kSlotBytes, .flush = flush});
    exists = true;
    return *mapped;
  }

  PosixFileSystem files;
  std::string path;
  bool exists = false;
  std::unique_ptr<PersistentMemory> mapped;
};

void Run(benchmark::State& state, FlushInstruction flush, bool stores, bool writes_back) {
  static Memory memory;
  PersistentMemory& mapped = memory.Map(flush);
  const auto writer = mapped.NewWriter();
  KeyGenerator numbers(0, kSlots);
  for (auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      std::byte* const slot = mapped.bytes().data() + numbers.Next() * kSlotBytes;
      if (stores) std::memset(slot, static_cast<int>(i), kSlotBytes);
      if (writes_back) writer->WriteBack(slot, kSlotBytes);
    }
    if (writes_back) writer->Drain();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * static_cast<int64_t>(kSlotBytes));
  state.SetLabel(mapped.kind());
}

void Register() {
  for (const FlushInstruction flush : FlushInstructions()) {
    const std::string name = NameOf(flush);
    const auto add = [flush](const std::string& test, bool stores, bool writes_back) {
      benchmark::RegisterBenchmark(test.c_str(),
                                   [=](benchmark::State& state) { Run(state, flush, stores, writes_back); })
          ->Arg(1)
          ->Arg(16)
          ->Arg(256);
    };
    add("Slots/" + name, true, true);
    add("UnstoredSlots/" + name, false, true);
    if (flush == FlushInstructions().front()) add("StoredOnly", true, false);
  }
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) {
  dbx::Register();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
