// A small paged database with its backup on files that crash, and a log of which a checkpoint asks in vain: what the
// tests of checkpoints have in common. Rows are changed as a log does it, under the latch of their page.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/host.h"
#include "logging/backup/fuzzy_checkpoint.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {

// Packed images, by table and page.
using AllImages = std::vector<std::vector<std::vector<std::byte>>>;

// The backup that the anchor of a file system names; throws what its readers throw.
struct NamedBackup {
  BackupAnchor anchor;
  AllImages images;
};
inline NamedBackup ReadBackup(FileSystem& files, const std::vector<std::string>& directories) {
  const std::string path = directories[0] + "/" + kAnchorFileName;
  NamedBackup named{DecodeAnchor(files.Map(path).bytes, path), {}};
  const BackupAnchor& anchor = named.anchor;
  const BackupReader reader(files, ShapeOf(anchor, directories), anchor.copy, anchor.number, PagesOf(anchor));
  for (uint16_t table = 0; table < anchor.tables.size(); ++table) {
    std::vector<std::vector<std::byte>>& pages = named.images.emplace_back(anchor.tables[table].pages);
    for (uint32_t part = 0; part < reader.parts(); ++part) {
      reader.ReadPart(TableId(table), part, [&](uint32_t page, const std::byte* images) {
        pages[page].assign(images, images + reader.shape().ImageBytes(table));
      });
    }
  }
  return named;
}

class FakeLog final : public CheckpointedLog {
 public:
  std::vector<Lsn> NeededFrom() override {
    const std::vector<Lsn> reserved = Next("needed");
    return needed.empty() ? reserved : needed;
  }
  std::vector<uint64_t> EndedBelow() override {
    Note("ended");
    return {7, 9};
  }
  std::vector<Lsn> AppendBegin(uint32_t number) override {
    begun_number.store(number);
    return Next("begin " + std::to_string(number));
  }
  void AwaitFilled(const std::vector<Lsn>& positions) override {
    EXPECT_EQ(positions, given);
    Note("filled");
  }
  std::vector<Lsn> AppendEnd(uint32_t number) override { return Next("end " + std::to_string(number)); }
  void AwaitDurable(const std::vector<Lsn>& positions) override {
    EXPECT_EQ(positions, given);
    Note("durable");
  }
  uint64_t ReservedBytes() const override { return reserved_bytes.load(); }
  void CountDiscarded(uint64_t bytes) override { discarded_bytes += bytes; }

  std::vector<std::string> calls;
  std::function<void(const std::string&)> on_call;  // may throw
  std::vector<Lsn> given = {Lsn(0), Lsn(4096)};     // last
  std::vector<Lsn> needed;                          // if it is not what was given
  Atomic<uint32_t> begun_number{0};
  Atomic<uint64_t> reserved_bytes{0};
  uint64_t discarded_bytes = 0;

 private:
  void Note(const std::string& call) {
    calls.push_back(call);
    if (on_call) on_call(call);
  }
  std::vector<Lsn> Next(const std::string& call) {
    for (Lsn& lsn : given) lsn += 64;
    Note(call);
    return given;
  }
};

class CheckpointedDatabase {
 public:
  using Tuple = std::array<uint64_t, 25>;  // all words of a row are equal
  static constexpr Key kRows = 60;         // of each table

  // With the files of a backup, and nothing in them.
  explicit CheckpointedDatabase(std::vector<std::string> run_directories = {"a", "b"})
      : directories(std::move(run_directories)), database({}, 1) {
    for (const std::string& directory : directories) files.MakeDirectory(directory);
    files.SyncDirectory(".");
    database.PageEveryTable(2048);  // in a frame, several sectors
    for (const bool ordered : {false, true}) {
      Schema schema;
      schema.name = ordered ? "ordered" : "hashed";
      schema.tuple_bytes = sizeof(Tuple);
      schema.expected_rows = kRows;
      schema.ordered = ordered;
      database.CreateTable(schema);
      for (Key key = 0; key < kRows; ++key) Load(database.table_count() - 1, key);
    }
  }
  // Makes the files, writes the backup with which the run begins, and its anchor.
  void Begin() {
    backup = std::make_shared<BackupWriter>(files, ShapeOf(database, kRunId, directories), true);
    BackupAnchor identity;
    identity.database_id = kDatabaseId;
    identity.run_id = kRunId;
    identity.begin = identity.end = identity.needed = {Lsn(0), Lsn(4096)};
    identity.sequences = {3, 5};
    anchor = WriteInitialBackup(database, *backup, identity);
    WriteFileAtomically(files, anchor_path(), EncodeAnchor(anchor));
  }
  BackupOptions OptionsOf(CheckpointOptions checkpoints = {}) {
    return {&database, &files, backup, anchor_path(), anchor, checkpoints, truncated_logs};
  }
  FuzzyCheckpoint Checkpoints() { return {log, OptionsOf()}; }

