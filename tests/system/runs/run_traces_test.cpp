// Which runs were provably never served: the table, all of it, and the files from which its lines are read.
#include "system/runs/run_traces.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

constexpr uint64_t kLogBytes = uint64_t{3} << 20;

// A run of two logs in one directory.
class RunTracesTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, uint64_t bytes = kLogBytes) {
    files_.Create("r/" + name, {});
    files_.Change("r/" + name, [bytes](SparseBytes& file) { file.Resize(bytes); });
  }
  void Write(const std::string& name, uint64_t at, std::span<const std::byte> bytes) {
    files_.Change("r/" + name, [&](SparseBytes& file) { file.Write(at, bytes); });
  }
  void WriteByte(const std::string& name, uint64_t at) {
    const std::byte byte{7};
    Write(name, at, {&byte, 1});
  }
  void PutLog(uint32_t index, bool continues, const std::string& suffix = "") {
    RunIdentity identity;
    identity.database_id = 1, identity.run_id = 2, identity.log_count = 2;
    if (continues) identity.parent_run_id = 3, identity.parent_run = 1;
    std::vector<std::byte> header(format::kStreamOffset);
    EncodeHeader(MakeHeader(identity, index), std::span<std::byte, format::kStreamOffset>(header));
    Put(LogFileName(index) + suffix);
    Write(LogFileName(index) + suffix, 0, header);
  }
  // The headers of a run in this state.
  void PutLogs(RunHeaders headers) {
    const bool continues = headers == RunHeaders::kContinuing;
    if (headers == RunHeaders::kNone) return PutLog(0, false, ".tmp");
    if (headers == RunHeaders::kDamaged) return Put(LogFileName(0)), Put(LogFileName(1));
    PutLog(0, continues);
    if (headers != RunHeaders::kIncomplete) PutLog(1, continues, headers == RunHeaders::kUnfinished ? ".tmp" : "");
  }
  RunTraces Traces() { return TracesOf(files_, {"r"}); }
  ExitStatus Verdict() {
    return Caught([&] { never_served_ = WasNeverServed(files_, {"r"}); }, what_);
  }
  void Clear() {
    files_.MakeDirectory("r");
    for (const std::string& name : files_.List("r")) files_.Remove("r/" + name);
  }

  FaultyFileSystem files_;
  bool never_served_ = false;
  std::string what_;
};

// Once more, in words: passed over is only what a crash leaves before the run is served, and what has no byte that is
// not zero, but intact headers of a run that was to continue another or was not finished.
TEST(RunStateTest, EveryLineOfTheTable) {
  using enum RunHeaders;
  for (const RunHeaders headers : {kNone, kDamaged, kIncomplete, kUnfinished, kFresh, kContinuing}) {
    for (const bool has_stream : {false, true}) {
      EXPECT_EQ(StateOf(true, headers, has_stream), RunState::kServed);
      const bool intact = headers != kNone && headers != kDamaged;
      const bool passed_over = !has_stream && (headers == kNone || headers == kUnfinished || headers == kContinuing);
      const RunState expected = passed_over ? RunState::kNeverServed : intact ? RunState::kServed : RunState::kDamaged;
      EXPECT_EQ(StateOf(false, headers, has_stream), expected) << static_cast<int>(headers) << has_stream;
    }
  }
}

TEST_F(RunTracesTest, EveryLineIsReadFromFiles) {
  using enum RunHeaders;
  for (const RunHeaders headers : {kNone, kDamaged, kIncomplete, kUnfinished, kFresh, kContinuing}) {
    for (const bool has_stream : {false, true}) {
      for (const bool has_witness : {false, true}) {
        Clear();
        PutLogs(headers);
        Put("frontier");
        WriteByte("frontier", 100);  // the first block is there before anything is served
        if (headers == kDamaged) WriteByte("log-00.log", 5000);
        if (has_stream && headers != kNone) WriteByte("log-00.log", kLogBytes - 1);
        if (has_stream && headers == kNone) WriteByte("frontier", 4096);
        if (has_witness) Put("manifest");
        EXPECT_TRUE(has_witness || Traces().headers == headers) << static_cast<int>(headers);
        const RunState state = StateOf(has_witness, headers, has_stream);
        EXPECT_EQ(Verdict(), state == RunState::kDamaged ? ExitStatus::kCorrupt : ExitStatus::kOk);
        EXPECT_TRUE(state == RunState::kDamaged || never_served_ == (state == RunState::kNeverServed));
      }
    }
  }
}

