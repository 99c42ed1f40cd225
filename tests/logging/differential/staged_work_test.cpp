// Tasks in stages: what may begin when.
#include "logging/differential/staged_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace dbx {
namespace {

using Stage = StagedWork::Stage;

const WorkerId kFirst(0), kSecond(1);

TEST(StagedWork, AStageBeginsWhenThoseBeforeItAreComplete) {
  StagedWork work({Stage{2, 0}, Stage{1, 1}});
  const auto one = work.Take(kFirst), two = work.Take(kSecond);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->stage, 0u);
  EXPECT_EQ(one->index, 0u);
  EXPECT_EQ(two->index, 1u);
  work.Complete(*one);
  std::atomic<bool> has_begun = false;
  std::thread waiting([&] {
    const auto third = work.Take(kFirst);
    has_begun = true;
    EXPECT_EQ(third->stage, 1u);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_begun);
  work.Complete(*two);
  waiting.join();
  EXPECT_FALSE(work.Take(kSecond));
}

TEST(StagedWork, WorkersBeginWithDifferentStagesThatOverlap) {
  StagedWork work({Stage{2, 0}, Stage{2, 0}});
  EXPECT_EQ(work.Take(kFirst)->stage, 0u);
  EXPECT_EQ(work.Take(kSecond)->stage, 1u);
  EXPECT_EQ(work.Take(kFirst)->stage, 0u);
  // Only the other stage is left.
  EXPECT_EQ(work.Take(kFirst)->stage, 1u);
  EXPECT_FALSE(work.Take(kFirst));
}

TEST(StagedWork, AStageWithoutTasksIsComplete) {
  StagedWork work({Stage{0, 0}, Stage{1, 1}});
  EXPECT_EQ(work.Take(kFirst)->stage, 1u);
}

TEST(StagedWork, StopEndsThoseThatWait) {
  StagedWork work({Stage{1, 0}, Stage{1, 1}});
  ASSERT_TRUE(work.Take(kFirst));
  std::thread waiting([&] { EXPECT_FALSE(work.Take(kSecond)); });
  work.Stop();
  waiting.join();
  EXPECT_FALSE(work.Take(kFirst));
}

TEST(StagedWork, EveryTaskIsDoneOnceAndInOrder) {
  StagedWork work({Stage{30, 0}, Stage{30, 1}, Stage{30, 0}, Stage{30, 0b110}});
  std::mutex mutex;
  std::set<uint32_t> done[4];
  const auto run = [&](uint32_t worker) {
    while (const auto task = work.Take(WorkerId(worker))) {
      {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(task->stage != 1 || done[0].size() == 30);
        EXPECT_TRUE(task->stage != 3 || done[1].size() + done[2].size() == 60);
        EXPECT_TRUE(done[task->stage].insert(task->index).second);
      }
      work.Complete(*task);
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < 4; ++worker) threads.emplace_back(run, worker);
  for (std::thread& thread : threads) thread.join();
  for (const auto& stage : done) EXPECT_EQ(stage.size(), 30u);
}

}  // namespace
}  // namespace dbx
