// The heap of a run from its load through its lives: what is refused, and that a restart changes nothing before its
// first record.
#include "system/runs/heap_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using Crash = FaultyFileSystem::Crash;

constexpr uint32_t kWorkers = 2, kTupleBytes = 48;
constexpr RowLayout kLayout{.cc_bytes = sizeof(RowVersions)};
constexpr size_t kHeapBytes = 1 << 20;

struct Opened {
  explicit Opened(uint32_t tuple_bytes = kTupleBytes, uint64_t expected_rows = 2000) {
    database.ExpectVersionHeap();
    Schema schema;
    schema.name = "T";
    schema.tuple_bytes = tuple_bytes;
    schema.expected_rows = expected_rows;
    database.CreateTable(schema);
  }
  void Create(FaultyFileSystem& files, const RunNames& names, uint64_t bytes = kHeapBytes) {
    run = HeapRun::Create(files, names, bytes, FlushInstruction::kAuto, database);
  }
  void Load(uint64_t rows) {
    std::byte tuple[kTupleBytes] = {};
    for (Key key = 0; key < rows; ++key) database.table(TableId(0)).LoadRow(WorkerId(key % kWorkers), key, tuple);
  }
  void Open(FaultyFileSystem& files, const RunNames& names, bool private_copy = false) {
    run = HeapRun::Open(files, names, private_copy, FlushInstruction::kAuto, database);
  }
  uint64_t row_count() { return database.table(TableId(0)).row_count(); }

  Database database{kLayout, kWorkers};
  std::unique_ptr<HeapRun> run;
};

class HeapRunTest : public ::testing::Test {
 protected:
  void CreateAndLoad(uint64_t rows = 100) {
    first_.Create(files_, names_);
    first_.Load(rows);
    first_.run->EndLoad(files_, names_);
  }
  ExitStatus StatusOfOpening(FaultyFileSystem& files) {
    Opened next;
    return Caught([&] { next.Open(files, names_); }, what_);
  }
  void ExpectRefused(ExitStatus status, const std::string& why) {
    EXPECT_EQ(StatusOfOpening(files_), status);
    EXPECT_EQ(what_, why);
  }
  std::vector<std::byte> BytesOf(FaultyFileSystem& files, const std::string& path) {
    const FileBytes bytes = files.Map(path);
    return {bytes.bytes.begin(), bytes.bytes.end()};
  }

  // One whose gaps leave no room for another, behind the newest.
  void AppendFullRecord(FaultyFileSystem& files) {
    const auto memory = files.MapPersistent("gaps.log", {});
    GapLog log(*memory, names_.run_id);
    GapRecord record = *log.newest();
    record.sequence += 1;
    record.c_p = 20'000, record.c_d = 20'100;
    for (uint64_t low = 10; low < 16'400; low += 4) record.gaps.Add({low, low + 2});
    while (!GapLog::Fits(record.gaps.gaps().size(), kWorkers)) {
      GapSet fewer;
      for (size_t i = 0; i + 1 < record.gaps.gaps().size(); ++i) fewer.Add(record.gaps.gaps()[i]);
      record.gaps = fewer;
    }
    log.Append(record);
  }

  RunNames names_{11, 12, 13, "heap.pm", "gaps.log", "indexes.pm"};
  FaultyFileSystem files_;
  Opened first_;
  std::string what_;
};

TEST_F(HeapRunTest, ItsLoadIsDurableOnceItHasEnded) {
  CreateAndLoad();
  EXPECT_EQ(first_.run->newest().life, 1u);
  EXPECT_EQ(first_.run->first_sequence(), 0u);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    FaultyFileSystem crashed(files_.CrashImage(Crash::kSubset, seed));
    Opened next;
    next.Open(crashed, names_);
    next.run->Check(2, /*checksums=*/true);
    next.run->AdoptAll(2);
    EXPECT_EQ(next.row_count(), 100u);
  }
}

// A workload may expect another number of rows with other options, such as the number of threads.
TEST_F(HeapRunTest, ItsPartitionsAreThoseOfTheLoad) {
  CreateAndLoad(1500);
  Opened next(kTupleBytes, /*expected_rows=*/100'000);
  next.Open(files_, names_, /*private_copy=*/true);
  next.run->Check(2, /*checksums=*/true);
  next.run->AdoptAll(2);
  EXPECT_EQ(next.row_count(), 1500u);
}

// Of a run that has no logs with their names yet, so that nothing is lost with it.
TEST_F(HeapRunTest, ALoadThatWasCutIsRefused) {
  first_.Create(files_, names_);
  first_.Load(100);
  ExpectRefused(ExitStatus::kMismatch,
                "cannot recover heap.pm@0: its load was never complete, and nothing was served from it");
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  EXPECT_EQ(Caught([&] { first_.run->EndLoad(files_, names_); }, what_), ExitStatus::kIo);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    FaultyFileSystem crashed(files_.CrashImage(Crash::kSubset, seed));
    EXPECT_EQ(StatusOfOpening(crashed), ExitStatus::kMismatch);
  }
}

