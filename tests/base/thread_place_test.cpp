// Where threads of this process are allowed to run, as the kernel says.
#include "base/thread_place.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "base/affinity.h"
#include "base/error.h"
#include "base/host.h"
#include "base/parallel.h"

namespace dbx {
namespace {

using Cpus = std::vector<uint32_t>;

class PlacedTest : public ::testing::Test {
 protected:
  PlacedTest() : all_(host::AllowedCpus()), last_{all_.back()}, first_{all_.front()} {}
  ~PlacedTest() override { EXPECT_EQ(host::AllowedCpus(), all_) << "what a test leaves"; }

  const Cpus all_, last_, first_;
};

TEST_F(PlacedTest, AThreadHasItsPlaceWhileTheObjectLives) {
  const PlacedThreads placed(
      {.workers = last_, .writers = {first_[0], std::nullopt}, .buffers = {last_[0], first_[0]}});
  {
    const ThreadPlace place = ThreadPlace::OfWorker(0);
    EXPECT_EQ(host::AllowedCpus(), last_);
    const ThreadPlace inner = ThreadPlace::OfWriter(0);
    EXPECT_EQ(host::AllowedCpus(), first_);
  }
  EXPECT_EQ(host::AllowedCpus(), all_);
  const ThreadPlace place = ThreadPlace::NearBuffersOf(0);
  EXPECT_EQ(host::AllowedCpus(), last_);
}

TEST_F(PlacedTest, WhatHasNoPlaceHasThatOfTheProcess) {
  const PlacedThreads placed({.workers = last_, .writers = {std::nullopt}, .buffers = {}});
  const ThreadPlace worker = ThreadPlace::OfWorker(0);
  for (const auto& take : {+[] { return ThreadPlace::OfWorker(1); }, +[] { return ThreadPlace::OfWriter(0); },
                           +[] { return ThreadPlace::OfWriter(1); }, +[] { return ThreadPlace::NearBuffersOf(0); },
                           +[] { return ThreadPlace::OfProcess(); }}) {
    const ThreadPlace place = take();
    EXPECT_EQ(host::AllowedCpus(), all_);
  }
  EXPECT_EQ(host::AllowedCpus(), last_);
}

TEST_F(PlacedTest, WithoutAPlanNothingMoves) {
  const auto nothing_moves = [this] {
    const ThreadPlace worker = ThreadPlace::OfWorker(0);
    const ThreadPlace process = ThreadPlace::OfProcess();
    EXPECT_EQ(host::AllowedCpus(), all_);
  };
  nothing_moves();
  const PlacedThreads of_nothing(Placement{});
  nothing_moves();
}

TEST_F(PlacedTest, ThreadsOfOneTaskRunWhereTheWorkersWill) {
  const PlacedThreads placed({.workers = {last_[0], first_[0]}});
  std::vector<Cpus> allowed(3);
  RunInParallel(3, [&](uint32_t i) { allowed[i] = host::AllowedCpus(); });
  EXPECT_EQ(allowed, (std::vector<Cpus>{last_, first_, all_}));
}

TEST_F(PlacedTest, AThreadThatAWorkerCreatesCanLeaveItsPlace) {
  const PlacedThreads placed({.workers = last_});
  const ThreadPlace worker = ThreadPlace::OfWorker(0);
  Cpus inherited, left;
  Thread([&] {
    inherited = host::AllowedCpus();
    const ThreadPlace place = ThreadPlace::OfProcess();
    left = host::AllowedCpus();
  }).join();
  EXPECT_EQ(inherited, last_);
  EXPECT_EQ(left, all_);
}

TEST_F(PlacedTest, ACpuThatIsGoneIsNamed) {
  const PlacedThreads placed({.workers = {kCpusMax - 1}});
  try {
    RunInParallel(1, [](uint32_t) { FAIL() << "it runs somewhere else"; });
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "--pin: a thread cannot run on CPU 8191: Invalid argument");
  }
}

}  // namespace
}  // namespace dbx