TEST_F(RunTracesTest, AByteAnywhereIsFoundAndNamed) {
  for (const uint64_t at :
       {uint64_t{0}, uint64_t{8191}, uint64_t{8192}, uint64_t{12288}, (uint64_t{1} << 20) + 1, kLogBytes - 1}) {
    Clear();
    PutLogs(RunHeaders::kNone);
    Put("frontier", kLogBytes);
    WriteByte("frontier", 4096 + at % (kLogBytes - 4096));
    EXPECT_EQ(Verdict(), ExitStatus::kCorrupt);
    EXPECT_EQ(what_, "cannot recover r/frontier@" + std::to_string(4096 + at % (kLogBytes - 4096)) +
                         ": something was written here, and no log has its name");
  }
}

TEST_F(RunTracesTest, ALogWithItsNameAndWithoutAHeaderIsDamaged) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, kLogBytes}) {
    Clear();
    Put("log-00.log", bytes);
    EXPECT_EQ(Verdict(), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("r/log-00.log@0: neither copy of the log's header is intact"), std::string::npos) << what_;
  }
}

// A directory is not mounted, or not named: what it holds may have been served.
TEST_F(RunTracesTest, ALogThatIsMissingBesideOthersProvesNothing) {
  for (const bool continues : {true, false}) {
    Clear();
    PutLog(1, continues);
    EXPECT_EQ(Verdict(), ExitStatus::kOk);
    EXPECT_FALSE(never_served_);
  }
}

TEST_F(RunTracesTest, OneDamagedHeaderIsEnough) {
  for (const bool continues : {true, false}) {
    Clear();
    PutLog(0, continues);
    Put("log-01.log");
    WriteByte("log-01.log", 17);
    EXPECT_EQ(Verdict(), ExitStatus::kCorrupt);
    EXPECT_NE(what_.find("log-01.log@0:"), std::string::npos) << what_;
  }
}

TEST_F(RunTracesTest, WhatOnlyServedRunsHaveShowsIt) {
  for (const char* name : {"committed", "manifest", "frozen", "successor"}) {
    Clear();
    PutLog(0, true);
    PutLog(1, true);
    Put(name + std::string(".tmp"));
    EXPECT_EQ(Verdict(), ExitStatus::kOk);
    EXPECT_TRUE(never_served_);
    Put(name);
    EXPECT_EQ(Verdict(), ExitStatus::kOk);
    EXPECT_FALSE(never_served_);
  }
}

// They are written before the run is committed, and no transaction writes to them.
TEST_F(RunTracesTest, ABackupAndItsAnchorDoNotShowThatTheRunWasServed) {
  using enum RunHeaders;
  for (const RunHeaders headers : {kNone, kDamaged, kIncomplete, kUnfinished, kFresh, kContinuing}) {
    for (const bool has_witness : {false, true}) {
      Clear();
      PutLogs(headers);
      for (const char* name : {"anchor", "anchor.tmp", "backup-a-00-00.bak", "backup-b-01-00.bak"}) {
        Put(name);
        WriteByte(name, 4096);
      }
      if (has_witness) Put("committed");
      const RunState state = StateOf(has_witness, headers, false);
      EXPECT_EQ(Verdict(), state == RunState::kDamaged ? ExitStatus::kCorrupt : ExitStatus::kOk);
      EXPECT_TRUE(state == RunState::kDamaged || never_served_ == (state == RunState::kNeverServed));
    }
  }
}

TEST_F(RunTracesTest, WhatCannotBeLookedAtIsNotAbsent) {
  using Operation = FaultyFileSystem::Operation;
  Clear();
  PutLog(0, true);
  PutLog(1, true);
  for (const Operation operation : {Operation::kList, Operation::kKindOf, Operation::kOpen, Operation::kRead}) {
    for (uint64_t nth = 1; nth <= (operation == Operation::kRead ? 4 : 1); ++nth) {
      files_.Fail(operation, nth, EIO);
      EXPECT_EQ(Verdict(), ExitStatus::kIo) << what_;
    }
  }
}

}  // namespace
}  // namespace dbx
