// The LSN vector of a row that was forgotten, made anew: no element is smaller than before, so that a transaction that
// read the row is dropped where damage has cut off the writer's record.
#include "logging/lv_metadata.h"

#include <gtest/gtest.h>

#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

TEST(LvMetadata, FreshIsAtLeastWhateverWasForgettable) {
  for (const uint64_t delta : {uint64_t{0}, uint64_t{100}, uint64_t{1} << 40}) {
    FaultyFileSystem files;
    std::vector<LogSet::Target> targets;
    targets.push_back({files.Create("log", {}), 0});
    LogSet logs(std::move(targets), LogSetOptions{});
    const LvMetadata metadata(logs, delta);
    auto& durable = const_cast<DurableVector&>(logs.durable());
    for (const uint64_t persistent : {0, 50, 100, 150, 5000}) {
      durable.lsn[0] = persistent;
      for (const uint64_t newest : {0, 1, 49, 50, 51, 4900, 5000, 5001}) {
        uint64_t words[1] = {newest};
        const auto meta = reinterpret_cast<Meta>(words);
        if (!metadata.Forgettable(meta)) continue;
        metadata.Fresh(meta);
        EXPECT_GE(words[0], newest) << persistent << " " << delta;
        EXPECT_LE(words[0], persistent);
      }
    }
  }
}

}  // namespace
}  // namespace dbx