TEST_F(HeapRunTest, ALifeFollowsAnotherAndNumbersItsTransactionsAnew) {
  CreateAndLoad();
  uint64_t before = first_.run->newest().c_d;
  std::unique_ptr<FaultyFileSystem> files = std::make_unique<FaultyFileSystem>(files_.CrashImage(Crash::kDurableOnly));
  for (uint64_t life = 2; life < 6; ++life) {
    Opened next;
    next.Open(*files, names_);
    next.run->StartLife(1);
    EXPECT_EQ(next.run->newest().life, life);
    EXPECT_EQ(next.run->first_sequence(), (life - 1) << 32);
    EXPECT_EQ(next.run->newest().last_sequences, std::vector<uint64_t>(kWorkers, (life - 1) << 32));
    EXPECT_EQ(next.run->start().value(), before - 1);
    before = next.run->newest().c_d;
    next.run->AdoptAll(2);
    EXPECT_EQ(next.row_count(), 100u);
    files = std::make_unique<FaultyFileSystem>(files->CrashImage(Crash::kDurableOnly));
  }
}

TEST_F(HeapRunTest, NothingIsChangedBeforeTheFirstRecordAndNothingAtAllInAPrivateCopy) {
  CreateAndLoad();
  // A loser, which an adoption frees.
  HeapSlot* const slot = first_.database.table(TableId(0)).versions()->Take(WorkerId(0), 7, TxnId{9});
  slot->begin.store(5);
  first_.run->heap().writer(WorkerId(0)).WriteBack(reinterpret_cast<const std::byte*>(slot), sizeof(HeapSlot));
  first_.run->heap().writer(WorkerId(0)).Drain();
  FaultyFileSystem files(files_.CrashImage(Crash::kDurableOnly));
  const auto heap = BytesOf(files, "heap.pm"), gaps = BytesOf(files, "gaps.log");
  {
    Opened copy;
    copy.Open(files, names_, /*private_copy=*/true);
    copy.run->Check(2, true);
    copy.run->AdoptAll(2);
    EXPECT_EQ(copy.row_count(), 100u);
  }
  EXPECT_TRUE(BytesOf(files, "heap.pm") == heap && BytesOf(files, "gaps.log") == gaps);
  Opened next;
  next.Open(files, names_);
  next.run->Check(2, true);
  EXPECT_TRUE(BytesOf(files, "heap.pm") == heap && BytesOf(files, "gaps.log") == gaps);
  next.run->StartLife(1);
  EXPECT_TRUE(BytesOf(files, "heap.pm") == heap);
  EXPECT_FALSE(BytesOf(files, "gaps.log") == gaps);
  EXPECT_TRUE(next.run->newest().gaps.Contains(5));
}

TEST_F(HeapRunTest, GapsThatDoNotFitIntoARecordAreSweptFirst) {
  CreateAndLoad();
  AppendFullRecord(files_);
  FaultyFileSystem files(files_.CrashImage(Crash::kDurableOnly));
  Opened next;
  next.Open(files, names_);
  next.run->StartLife(2);
  EXPECT_TRUE(next.run->newest().gaps.empty());
  EXPECT_EQ(next.row_count(), 100u);
}

