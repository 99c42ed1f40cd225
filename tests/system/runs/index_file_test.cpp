// The file of frozen secondary indexes: what is written is mapped, and nothing else is.
#include "system/runs/index_file.h"

#include <gtest/gtest.h>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

constexpr uint64_t kHeapId = 77;

class IndexFileTest : public ::testing::Test {
 protected:
  IndexFileTest() {
    for (const char* name : {"a", "b"}) loaded_.CreateSecondaryIndex(name);
    for (uint64_t i = 0; i < 100; ++i) loaded_.secondary_indexes()[0]->Add(i / 5, std::to_string(i % 3), i);
    loaded_.secondary_indexes()[1]->Add(3, "x", 4);
    for (const auto& index : loaded_.secondary_indexes()) index->Freeze();
    WriteIndexFile(files_, "indexes.pm", kHeapId, loaded_);
  }
  static void CreateIndexes(Database& database, size_t count) {
    for (size_t i = 0; i < count; ++i) database.CreateSecondaryIndex(std::to_string(i));
  }
  ExitStatus StatusOfMapping(FaultyFileSystem& files, size_t indexes = 2, uint64_t heap_id = kHeapId) {
    Database database({}, 1);
    CreateIndexes(database, indexes);
    return Caught([&] { (void)MapIndexFile(files, "indexes.pm", heap_id, database); }, what_);
  }
  // Of a file with these bytes.
  ExitStatus StatusOfMapping(std::span<const std::byte> bytes) {
    FaultyFileSystem files;
    const auto memory = files.MapPersistent("indexes.pm", {.create_bytes = bytes.size()});
    std::copy(bytes.begin(), bytes.end(), memory->bytes().begin());
    return StatusOfMapping(files);
  }

  Database loaded_{{}, 1};
  FaultyFileSystem files_;
  std::string what_;
};

TEST_F(IndexFileTest, WhatIsWrittenIsDurableAndIsMapped) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultyFileSystem crashed(files_.CrashImage(FaultyFileSystem::Crash::kSubset, seed));
    Database database({}, 1);
    CreateIndexes(database, 2);
    const auto memory = MapIndexFile(crashed, "indexes.pm", kHeapId, database);
    ASSERT_NE(memory, nullptr);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(database.secondary_indexes()[i]->Digest(), loaded_.secondary_indexes()[i]->Digest());
    }
    EXPECT_EQ(database.secondary_indexes()[0]->Find(4).size(), 5u);
  }
}

TEST_F(IndexFileTest, WithoutAFileTheIndexesAreAsBefore) {
  FaultyFileSystem empty;
  Database database({}, 1), without({}, 1);
  CreateIndexes(database, 1);
  EXPECT_EQ(MapIndexFile(empty, "indexes.pm", kHeapId, database), nullptr);
  EXPECT_FALSE(database.secondary_indexes()[0]->frozen());
  WriteIndexFile(empty, "indexes.pm", kHeapId, without);
  EXPECT_EQ(empty.KindOf("indexes.pm"), FileSystem::Entry::kNone) << "there are no indexes";
}

TEST_F(IndexFileTest, EveryDamageIsFound) {
  const FileBytes whole = files_.Map("indexes.pm");
  for (size_t at = 0; at < whole.bytes.size(); ++at) {
    std::vector<std::byte> bytes(whole.bytes.begin(), whole.bytes.end());
    bytes[at] ^= std::byte{4};
    ASSERT_EQ(StatusOfMapping(bytes), ExitStatus::kCorrupt) << at;
    ASSERT_TRUE(what_.starts_with("cannot recover indexes.pm@0: ")) << what_;
  }
  for (const size_t bytes : {size_t{1}, size_t{39}, whole.bytes.size() - 1}) {
    EXPECT_EQ(StatusOfMapping(whole.bytes.first(bytes)), ExitStatus::kCorrupt) << bytes;
  }
}

TEST_F(IndexFileTest, ThoseOfAnotherHeapOrDatabaseAreRefused) {
  EXPECT_EQ(StatusOfMapping(files_, 2, kHeapId + 1), ExitStatus::kMismatch);
  EXPECT_EQ(StatusOfMapping(files_, 1), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover indexes.pm@0: the secondary indexes of another heap");
}

}  // namespace
}  // namespace dbx
