// A run's files and their copy, over a pipe.
#include <gtest/gtest.h>

#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/host.h"
#include "logging/replication/replica.h"
#include "logging/replication/replica_stream.h"
#include "logging/replication/replicated_file_system.h"
#include "tests/logging/device/faulty_file_system.h"
#include "tests/logging/replication/pipe.h"

namespace dbx::testing {
namespace {

constexpr size_t kBlock = 4096;

class ReplicationTest : public ::testing::Test {
 protected:
  ReplicationTest() {
    CreateDirectories(beneath_, "logs");
    CreateDirectories(copy_, "copy");
  }
  ~ReplicationTest() override { Stop(); }

  void Start(bool synchronous) {
    auto [run_end, replica_end] = Pipe::Make(pipe_);
    replica_channel_ = std::move(replica_end);
    replica_.emplace(copy_, copies_, *replica_channel_);
    thread_.emplace([this] {
      try {
        result_ = replica_->Run();
      } catch (const Error& e) {
        refusal_ = e.what();
      }
      replica_channel_->Close();
    });
    stream_ = std::make_unique<ReplicaStream>(std::move(run_end), "the replica", synchronous, LinkEmulation{}, 1);
    files_ = std::make_unique<ReplicatedFileSystem>(beneath_, std::vector<std::string>{"logs"}, *stream_);
  }
  // The run is over; the replica has what it has.
  void Stop() {
    files_.reset();
    stream_.reset();
    thread_.reset();
  }
  std::unique_ptr<PersistentMemory> MapMemory(bool commits, size_t bytes = kBlock) {
    files_->MakeDirectory("logs/run");
    files_->SyncDirectory("logs");
    return files_->MapPersistent("logs/run/m", {.create_bytes = bytes, .commits = commits});
  }
  std::string Copied(const std::string& path) {
    const FileBytes file = copy_.Map(path);
    return std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  }
  static void Store(PersistentMemory& memory, PersistentWriter& writer, size_t offset, const std::string& text) {
    std::memcpy(memory.bytes().data() + offset, text.data(), text.size());
    writer.WriteBack(memory.bytes().data() + offset, text.size());
  }

