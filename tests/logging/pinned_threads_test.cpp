// The threads of a log have the places that the run's plan has for them, or those of the process.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/affinity.h"
#include "base/thread_place.h"
#include "logging/device/background_read.h"
#include "logging/log_set.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/log_builder.h"

namespace dbx {
namespace {

using Cpus = std::vector<uint32_t>;

// Where the writer of each stream may run.
struct NotesCpus : FlushHooks {
  void BeforeFlush(LogStream& stream) override { allowed.at(stream.index()) = host::AllowedCpus(); }
  std::array<Cpus, 3> allowed;
};

TEST(PinnedThreads, AWriterRunsOnTheCpuOfItsDirectory) {
  const Cpus all = host::AllowedCpus();
  FaultyFileSystem files;
  NotesCpus hooks;
  const PlacedThreads placed(
      {.workers = {all[0]}, .writers = {all.back(), std::nullopt}, .buffers = {all.back(), all[0]}});
  std::vector<LogSet::Target> targets;
  // Logs 0 and 2 are in directory 0.
  for (uint32_t log = 0; log < 3; ++log) {
    auto device = files.Create("log" + std::to_string(log), {});
    const std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    targets.push_back({std::move(device), log % 2});
  }
  LogSet logs(std::move(targets), LogSetOptions{});
  EXPECT_EQ(host::AllowedCpus(), all) << "the buffers' place is left again";
  logs.Start(hooks);
  for (uint32_t log = 0; log < 3; ++log) {
    LogStream& stream = logs.stream(log);
    const LogStream::Place place = stream.Reserve(0, 64);
    BuildVoid(stream.at(place), place.lsn, 64, 1, 0);
    stream.Submit(0, place);
  }
  logs.Stop();
  EXPECT_EQ(hooks.allowed, (std::array<Cpus, 3>{Cpus{all.back()}, all, Cpus{all.back()}}));
}

// By a worker of a recovery, which goes on meanwhile.
TEST(PinnedThreads, AReadInTheBackgroundIsNotOnTheCpuOfItsOwner) {
  const Cpus all = host::AllowedCpus();
  const PlacedThreads placed({.workers = {all.back()}});
  const ThreadPlace worker = ThreadPlace::OfWorker(0);
  BackgroundRead read;
  Cpus allowed;
  read.Start([&] {
    allowed = host::AllowedCpus();
    return size_t{0};
  });
  read.Take();
  EXPECT_EQ(allowed, all);
}

}  // namespace
}  // namespace dbx