  // Files of the logs, full of sevens, which checkpoints truncate.
  static constexpr size_t kLogBlocks = 8;  // behind the headers
  void MakeLogs() {
    truncated_logs = {directories[0] + "/log-00.log", directories[1] + "/log-01.log"};
    const std::vector<std::byte> sevens(format::kStreamOffset + kLogBlocks * format::kBlockBytes, std::byte{7});
    for (const std::string& path : truncated_logs) {
      const auto device = files.Create(path, {});
      device->StartWrite(0, sevens);
      device->Complete(true);
    }
  }
  // Which blocks of a log an image has not as zeros.
  static std::vector<bool> BlocksOf(const FaultyFileSystem::Image& image, const std::string& path) {
    std::vector<bool> blocks;
    const std::vector<std::byte> bytes = image.files.at(path).All();
    for (size_t at = 0; at < bytes.size(); at += format::kBlockBytes) blocks.push_back(bytes[at] != std::byte{0});
    return blocks;
  }

  void Load(size_t table, Key key) {
    const Tuple tuple = TupleOf(key);
    table_of(table).LoadRow(WorkerId(0), key, std::as_bytes(std::span(tuple)));
    const PageSpace::Place at = pages_of(table).PlaceOf(table_of(table).Find(key));
    PageSpace::Latched(pages_of(table), at.page).SetDirty();
  }
  // Returns the number that a record of the change would have.
  uint32_t Change(size_t table, Key key, uint64_t value) {
    Row* const row = table_of(table).Find(key);
    const PageSpace::Place at = pages_of(table).PlaceOf(row);
    PageSpace::Latched latched(pages_of(table), at.page);
    const Tuple tuple = TupleOf(value);
    std::memcpy(pages_of(table).TupleOf(row), &tuple, sizeof tuple);
    latched.SetDirty();
    return latched.number();
  }
  AllImages Images() const {
    AllImages all;
    for (size_t table = 0; table < database.table_count(); ++table) {
      std::vector<std::vector<std::byte>>& pages = all.emplace_back(pages_of(table).page_count());
      for (uint32_t page = 0; page < pages.size(); ++page) {
        pages[page].resize(pages_of(table).PageImageBytes());
        const PageSpace::Latched latched(pages_of(table), page);
        pages_of(table).CopyImages(page, pages[page].data());
      }
    }
    return all;
  }
  uint64_t page_count() const {
    uint64_t count = 0;
    for (size_t table = 0; table < database.table_count(); ++table) count += pages_of(table).page_count();
    return count;
  }
  // Calls visit(Latched&) for each page of each table.
  void ForEachPage(auto&& visit) const {
    for (size_t table = 0; table < database.table_count(); ++table) {
      for (uint32_t page = 0; page < pages_of(table).page_count(); ++page) {
        PageSpace::Latched latched(pages_of(table), page);
        visit(latched);
      }
    }
  }
  // What a crash now would leave at least.
  NamedBackup Durable() {
    FaultyFileSystem crashed(files.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
    return ReadBackup(crashed, directories);
  }

  static Tuple TupleOf(uint64_t value) {
    Tuple tuple;
    tuple.fill(value);
    return tuple;
  }
  Table& table_of(size_t table) const { return database.table(TableId(static_cast<uint16_t>(table))); }
  PageSpace& pages_of(size_t table) const { return *table_of(table).pages(); }
  std::string anchor_path() const { return directories[0] + "/" + kAnchorFileName; }

  static constexpr uint64_t kDatabaseId = 5;
  static constexpr uint64_t kRunId = 6;
  const std::vector<std::string> directories;
  FaultyFileSystem files;
  Database database;
  FakeLog log;
  std::shared_ptr<BackupWriter> backup;
  BackupAnchor anchor;
  std::vector<std::string> truncated_logs;
};

}  // namespace dbx
