#include "logging/device/posix_persistent_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "logging/device/posix_file_system.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx {
namespace {

constexpr size_t kBytes = 64 << 10;

// On a disk and on a RAM disk, where there are both.
class PosixMemoryTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(GetParam())) GTEST_SKIP() << "there is no " << GetParam();
    dir_.emplace(GetParam());
    path_ = *dir_ / "heap";
  }
  std::unique_ptr<PersistentMemory> Create(FlushInstruction flush = FlushInstruction::kAuto) {
    return files_.MapPersistent(path_, {.create_bytes = kBytes, .flush = flush});
  }
  std::vector<std::byte> Contents() {
    const FileBytes file = files_.Map(path_);
    return {file.bytes.begin(), file.bytes.end()};
  }

  PosixFileSystem files_;
  std::optional<TempDir> dir_;
  std::string path_, what_;
};

TEST_P(PosixMemoryTest, ANewFileIsZerosAndKeepsWhatIsStored) {
  for (const FlushInstruction flush : FlushInstructions()) {
    {
      const auto memory = Create(flush);
      ASSERT_EQ(memory->bytes().size(), kBytes);
      EXPECT_EQ(Contents(), std::vector<std::byte>(kBytes));
      const auto writer = memory->NewWriter();
      std::memset(memory->bytes().data() + 100, 7, 1000);
      writer->WriteBack(memory->bytes().data() + 100, 1000);
      std::memset(memory->bytes().data() + 40'000, 8, 1);
      writer->WriteBack(memory->bytes().data() + 40'000, 1);
      writer->Drain();
      writer->Drain();
    }
    const auto memory = files_.MapPersistent(path_, {.flush = flush});
    EXPECT_EQ(memory->bytes().size(), kBytes);
    EXPECT_EQ(memory->bytes()[1099], std::byte{7});
    EXPECT_EQ(memory->bytes()[1100], std::byte{0});
    EXPECT_EQ(memory->bytes()[40'000], std::byte{8});
    files_.Remove(path_);
  }
}

TEST_P(PosixMemoryTest, ItsKindIsNamed) {
  const std::string kind = Create(FlushInstruction::kClflush)->kind();
  const bool is_ram = files_.Describe(dir_->path(), {}).kind == "ram";
  if (is_ram) {
    EXPECT_EQ(kind, "RAM as a stand-in, CLFLUSH");
  } else {
    EXPECT_TRUE(kind == "a file, msync" || kind == "persistent memory, CLFLUSH") << kind;
  }
}

TEST_P(PosixMemoryTest, APrivateCopyLeavesTheFile) {
  std::memset(Create()->bytes().data(), 1, kBytes);
  const auto copy = files_.MapPersistent(path_, {.copy_on_write = true});
  const auto writer = copy->NewWriter();
  EXPECT_EQ(copy->bytes()[5], std::byte{1});
  std::memset(copy->bytes().data(), 2, kBytes);
  writer->WriteBack(copy->bytes().data(), kBytes);
  writer->Drain();
  EXPECT_EQ(Contents(), std::vector<std::byte>(kBytes, std::byte{1}));
  EXPECT_EQ(copy->bytes()[5], std::byte{2});
}

TEST_P(PosixMemoryTest, AnExistingFileIsLeftAloneAndAMissingOneIsAnError) {
  std::memset(Create()->bytes().data(), 1, kBytes);
  EXPECT_EQ(Caught([&] { Create(); }, what_), ExitStatus::kIo);
  EXPECT_EQ(what_, "cannot create " + path_ + ": File exists");
  EXPECT_EQ(Contents(), std::vector<std::byte>(kBytes, std::byte{1}));
  files_.Remove(path_);
  for (const bool copy : {false, true}) {
    EXPECT_EQ(Caught([&] { files_.MapPersistent(path_, {.copy_on_write = copy}); }, what_), ExitStatus::kIo);
    EXPECT_EQ(what_, "cannot map " + path_ + ": No such file or directory");
  }
}

TEST_P(PosixMemoryTest, WithoutSpaceThereIsNoFile) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{kBytes / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto status = Caught([&] { Create(); }, what_);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status, ExitStatus::kNoSpace) << what_;
  EXPECT_FALSE(std::filesystem::exists(path_));
}

INSTANTIATE_TEST_SUITE_P(Directories, PosixMemoryTest, ::testing::Values("/tmp", "/dev/shm"),
                         [](const auto& info) { return info.index == 0 ? "Disk" : "Ram"; });

TEST(FlushInstructions, EveryProcessorHasOne) {
  ASSERT_FALSE(FlushInstructions().empty());
  EXPECT_EQ(FlushInstructions().back(), FlushInstruction::kClflush);
  EXPECT_STREQ(NameOf(FlushInstruction::kClwb), "CLWB");
}

}  // namespace
}  // namespace dbx