// A process was killed before its newest record was durable: that record frees no version which an older one needs.
TEST_F(HeapRunTest, NothingIsSweptByARecordThatAPowerFailureMayTake) {
  CreateAndLoad();
  TableVersions& versions = *first_.database.table(TableId(0)).versions();
  for (Key key = 0; key < 100; ++key) {
    HeapSlot* const slot = versions.Take(WorkerId(0), key, TxnId{});
    std::memset(slot->tuple(), 7, kTupleBytes);
    slot->checksum = heap_format::ChecksumOf(*slot);
    slot->begin.store(18'000);
    PersistentWriter& writer = versions.heap().writer(WorkerId(0));
    writer.WriteBack(reinterpret_cast<const std::byte*>(slot), versions.slot_bytes());
    writer.Drain();
  }
  FaultyFileSystem scratch(files_.CrashImage(Crash::kDurableOnly));
  AppendFullRecord(scratch);
  const std::vector<std::byte> with_record = BytesOf(scratch, "gaps.log");
  bool failed = true;
  for (uint64_t sync = 1; failed; ++sync) {
    FaultyFileSystem files(files_.CrashImage(Crash::kDurableOnly));
    const auto memory = files.MapPersistent("gaps.log", {});
    std::copy(with_record.begin(), with_record.end(), memory->bytes().begin());
    Opened next;
    next.Open(files, names_);
    files.Fail(FaultyFileSystem::Operation::kSync, sync, EIO);
    failed = Caught([&] { next.run->StartLife(1); }, what_) == ExitStatus::kIo;
    FaultyFileSystem crashed(files.CrashImage(Crash::kDurableOnly));
    Opened last;
    last.Open(crashed, names_);
    last.run->StartLife(1);
    last.run->AdoptAll(1);
    EXPECT_EQ(last.row_count(), 100u) << "after the failure of sync " << sync;
  }
}

TEST_F(HeapRunTest, LinesOfIndexesLieInFreeSlotsThatALaterLifeUses) {
  CreateAndLoad();
  const HeapOptions options = first_.run->OptionsOfLog(10, 2);
  ASSERT_EQ(options.lines_of_indexes.size(), kWorkers);
  std::set<std::byte*> lines;
  for (const auto& of_worker : options.lines_of_indexes) {
    EXPECT_GE(of_worker.size(), VersionHeap::kSlotsPerExtentMin);
    for (std::byte* line : of_worker) {
      std::memset(line, 0xFF, heap_format::kLineBytes);
      EXPECT_TRUE(lines.insert(line).second) << "two workers store to it, or it is used twice";
    }
  }
  first_.run.reset();
  Opened next;
  next.Open(files_, names_);
  next.run->Check(1, /*checksums=*/true);
  next.run->StartLife(1);
  next.run->AdoptAll(1);
  EXPECT_EQ(next.row_count(), 100u);
  EXPECT_GE(next.database.table(TableId(0)).versions()->free_slots(), lines.size());
}

TEST_F(HeapRunTest, AHeapWithoutRoomForLinesOfIndexesSaysSo) {
  CreateAndLoad();
  EXPECT_EQ(Caught(
                [&] {
                  for (;;) first_.run->OptionsOfLog(10, 1);
                },
                what_),
            ExitStatus::kNoSpace);
}

TEST_F(HeapRunTest, AnotherRunsFilesAreRefused) {
  CreateAndLoad();
  names_.run_id = 99;
  ExpectRefused(ExitStatus::kMismatch, "cannot recover heap.pm@0: the heap of another run");
  names_.run_id = 11, names_.database_id = 99;
  ExpectRefused(ExitStatus::kMismatch, "cannot recover heap.pm@0: the heap of another run");
  names_.database_id = 12, names_.schema_hash = 99;
  ExpectRefused(ExitStatus::kMismatch, "cannot recover heap.pm@0: a heap of tables of another shape");
  names_.schema_hash = 13;
  Opened other(kTupleBytes * 2);
  EXPECT_EQ(Caught([&] { other.Open(files_, names_); }, what_), ExitStatus::kMismatch);
  EXPECT_EQ(what_, "cannot recover heap.pm@0: a heap of tables of another shape");
}

TEST_F(HeapRunTest, ALogWithoutARecordIsRefused) {
  CreateAndLoad();
  const auto memory = files_.MapPersistent("gaps.log", {});
  std::memset(memory->bytes().data(), 0, memory->bytes().size());
  ExpectRefused(ExitStatus::kCorrupt,
                "cannot recover gaps.log@0: no record in it is valid, and which versions count is not known without "
                "one");
}

TEST_F(HeapRunTest, AHeapThatIsTooSmallSaysSoAndAnAutomaticOneIsNot) {
  first_.Create(files_, names_, 150 << 10);
  EXPECT_EQ(Caught([&] { first_.Load(2000); }, what_), ExitStatus::kNoSpace);
  EXPECT_NE(what_.find("--heap_bytes"), std::string::npos);
  FaultyFileSystem files;
  Opened other;
  other.Create(files, names_, /*bytes=*/0);
  other.Load(2000);
  other.run->EndLoad(files, names_);
  EXPECT_EQ(other.row_count(), 2000u);
  FaultyFileSystem too_small;
  Opened third;
  EXPECT_EQ(Caught([&] { third.Create(too_small, names_, 10'000); }, what_), ExitStatus::kUsage);
}

}  // namespace
}  // namespace dbx