  FaultyFileSystem beneath_, copy_;
  const std::vector<std::string> copies_ = {"copy"};
  const std::shared_ptr<Pipe> pipe_ = std::make_shared<Pipe>();
  std::unique_ptr<ReplicaChannel> replica_channel_;
  std::optional<Replica> replica_;
  std::optional<Thread> thread_;
  std::unique_ptr<ReplicaStream> stream_;
  std::unique_ptr<ReplicatedFileSystem> files_;
  std::optional<Replica::Result> result_;
  std::string refusal_;
};

TEST_F(ReplicationTest, TheCopyHasWhatTheRunHas) {
  Start(/*synchronous=*/false);
  auto memory = MapMemory(/*commits=*/false);
  auto writer = memory->NewWriter();
  Store(*memory, *writer, 64, "alpha");
  Store(*memory, *writer, 512, "beta");
  writer->Drain();
  alignas(kBlock) static std::byte block[2 * kBlock];
  std::memset(block, 'x', sizeof block);
  auto log = files_->Create("logs/run/log.tmp", {});
  log->StartWrite(0, {block, sizeof block});
  log->Complete(true);
  files_->Rename("logs/run/log.tmp", "logs/run/log");
  auto pages = files_->CreatePages("logs/run/pages", /*durable=*/true);
  pages->WriteAt(kBlock, {block, kBlock});
  pages->Sync();
  auto gone = files_->Create("logs/run/gone", {});
  gone.reset();
  files_->Remove("logs/run/gone");
  files_->SyncDirectory("logs/run");
  files_->SyncDirectory("logs");
  stream_->End();
  ASSERT_TRUE(stream_->lost() == std::nullopt);
  thread_.reset();
  ASSERT_TRUE(result_.has_value()) << refusal_;
  EXPECT_TRUE(result_->clean);
  EXPECT_EQ(copy_.List("copy/run"), beneath_.List("logs/run"));
  // All of it is durable in the copy too.
  FaultyFileSystem after(copy_.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
  for (const std::string name : {"m", "log", "pages"}) {
    const FileBytes ours = beneath_.Map("logs/run/" + name), theirs = after.Map("copy/run/" + name);
    ASSERT_EQ(ours.bytes.size(), theirs.bytes.size()) << name;
    EXPECT_EQ(std::memcmp(ours.bytes.data(), theirs.bytes.data(), ours.bytes.size()), 0) << name;
  }
}

TEST_F(ReplicationTest, WhatIsNotDrainedIsNotSent) {
  Start(/*synchronous=*/true);
  auto memory = MapMemory(/*commits=*/true);
  auto writer = memory->NewWriter();
  Store(*memory, *writer, 0, "drained");
  std::memcpy(memory->bytes().data() + 128, "written", 7);
  Store(*memory, *writer, 0, "drained");
  writer->Drain();
  EXPECT_EQ(Copied("copy/run/m").substr(0, 7), "drained");
  EXPECT_EQ(Copied("copy/run/m").substr(128, 7), std::string(7, '\0'));
}

TEST_F(ReplicationTest, ADrainThatCommitsReturnsWhenTheCopyIsDurable) {
  Start(/*synchronous=*/true);
  auto memory = MapMemory(/*commits=*/true);
  EXPECT_TRUE(memory->drains_are_slow());
  auto writer = memory->NewWriter();
  for (int i = 0; i < 50; ++i) {
    const std::string text = std::to_string(i + 1000);
    Store(*memory, *writer, 0, text);
    writer->Drain();
    FaultyFileSystem after(copy_.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
    const FileBytes theirs = after.Map("copy/run/m");
    ASSERT_EQ(std::memcmp(theirs.bytes.data(), text.data(), text.size()), 0) << i;
  }
}

TEST_F(ReplicationTest, ALogIsCompleteAsFarAsTheCopyIsDurable) {
  Start(/*synchronous=*/true);
  files_->MakeDirectory("logs/run");
  files_->SyncDirectory("logs");
  auto log = files_->Create("logs/run/log", {});
  alignas(kBlock) static std::byte block[kBlock];
  std::memset(block, 'y', sizeof block);
  for (uint64_t i = 0; i < 20; ++i) {
    log->StartWrite(i * kBlock, {block, kBlock});
    while (log->Complete(i % 2 == 0) < (i + 1) * kBlock) host::Yield();
    FaultyFileSystem after(copy_.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
    const FileBytes theirs = after.Map("copy/run/log");
    ASSERT_GE(theirs.bytes.size(), (i + 1) * kBlock);
    ASSERT_EQ(std::memcmp(theirs.bytes.data() + i * kBlock, block, kBlock), 0) << i;
  }
}

TEST_F(ReplicationTest, ALongBatchIsSeveralFrames) {
  Start(/*synchronous=*/true);
  constexpr size_t kBytes = 3 * kFrameBodyBytesMax + 3 * kBlock;
  auto memory = MapMemory(/*commits=*/true, kBytes);
  auto writer = memory->NewWriter();
  for (size_t i = 0; i < kBytes; ++i) memory->bytes()[i] = static_cast<std::byte>(i * 7 / 5);
  writer->WriteBack(memory->bytes().data() + 64, 64);
  writer->WriteBack(memory->bytes().data() + 200, kBytes - 200);
  writer->Drain();
  const FileBytes theirs = copy_.Map("copy/run/m");
  EXPECT_EQ(std::memcmp(theirs.bytes.data() + 64, memory->bytes().data() + 64, 64), 0);
  EXPECT_EQ(std::memcmp(theirs.bytes.data() + 200, memory->bytes().data() + 200, kBytes - 200), 0);
  EXPECT_EQ(theirs.bytes[199], std::byte{0});
}

TEST_F(ReplicationTest, AFailedDrainSendsNothing) {
  Start(/*synchronous=*/true);
  auto memory = MapMemory(/*commits=*/true);
  auto writer = memory->NewWriter();
  Store(*memory, *writer, 0, "good");
  writer->Drain();
  beneath_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO, /*for_good=*/true);
  Store(*memory, *writer, 0, "evil");
  EXPECT_THROW(writer->Drain(), Error);
  writer.reset();
  memory.reset();
  Stop();
  EXPECT_EQ(Copied("copy/run/m").substr(0, 4), "good");
}

TEST_F(ReplicationTest, ASynchronousRunEndsWithItsReplica) {
  Start(/*synchronous=*/true);
  auto memory = MapMemory(/*commits=*/true);
  auto writer = memory->NewWriter();
  Store(*memory, *writer, 0, "before");
  writer->Drain();
  pipe_->Cut();
  Store(*memory, *writer, 0, "behind");
  EXPECT_THROW(writer->Drain(), Error);
  EXPECT_THROW(writer->Drain(), Error) << "what was not sent is not forgotten";
}

TEST_F(ReplicationTest, AnAsynchronousRunGoesOnWithoutIt) {
  Start(/*synchronous=*/false);
  auto memory = MapMemory(/*commits=*/true);
  EXPECT_FALSE(memory->drains_are_slow());
  auto writer = memory->NewWriter();
  pipe_->Cut();
  for (int i = 0; i < 1000; ++i) {
    Store(*memory, *writer, 0, "more");
    writer->Drain();
  }
  stream_->End();
  EXPECT_NE(stream_->lost().value_or("").find("the replica is lost"), std::string::npos);
  memory.reset();
}

TEST_F(ReplicationTest, AReplicaThatFailsTellsTheRun) {
  Start(/*synchronous=*/true);
  copy_.Fail(FaultyFileSystem::Operation::kSync, 1, ENOSPC, /*for_good=*/true, "/m");
  auto memory = MapMemory(/*commits=*/true);
  auto writer = memory->NewWriter();
  std::string said;
  for (int i = 0; i < 2 && said.empty(); ++i) {
    try {
      Store(*memory, *writer, 0, "text");
      writer->Drain();
    } catch (const Error& e) {
      said = e.what();
    }
  }
  EXPECT_NE(said.find("the replica is lost: "), std::string::npos) << said;
  EXPECT_NE(said.find("copy/run/m"), std::string::npos) << said;
}

TEST_F(ReplicationTest, ADirectoryThatIsThereIsRefused) {
  copy_.MakeDirectory("copy/run");
  Start(/*synchronous=*/true);
  const auto run = [this] {
    (void)MapMemory(/*commits=*/true);
    stream_->End();
  };
  EXPECT_THROW(run(), Error);
  Stop();
  EXPECT_NE(refusal_.find("copy/run is there already"), std::string::npos) << refusal_;
}

// ---- frames by hand ----

class ReplicaTest : public ReplicationTest {
 protected:
  ReplicaTest() {
    auto [run_end, replica_end] = Pipe::Make(pipe_);
    run_ = std::move(run_end);
    replica_channel_ = std::move(replica_end);
    replica_.emplace(copy_, copies_, *replica_channel_);
    Send(Hello(1));
  }
  static Frame Hello(uint32_t directories, uint32_t version = kReplicationVersion) {
    Frame frame(FrameKind::kHello, 0);
    frame.Add(&version, sizeof version);
    frame.Add(&directories, sizeof directories);
    return frame;
  }
  static Frame Of(FrameKind kind, const std::string& text, uint32_t file = 0) {
    Frame frame(kind, file);
    frame.AddText(text);
    return frame;
  }
  void Send(Frame frame) { SendNumbered(std::move(frame), next_++); }
  void SendNumbered(Frame frame, uint64_t number) {
    frame.SetNumber(number);
    run_->Send(frame.Sealed());
  }
  // What the replica refuses, of what was sent; and what it answers.
  std::string Refusal() {
    run_->Close();
    try {
      (void)replica_->Run();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  std::unique_ptr<ReplicaChannel> run_;
  uint64_t next_ = 0;
};

TEST_F(ReplicaTest, AConnectionThatIsLostIsNoError) {
  Send(Of(FrameKind::kMakeDirectory, "0/run"));
  EXPECT_EQ(Refusal(), "");
  EXPECT_EQ(copy_.List("copy"), std::vector<std::string>{"run"});
}

TEST_F(ReplicaTest, AMissingFrameIsRefused) {
  Send(Of(FrameKind::kMakeDirectory, "0/run"));
  SendNumbered(Of(FrameKind::kSyncDirectory, "0/run"), next_ + 1);
  EXPECT_NE(Refusal().find("frame 3 where frame 2 was next"), std::string::npos);
}

TEST_F(ReplicaTest, AFrameTwiceIsRefused) {
  Send(Of(FrameKind::kMakeDirectory, "0/run"));
  SendNumbered(Of(FrameKind::kSyncDirectory, "0/run"), next_ - 1);
  EXPECT_NE(Refusal().find("frame 1 where frame 2 was next"), std::string::npos);
}

TEST_F(ReplicaTest, ASecondBeginningIsRefused) {
  Send(Hello(1));
  EXPECT_NE(Refusal().find("belongs elsewhere"), std::string::npos);
}

TEST_F(ReplicaTest, ADamagedFrameIsRefused) {
  Frame frame = Of(FrameKind::kMakeDirectory, "0/run");
  frame.SetNumber(next_);
  const auto sealed = frame.Sealed();
  std::vector<std::byte> bytes(sealed.begin(), sealed.end());
  bytes.back() ^= std::byte{1};
  run_->Send(bytes);
  EXPECT_NE(Refusal().find("checksum"), std::string::npos);
  EXPECT_TRUE(copy_.List("copy").empty());
}

TEST_F(ReplicaTest, AnotherVersionOrNumberOfDirectoriesIsRefused) {
  for (const auto& [directories, version] :
       {std::pair(2u, kReplicationVersion), std::pair(1u, kReplicationVersion + 1)}) {
    const auto pipe = std::make_shared<Pipe>();
    auto [run, theirs] = Pipe::Make(pipe);
    Frame hello = Hello(directories, version);
    hello.SetNumber(0);
    run->Send(hello.Sealed());
    run->Close();
    EXPECT_THROW((void)Replica(copy_, copies_, *theirs).Run(), Error) << directories << " " << version;
  }
}

// A frame behind those that make "0/run" and, in it, a memory of one block (1), blocks (2) and pages (3).
struct Refused {
  const char* name;
  FrameKind kind;
  uint32_t file;
  std::string body;
};

std::string RangeText(uint64_t offset, uint64_t count, size_t bytes) {
  std::string text(16, '\0');
  std::memcpy(text.data(), &offset, 8);
  std::memcpy(text.data() + 8, &count, 8);
  return text + std::string(bytes, 'z');
}

class RefusedFrameTest : public ReplicaTest, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedFrameTest, ChangesNothing) {
  const std::string size = std::string("\0\x10\0\0\0\0\0\0", 8), none(8, '\0');
  Send(Of(FrameKind::kMakeDirectory, "0/run"));
  Send(Of(FrameKind::kMap, size + "0/run/m", 1));
  Send(Of(FrameKind::kCreate, none + "0/run/b", 2));
  Send(Of(FrameKind::kCreatePages, "0/run/p", 3));
  copy_.MakeDirectory("copy/other");
  copy_.Create("copy/other/f", {});
  Send(Of(GetParam().kind, GetParam().body, GetParam().file));
  const std::string refusal = Refusal();
  EXPECT_TRUE(refusal.starts_with("the run has sent ") || refusal.starts_with("no valid frame: ")) << refusal;
  EXPECT_EQ(copy_.List("copy"), (std::vector<std::string>{"other", "run"}));
  EXPECT_EQ(copy_.List("copy/run"), (std::vector<std::string>{"b", "m", "p"}));
  EXPECT_EQ(copy_.List("copy/other"), std::vector<std::string>{"f"});
  EXPECT_EQ(Copied("copy/run/m"), std::string(kBlock, '\0'));
}

INSTANTIATE_TEST_SUITE_P(
    Frames, RefusedFrameTest,
    ::testing::Values(
        Refused{"AbovePath", FrameKind::kMakeDirectory, 0, "0/../x"},
        Refused{"Above", FrameKind::kMakeDirectory, 0, "0/.."},
        Refused{"NoSuchLogDirectory", FrameKind::kMakeDirectory, 0, "1/x"},
        Refused{"ManyDigits", FrameKind::kMakeDirectory, 0, "99999999999999999999/x"},
        Refused{"NoNumber", FrameKind::kMakeDirectory, 0, "/x"}, Refused{"NoSlash", FrameKind::kMakeDirectory, 0, "x"},
        Refused{"Hidden", FrameKind::kMakeDirectory, 0, "0/.x"},
        Refused{"Blank", FrameKind::kMakeDirectory, 0, "0/a b"},
        Refused{"Deep", FrameKind::kMakeDirectory, 0, "0/run/x"}, Refused{"Empty", FrameKind::kMakeDirectory, 0, ""},
        Refused{"OtherDirectory", FrameKind::kRemoveDirectory, 0, "0/other"},
        Refused{"LogDirectory", FrameKind::kRemoveDirectory, 0, "0/"},
        Refused{"OthersFile", FrameKind::kRemove, 0, "0/other/f"},
        Refused{"RenameOfOthers", FrameKind::kRename, 0,
                std::string("0/other/f\0"
                            "0/run/f",
                            17)},
        Refused{"RenameInto", FrameKind::kRename, 0,
                std::string("0/run/m\0"
                            "0/other/f",
                            17)},
        Refused{"RenameToNothing", FrameKind::kRename, 0, "0/run/m"},
        Refused{"RenameOfNothing", FrameKind::kRename, 0, ""},
        Refused{"FileInLogDirectory", FrameKind::kCreatePages, 7, "0/x"},
        Refused{"SameNumber", FrameKind::kCreatePages, 3, "0/run/x"},
        Refused{"NoSize", FrameKind::kMap, 7, std::string(8, '\0') + "0/run/x"},
        Refused{"NoPath", FrameKind::kMap, 7, "short"},
        Refused{"UnknownFile", FrameKind::kWrite, 7, RangeText(0, 8, 8)},
        Refused{"BehindTheEnd", FrameKind::kWrite, 1, RangeText(kBlock - 8, 9, 9)},
        Refused{"FarBehind", FrameKind::kWrite, 1, RangeText(~uint64_t{0} - 3, 8, 8)},
        Refused{"ShortRange", FrameKind::kWrite, 1, RangeText(0, 9, 8)},
        Refused{"Gap", FrameKind::kWrite, 2, RangeText(kBlock, kBlock, kBlock)},
        Refused{"DiscardOfAPart", FrameKind::kDiscard, 0, RangeText(0, 8, 0) + "0/run/b"},
        Refused{"DiscardBackwards", FrameKind::kDiscard, 0, RangeText(kBlock, 0, 0) + "0/run/b"},
        Refused{"DiscardOfOthers", FrameKind::kDiscard, 0, RangeText(0, kBlock, 0) + "0/other/f"},
        Refused{"PartOfABlock", FrameKind::kWrite, 2, RangeText(0, 8, 8)},
        Refused{"OffsetInABlock", FrameKind::kWrite, 3, RangeText(8, kBlock, kBlock)},
        Refused{"UnknownKind", static_cast<FrameKind>(99), 0, ""}, Refused{"Answer", FrameKind::kApplied, 0, ""}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace dbx::testing
