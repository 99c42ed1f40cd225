// What a Log Store promises: answers after the sync, fences for ever, readers see what two have, seals hold.
#include "multi_master/log/log_store.h"

#include <gmock/gmock.h>

#include <random>

#include "base/error.h"
#include "multi_master/log/flush_buffer.h"
#include "multi_master/log/store_set.h"
#include "tests/multi_master/log/store_probe.h"

namespace dbx::mm {
namespace {

using Crash = FaultyFileSystem::Crash;

struct LogStoreTest : testing::Test {
  // The store's process ends, and starts again on what the crash has left.
  void Restart(Crash crash = Crash::kDurableOnly) {
    auto image = files->CrashImage(crash, 1);
    store.reset();
    files = std::make_unique<FaultyFileSystem>(image);
    store = std::make_unique<StoreProbe>(*files);
  }

  std::unique_ptr<FaultyFileSystem> files = std::make_unique<FaultyFileSystem>();
  std::unique_ptr<StoreProbe> store = std::make_unique<StoreProbe>(*files);
};

TEST_F(LogStoreTest, AppendsAreAnsweredInTheOrderOfTheLog) {
  store->Open(1);
  store->Append(1, 0, 11);
  EXPECT_EQ(store->Answer(), "appended 1");
  store->Append(1, 1, 12);
  EXPECT_EQ(store->Answer(), "appended 2");
}

TEST_F(LogStoreTest, WhatWasAnsweredSurvivesACrash) {
  store->Open(1);
  store->Append(1, 0, 11);
  ASSERT_EQ(store->Answer(), "appended 1");
  Restart();
  store->Say(kWriter, kLogOpen, StoreProbe::Message(1));
  EXPECT_EQ(store->Answer(), "state 1 of epoch 1");
}

TEST_F(LogStoreTest, AnAppendThatComesTwiceIsKeptOnce) {
  store->Open(1);
  store->Append(1, 0, 11);
  ASSERT_EQ(store->Answer(), "appended 1");
  store->Append(1, 0, 99, 1);
  EXPECT_EQ(store->Answer(), "appended 1");
  store->Read(0);
  EXPECT_EQ(store->Answer(), "data 0: 11");
}

TEST_F(LogStoreTest, AnAppendBehindAGapIsAnsweredByWhatIsThere) {
  store->Open(1);
  store->Append(1, 5, 11);
  EXPECT_EQ(store->Answer(), "state 0 of epoch 1");
}

// Trap 17: no fence.
TEST_F(LogStoreTest, AFencedEpochIsRefusedForEver) {
  store->Open(1);
  store->Say(kFencer, kLogFence, StoreProbe::Message(2));
  ASSERT_EQ(store->Answer(), "state 0 of epoch 2");
  store->Append(1, 0, 11);
  EXPECT_EQ(store->Answer(), "stale of epoch 2");
  Restart();
  store->Append(1, 0, 11);
  EXPECT_EQ(store->Answer(), "stale of epoch 2");
  store->Say(kWriter, kLogOpen, StoreProbe::Message(1));
  EXPECT_EQ(store->Answer(), "stale of epoch 2");
}

TEST_F(LogStoreTest, AnOlderSetOfStoresIsRefusedForEver) {
  LogMessage open = StoreProbe::Message(1);
  open.set = {StoreSetNumber(2), {0, 1, 3}};
  store->Say(kWriter, kLogOpen, open);
  ASSERT_EQ(store->Answer(), "state 0 of epoch 1");
  store->Say(kFencer, kLogFence, StoreProbe::Message(5));
  EXPECT_EQ(store->Answer(), "stale of epoch 1");
  Restart();
  store->Append(1, 0, 11);
  EXPECT_EQ(store->Answer(), "stale of epoch 1");
}

TEST_F(LogStoreTest, AStoreThatWasDroppedFromTheSetTakesNothing) {
  store->Open(1);
  LogMessage open = StoreProbe::Message(1);
  open.set = {StoreSetNumber(2), {1, 2, 3}};
  store->Say(kWriter, kLogOpen, open);
  EXPECT_EQ(store->Answer(), "stale of epoch 1");
}

// Trap 20: an LFB of one store is served.
TEST_F(LogStoreTest, ReadersAreServedWhatTwoHave) {
  store->Open(1);
  store->Append(1, 0, 11);
  store->Append(1, 1, 12);
  while (store->Answer() != "appended 2") {
  }
  store->Read(0);
  EXPECT_TRUE(store->IsSilent());
  LogMessage complete = StoreProbe::Message(1);
  complete.complete = Lsn(format::kBlockBytes);
  store->Say(kWriter, kLogComplete, complete);
  EXPECT_EQ(store->Answer(), "data 0: 11");
}

TEST_F(LogStoreTest, ASealedLogIsServedWhole) {
  store->Open(1);
  store->Append(1, 0, 11);
  ASSERT_EQ(store->Answer(), "appended 1");
  store->Say(kFencer, kLogSeal, StoreProbe::Message(2, 1));
  ASSERT_EQ(store->Answer(), "state 1 of epoch 2");
  store->Read(0);
  EXPECT_EQ(store->Answer(), "data 0: 11");
}

// Trap 21: a sealed tail returns.
TEST_F(LogStoreTest, WhatLiesBehindASealDoesNotComeBack) {
  store->Open(1);
  for (int i = 0; i < 3; ++i) store->Append(1, static_cast<uint64_t>(i), 11 + i);
  while (store->Answer() != "appended 3") {
  }
  store->Say(kFencer, kLogSeal, StoreProbe::Message(2, 1));
  ASSERT_EQ(store->Answer(), "state 1 of epoch 2");
  Restart();
  store->Open(2, 1);
  store->Append(2, 1, 22, 2);
  ASSERT_EQ(store->Answer(), "appended 2");
  Restart();
  store->Say(kFencer, kLogSeal, StoreProbe::Message(3, 2));
  ASSERT_EQ(store->Answer(), "state 2 of epoch 3");
  store->Read(0);
  EXPECT_EQ(store->Answer(), "data 0: 11");
  store->Read(1);
  EXPECT_EQ(store->Answer(), "data 1: 22");
}

// Of a master that wrote nothing.
TEST_F(LogStoreTest, ASealAtZeroIsKept) {
  const auto is_sealed = [&] {
    StoreLog log(*files, "/d", MasterId(1), SaltOf(7, MasterId(1)), StoreLog::Use::kRead);
    return log.state().is_sealed;
  };
  store->Say(kFencer, kLogFence, StoreProbe::Message(2));
  ASSERT_EQ(store->Answer(), "state 0 of epoch 2");
  EXPECT_FALSE(is_sealed());
  store->Say(kFencer, kLogSeal, StoreProbe::Message(2));
  ASSERT_EQ(store->Answer(), "state 0 of epoch 2");
  EXPECT_TRUE(is_sealed());
  Restart();
  EXPECT_TRUE(is_sealed());
}

TEST(StoreSetTest, AFlippedBitIsNoSet) {
  StoreSetFile file = EncodeStoreSet(kSet);
  const auto bytes = std::as_writable_bytes(std::span(&file, 1));
  EXPECT_EQ(DecodeStoreSet(bytes), kSet);
  EXPECT_FALSE(DecodeStoreSet(bytes.first(15)).has_value());
  for (std::byte& byte : bytes) {
    byte ^= std::byte{4};
    EXPECT_FALSE(DecodeStoreSet(bytes).has_value());
    byte ^= std::byte{4};
  }
}

// Of a store that was away when the log was sealed.
TEST_F(LogStoreTest, TheNextEpochCutsOffATailThatWasNotSealedHere) {
  store->Open(1);
  for (int i = 0; i < 3; ++i) store->Append(1, static_cast<uint64_t>(i), 11 + i);
  while (store->Answer() != "appended 3") {
  }
  store->Say(kWriter, kLogOpen, StoreProbe::Message(2, 1));
  EXPECT_EQ(store->Answer(), "state 1 of epoch 2");
}

TEST_F(LogStoreTest, ALogThatLacksWhatIsSealedIsNotSealed) {
  store->Open(1);
  store->Say(kFencer, kLogSeal, StoreProbe::Message(2, 1));
  EXPECT_EQ(store->Answer(), "state 0 of epoch 1");
}

TEST_F(LogStoreTest, ANewStoreCopiesFromAnother) {
  store->Open(1);
  store->Append(1, 0, 11);
  store->Append(1, 1, 12, 1);
  while (store->Answer() != "appended 2") {
  }
  FaultyFileSystem other_files;
  StoreProbe other(other_files, 2);
  LogMessage copy = StoreProbe::Message(1);
  copy.peer = 0;
  other.Say(kFencer, kLogCopy, copy);
  std::string answer;
  for (int i = 0; i < 20 && !answer.starts_with("state 2"); ++i) {
    const auto sent = other.network.Next();
    ASSERT_TRUE(sent);
    if (sent->type == kLogRead) {
      store->store->OnMessage({Role::kLogStore, 2}, kLogRead, sent->body);
      const auto data = store->network.Next();
      ASSERT_TRUE(data && data->type == kLogData);
      other.store->OnMessage({Role::kLogStore, 0}, kLogData, data->body);
    } else {
      const LogMessage state = *DecodeLog(sent->body);
      answer = "state " + std::to_string(state.at.value() / format::kBlockBytes) + " of epoch " +
               std::to_string(state.epoch.value());
    }
  }
  EXPECT_EQ(answer, "state 2 of epoch 1");
  // The writer goes on there: what was copied is its own.
  other.Say(kWriter, kLogOpen, StoreProbe::Message(1));
  EXPECT_EQ(other.Answer(), "state 2 of epoch 1");
}

TEST_F(LogStoreTest, RandomBytesAreRefusedAndChangeNothing) {
  store->Open(1);
  store->Append(1, 0, 11);
  ASSERT_EQ(store->Answer(), "appended 1");
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> body(random() % 120);
    for (std::byte& byte : body) byte = static_cast<std::byte>(random() % 8 == 0 ? random() : 0);
    // A message that is one, of another log, is one.
    if (!body.empty()) body[0] = std::byte{16};
    ASSERT_FALSE(store->store->OnMessage(kWriter, MessageType(static_cast<uint16_t>(200 + random() % 12)), body));
  }
  store->Say(kWriter, kLogOpen, StoreProbe::Message(1));
  EXPECT_EQ(store->Answer(), "state 1 of epoch 1");
}

TEST_F(LogStoreTest, AFailedSyncIsNotAnswered) {
  store->Open(1);
  files->Fail(FaultyFileSystem::Operation::kSync, 1, EIO, true);
  store->Append(1, 0, 11);
  EXPECT_TRUE(store->IsSilent());
  EXPECT_TRUE(store->store->failed());
  EXPECT_THROW(store->store->ThrowIfFailed(), Error);
}

// --- damage ---

struct StoreDamageTest : LogStoreTest {
  // The last file that is written before a restart, with blocks: begin, open, three appends.
  void WriteThree() {
    store->Open(1);
    for (int i = 0; i < 3; ++i) {
      store->Append(1, static_cast<uint64_t>(i), 11 + i);
      ASSERT_EQ(store->Answer(), "appended " + std::to_string(i + 1));
    }
    store->store->Stop();
  }
  void Damage(uint64_t from_block) {
    files->Change("/d/log-1-0", [&](SparseBytes& bytes) {
      const std::vector<std::byte> garbage(100, std::byte{0x5a});
      bytes.Write(from_block * format::kBlockBytes + 64, garbage);
    });
  }
};

TEST_F(StoreDamageTest, ATornLastFrameIsCutOffAndStaysSo) {
  WriteThree();
  Damage(6);  // 2, 4, 6: an append is a block and its header
  Restart();
  store->Say(kWriter, kLogOpen, StoreProbe::Message(1));
  EXPECT_EQ(store->Answer(), "state 2 of epoch 1");
  store->Append(1, 2, 33, 3);
  EXPECT_EQ(store->Answer(), "appended 3");
  Restart();
  store->Say(kFencer, kLogSeal, StoreProbe::Message(2, 3));
  ASSERT_EQ(store->Answer(), "state 3 of epoch 2");
  store->Read(2);
  EXPECT_EQ(store->Answer(), "data 2: 33");
}

TEST_F(StoreDamageTest, DamageInFrontOfASyncedFrameIsAnError) {
  WriteThree();
  Damage(2);
  try {
    Restart();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kCorrupt);
    EXPECT_THAT(error.what(), testing::StartsWith("cannot read /d/log-1-0@"));
  }
}

TEST_F(StoreDamageTest, DamageToTheFirstBlockIsAnError) {
  WriteThree();
  files->Change("/d/log-1-0", [&](SparseBytes& bytes) { bytes.Write(0, std::vector<std::byte>(64, std::byte{1})); });
  EXPECT_THROW(Restart(), Error);
}

TEST_F(StoreDamageTest, DamageToAnOlderFileIsAnError) {
  WriteThree();
  Restart();
  store->store->Stop();
  Damage(6);
  EXPECT_THROW(Restart(), Error);
}

}  // namespace
}  // namespace dbx::mm
