#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dbx {
namespace {

TEST(RunInParallelTest, EachTaskRunsOnceAndTheFirstOnTheCallersThread) {
  std::vector<std::thread::id> ran_on(4);
  std::atomic<int> calls = 0;
  RunInParallel(4, [&](uint32_t i) {
    ++calls;
    ran_on[i] = std::this_thread::get_id();
  });
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(ran_on[0], std::this_thread::get_id());
  for (size_t i = 1; i < ran_on.size(); ++i) {
    EXPECT_NE(ran_on[i], std::thread::id()) << i;
    EXPECT_NE(ran_on[i], ran_on[0]) << i;
  }
}

TEST(RunInParallelTest, WhatFailsIsThrownOnceAllHaveEnded) {
  std::atomic<int> ended = 0;
  try {
    RunInParallel(4, [&](uint32_t i) {
      if (i == 1) {
        while (ended < 2) std::this_thread::yield();
      }
      ++ended;
      if (i % 2 == 1) throw std::runtime_error(std::to_string(i));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");  // though 3 may have failed before
  }
  EXPECT_EQ(ended, 4);
}

}  // namespace
}  // namespace dbx
