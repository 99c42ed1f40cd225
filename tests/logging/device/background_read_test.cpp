// One read at a time on another thread: what its owner sees of it, and when.
#include "logging/device/background_read.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/logging/caught.h"

namespace dbx {
namespace {

// Closed until Open().
class Gate {
 public:
  void Pass() { open_.wait(false); }
  void Open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> open_{false};
};

TEST(BackgroundRead, EachReadGivesWhatItReturned) {
  BackgroundRead read;
  std::vector<std::byte> memory(1);
  for (size_t i = 0; i < 1000; ++i) {
    read.Start([&memory, i] {
      memory[0] = std::byte(i);
      return i;
    });
    EXPECT_EQ(read.Take(), i);
    EXPECT_EQ(memory[0], std::byte(i));
  }
}

TEST(BackgroundRead, IsNotDoneBeforeTheReadIs) {
  Gate gate;
  BackgroundRead read;
  EXPECT_FALSE(read.started());
  read.Start([&gate]() -> size_t {
    gate.Pass();
    return 7;
  });
  EXPECT_TRUE(read.started());
  EXPECT_FALSE(read.done());
  gate.Open();
  while (!read.done()) std::this_thread::yield();
  EXPECT_EQ(read.Take(), 7u);
  EXPECT_FALSE(read.started());
}

TEST(BackgroundRead, OnlyWhatIsNotReadHereTakesAThread) {
  BackgroundRead read;
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id reader;
  const auto say_who = [&reader]() -> size_t {
    reader = std::this_thread::get_id();
    return 1;
  };
  read.ReadHere(say_who);
  EXPECT_TRUE(read.done());
  EXPECT_EQ(read.Take(), 1u);
  EXPECT_EQ(reader, here);
  read.Start(say_who);
  EXPECT_EQ(read.Take(), 1u);
  EXPECT_NE(reader, here);
}

TEST(BackgroundRead, TakeThrowsWhatTheReadThrewAndTheNextOneIsFine) {
  BackgroundRead read;
  const auto fail = []() -> size_t { throw Error(ExitStatus::kIo, "cannot read"); };
  for (const bool here : {false, true}) {
    here ? read.ReadHere(fail) : read.Start(fail);
    std::string what;
    EXPECT_EQ(Caught([&] { read.Take(); }, what), ExitStatus::kIo);
    EXPECT_EQ(what, "cannot read");
    EXPECT_FALSE(read.started());
    read.Start([]() -> size_t { return 3; });
    EXPECT_EQ(read.Take(), 3u);
  }
}

TEST(BackgroundRead, TheDestructorWaitsForAReadThatIsUnderWay) {
  Gate begun, gate;
  std::atomic<bool> over{false};
  std::jthread opener;
  {
    BackgroundRead read;
    read.Start([&]() -> size_t {
      begun.Open();
      gate.Pass();
      over = true;
      throw Error(ExitStatus::kIo, "an error that is not reported");
    });
    begun.Pass();
    opener = std::jthread([&gate] { gate.Open(); });
  }
  EXPECT_TRUE(over);
}

}  // namespace
}  // namespace dbx
