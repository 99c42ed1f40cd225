// The ack file: what a run acknowledges is there after SIGKILL, and nothing else passes for it.
#include "system/transaction/ack_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "logging/device/posix_file.h"

namespace dbx {
namespace {

TxnId Id(uint32_t worker, uint64_t sequence) { return TxnId::Make(WorkerId(worker), sequence); }

class AckFileTest : public testing::Test {
 protected:
  AckFileTest() : directory_(testing::TempDir() + "ack_file_test." + std::to_string(::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~AckFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Path() const { return directory_ + "/acks"; }
  static std::vector<TxnId> All(const AckFile& file) {
    std::vector<TxnId> ids;
    file.ForEachAcknowledged([&](TxnId id) { ids.push_back(id); });
    return ids;
  }
  ExitStatus OpenStatus(std::optional<uint64_t> run_id = {}) const {
    try {
      AckFile::Open(Path(), run_id);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(Path()), std::string::npos) << error.what();
      return error.status();
    }
    return ExitStatus::kOk;
  }
  void Patch(uint64_t offset, const std::string& bytes) const {
    std::fstream file(Path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << bytes;
  }
  // Run, workers, bits of each, first sequence, bytes of notes.
  void SealIdentity(const std::array<uint64_t, 5>& identity) const {
    const uint32_t crc = Crc32c(std::as_bytes(std::span(identity)));
    Patch(12, {reinterpret_cast<const char*>(&crc), sizeof crc});
    Patch(16, {reinterpret_cast<const char*>(identity.data()), sizeof identity});
  }

  std::string directory_;
};

TEST_F(AckFileTest, SequencesStartWhereTheRunDoes) {
  constexpr uint64_t kFirst = 1'000'000'000'000;
  {
    auto file = AckFile::Create(Path(), 17, 2, 1000, kFirst);
    for (const TxnId id : {Id(0, kFirst), Id(1, kFirst + 64), Id(0, kFirst - 1)}) file->Acknowledge(id);
  }
  const auto file = AckFile::Open(Path(), 17);
  EXPECT_EQ(All(*file), (std::vector<TxnId>{Id(0, kFirst), Id(1, kFirst + 64)}));
  EXPECT_EQ(file->unrecorded(), 1u);
}

TEST_F(AckFileTest, WhatWasAcknowledgedIsVisitedInAscendingOrder) {
  const std::vector<TxnId> ids = {Id(0, 0), Id(0, 63), Id(0, 64), Id(1, 5), Id(2, 99'999)};
  {
    auto file = AckFile::Create(Path(), 17, 3, 100'000);
    for (auto id = ids.rbegin(); id != ids.rend(); ++id) file->Acknowledge(*id);
  }
  const auto file = AckFile::Open(Path(), 17);
  EXPECT_EQ(All(*file), ids);
  EXPECT_EQ(file->run_id(), 17u);
  EXPECT_EQ(file->workers(), 3u);
  EXPECT_EQ(file->unrecorded(), 0u);
}

TEST_F(AckFileTest, SurvivesSigkill) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = AckFile::Create(Path(), 1, 2, 1000);
    for (uint64_t s = 0; s < 1000; s += 3) file->Acknowledge(Id(s % 2, s));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(All(*AckFile::Open(Path(), 1)).size(), 334u);
}

TEST_F(AckFileTest, AHugeSparseFileIsSkippedThroughItsHoles) {
  {
    auto file = AckFile::Create(Path(), 1, 8, uint64_t{1} << 33);
    file->Acknowledge(Id(1, 7));
    file->Acknowledge(Id(7, (uint64_t{1} << 33) - 1));
  }
  const auto file = AckFile::Open(Path());
  EXPECT_EQ(All(*file), (std::vector<TxnId>{Id(1, 7), Id(7, (uint64_t{1} << 33) - 1)}));
}

TEST_F(AckFileTest, WhatHasNoBitIsCounted) {
  auto file = AckFile::Create(Path(), 1, 1, 1);
  file->Acknowledge(Id(0, file->bits_per_worker()));
  file->Acknowledge(Id(1, 0));
  EXPECT_EQ(file->unrecorded(), 2u);
  EXPECT_TRUE(All(*file).empty());
}

TEST_F(AckFileTest, ReadersAndTheirNotesAreApartFromWriters) {
  {
    auto file = AckFile::Create(Path(), 17, 2, 1000, 5, 100);
    file->Acknowledge(Id(0, 7), true);
    file->Acknowledge(Id(1, 8), false);
    for (const uint32_t worker : {0, 1}) file->NotesOf(WorkerId(worker)).back() = std::byte(worker + 1);
  }
  const auto file = AckFile::Open(Path(), 17);
  EXPECT_EQ(All(*file), std::vector<TxnId>{Id(0, 7)});
  for (const TxnId id : {Id(0, 7), Id(1, 4), Id(1, 9), Id(2, 8)}) EXPECT_FALSE(file->HasAcknowledgedReader(id));
  EXPECT_TRUE(file->HasAcknowledgedReader(Id(1, 8)));
  for (const uint32_t worker : {0, 1}) {
    EXPECT_EQ(file->NotesOf(WorkerId(worker)).back(), std::byte(worker + 1));
    EXPECT_EQ(file->NotesOf(WorkerId(worker)).size(), 4096u);
  }
}

TEST_F(AckFileTest, ANewRunStartsEmpty) {
  AckFile::Create(Path(), 1, 1, 100)->Acknowledge(Id(0, 1));
  EXPECT_TRUE(All(*AckFile::Create(Path(), 2, 1, 100)).empty());
  EXPECT_EQ(OpenStatus(1), ExitStatus::kMismatch);
  EXPECT_EQ(OpenStatus(2), ExitStatus::kOk);
}

TEST_F(AckFileTest, AFileThatFindsNoSpaceIsRemovedAgain) {
  IgnoreFileSizeSignal();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{64 << 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ExitStatus status = ExitStatus::kOk;
  try {
    AckFile::Create(Path(), 1, 1, 10'000'000);
  } catch (const Error& error) {
    status = error.status();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status, ExitStatus::kNoSpace);
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(AckFileTest, ADeviceIsNeitherTakenNorRemoved) {
  const std::string link = Path();
  ASSERT_EQ(::symlink("/dev/null", link.c_str()), 0);
  EXPECT_THROW(AckFile::Create(link, 1, 1, 100), Error);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST_F(AckFileTest, AMissingFileIsAnIoError) { EXPECT_EQ(OpenStatus(), ExitStatus::kIo); }

TEST_F(AckFileTest, AnotherFileIsNeitherReadNorOverwritten) {
  std::ofstream(Path()) << "a letter";
  EXPECT_EQ(OpenStatus(), ExitStatus::kMismatch);
  EXPECT_THROW(AckFile::Create(Path(), 1, 1, 100), Error);
  EXPECT_EQ(std::filesystem::file_size(Path()), 8u);
}

TEST_F(AckFileTest, DamageOfTheHeaderIsRefused) {
  AckFile::Create(Path(), 1, 1, 100);
  Patch(16, "x");
  EXPECT_EQ(OpenStatus(), ExitStatus::kCorrupt);
}

TEST_F(AckFileTest, AFileThatIsCutOffIsRefused) {
  AckFile::Create(Path(), 1, 1, 100);
  for (const uint64_t bytes : {8191, 4096, 100, 8}) {
    std::filesystem::resize_file(Path(), bytes);
    EXPECT_EQ(OpenStatus(), ExitStatus::kCorrupt) << bytes;
  }
}

TEST_F(AckFileTest, RegionsWithoutBitsAreRefusedHoweverManyThereAre) {
  AckFile::Create(Path(), 1, 1, 100);
  std::filesystem::resize_file(Path(), 4096);
  SealIdentity({1, 1 << 16, 0, 0, 0});
  EXPECT_EQ(OpenStatus(), ExitStatus::kCorrupt);
}

// Else the ids of a worker's last transactions are those of the next worker's.
TEST_F(AckFileTest, SequencesThatNoTransactionHasAreRefused) {
  constexpr uint64_t kBits = 4096 * 8, kSequences = uint64_t{1} << TxnId::kSequenceBits;
  AckFile::Create(Path(), 1, 1, kBits, kSequences - kBits);
  EXPECT_EQ(OpenStatus(), ExitStatus::kOk);
  for (const uint64_t first : {kSequences - kBits + 1, kSequences + 1, UINT64_MAX - 3}) {
    SealIdentity({1, 1, kBits, first, 0});
    EXPECT_EQ(OpenStatus(), ExitStatus::kCorrupt) << first;
    EXPECT_THROW(AckFile::Create(Path() + "-2", 1, 1, kBits, first), Error) << first;
  }
}

TEST_F(AckFileTest, SizesThatNoFileHasAreRefused) {
  EXPECT_THROW(AckFile::Create(Path(), 1, 0, 100), Error);
  EXPECT_THROW(AckFile::Create(Path(), 1, 1, 0), Error);
  EXPECT_THROW(AckFile::Create(Path(), 1, 1u << 31, UINT64_MAX), Error);
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

}  // namespace
}  // namespace dbx
