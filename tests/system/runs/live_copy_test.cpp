#include "tests/system/runs/live_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace dbx::testing {
namespace {

constexpr size_t kWords = size_t{1} << 15;

class LiveCopyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("dbx-live-copy-" + std::to_string(getpid()))).string();
    std::ofstream(path_, std::ios::binary) << std::string(kWords * sizeof(uint64_t), '\0');
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    at_ = ::mmap(nullptr, kWords * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    ASSERT_NE(at_, MAP_FAILED);
  }
  void TearDown() override {
    ::munmap(at_, kWords * sizeof(uint64_t));
    std::filesystem::remove(path_);
  }
  void Store(size_t word, uint64_t value) {
    AtomicRef<uint64_t>(static_cast<uint64_t*>(at_)[word]).store(value, std::memory_order_release);
  }

  std::string path_;
  void* at_ = nullptr;
};

std::vector<uint64_t> WordsOf(const std::vector<char>& bytes) {
  std::vector<uint64_t> words(bytes.size() / sizeof(uint64_t));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(uint64_t));
  return words;
}

// Both halves of a word are the round in which it was stored. The writer goes from the last word to the first, so that
// at each moment, too, no word is older than one before it.
TEST_F(LiveCopyTest, EachWordIsOldOrNewAndNoneIsOlderThanOneBefore) {
  constexpr uint64_t kBothHalves = 0x1'0000'0001;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t round = 1; !done; ++round) {
      for (size_t i = kWords; i-- > 0;) Store(i, round * kBothHalves);
    }
  });
  for (int n = 0; n < 50; ++n) {
    const std::vector<uint64_t> words = WordsOf(CopyOfLiveFile(path_));
    EXPECT_EQ(words.size(), kWords);
    EXPECT_TRUE(std::all_of(words.begin(), words.end(), [](uint64_t word) { return word % kBothHalves == 0; }));
    EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
  }
  done = true;
  writer.join();
}

TEST_F(LiveCopyTest, AMissingOrEmptyFileHasNoBytes) {
  EXPECT_TRUE(CopyOfLiveFile(path_ + ".missing").empty());
  std::ofstream(path_ + ".empty").close();
  EXPECT_TRUE(CopyOfLiveFile(path_ + ".empty").empty());
  std::filesystem::remove(path_ + ".empty");
}

}  // namespace
}  // namespace dbx::testing
