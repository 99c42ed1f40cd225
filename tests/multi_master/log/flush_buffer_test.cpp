// The master's log in the making: times and places ascend together, flushes end in LFBs, durable is what these cover.
#include "multi_master/log/flush_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/error.h"
#include "multi_master/log/replicated_device.h"
#include "tests/multi_master/log/store_probe.h"

namespace dbx::mm {
namespace {

constexpr MasterId kSelf{1};

// A device in memory that completes what the test allows.
class Memory final : public BlockDevice {
 public:
  void StartWrite(uint64_t offset, std::span<const std::byte> data) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(offset, format::kStreamOffset + bytes_.size());
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  uint64_t Complete(bool wait) override {
    std::unique_lock lock(mutex_);
    if (wait) allowed_.wait(lock, [&] { return allows_until_ >= bytes_.size() || is_failed_; });
    if (is_failed_) throw Error(ExitStatus::kIo, "cannot write");
    return format::kStreamOffset + std::min<uint64_t>(bytes_.size(), allows_until_);
  }
  size_t Read(uint64_t, std::span<std::byte>) override { return 0; }
  uint64_t SizeBytes() override { return bytes_.size(); }
  const std::string& path() const override { return path_; }

  void Allow(uint64_t until) {
    const std::lock_guard lock(mutex_);
    allows_until_ = until;
    allowed_.notify_all();
  }
  void FailNow() {
    const std::lock_guard lock(mutex_);
    is_failed_ = true;
    allowed_.notify_all();
  }
  std::vector<std::byte> bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable allowed_;
  std::vector<std::byte> bytes_;
  uint64_t allows_until_ = UINT64_MAX;
  bool is_failed_ = false;
  const std::string path_ = "memory";
};

struct Seen {
  format::RecordKind kind;
  uint64_t first = 0, last = 0;  // times
  Lsn end;
};
std::vector<Seen> RecordsOf(const std::vector<std::byte>& bytes) {
  std::vector<Seen> seen;
  for (size_t at = 0; at + sizeof(format::RecordHeader) <= bytes.size();) {
    format::RecordHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    EXPECT_EQ(header.header_crc, HeaderCrc(header));
    const auto body = std::span(bytes).subspan(at + sizeof header, header.length - sizeof header);
    const auto kind = static_cast<format::RecordKind>(header.kind);
    at += header.length;
    Seen record{kind, 0, 0, Lsn(at)};
    if (kind == kPagesKind) {
      const PagesRecord pages = *DecodePagesRecord(body);
      record.first = pages.first.value(), record.last = record.first + pages.changes - 1;
    } else if (kind == kEndKind) {
      record.first = record.last = DecodeEnd(body)->time.value();
    } else if (kind == kLfbKind) {
      record.first = record.last = DecodeLfb(kSelf, body)->time().value();
    } else {
      continue;
    }
    seen.push_back(record);
  }
  return seen;
}

struct FlushBufferTest : testing::Test {
  FlushBufferTest() {
    auto owned = std::make_unique<Memory>();
    device = owned.get();
    FlushBufferOptions options;
    options.self = kSelf;
    options.ring_bytes = 128 << 10;
    buffer = std::make_unique<FlushBuffer>(options, clock, std::move(owned));
  }
  VsTime Append(uint32_t changes, size_t bytes) {
    return buffer->AppendPages(changes, bytes, [](VsTime first, std::span<std::byte> to) {
      for (std::byte& byte : to) byte = static_cast<std::byte>(first.value());
    });
  }

  VsClock clock{kSelf};
  Memory* device;
  std::unique_ptr<FlushBuffer> buffer;
};

TEST_F(FlushBufferTest, EachChangeOfAMiniTransactionHasItsTime) {
  EXPECT_EQ(Append(3, 100), VsTime(1));
  const VsTime end = buffer->AppendEnd({kSelf, ClusterEpoch(1), 7}, TxnOutcome::kCommitted);
  EXPECT_GE(end.value(), 4u);
  buffer->WaitDurable(end);
  EXPECT_TRUE(buffer->IsDurable(end));
}

// A recovery finds acknowledged transactions by the numbers that their clients know.
TEST(RecordsTest, AnEndSaysWhichTransactionOfTheWorkloadHasEnded) {
  const EndRecord end{VsTime(9), {kSelf, ClusterEpoch(3), 7}, TxnOutcome::kAborted, TxnId::Make(WorkerId(5), 1234)};
  std::vector<std::byte> body;
  WireWriter writer(body);
  EncodeEnd(end, writer);
  ASSERT_EQ(body.size(), kEndBytes);
  const std::optional<EndRecord> decoded = DecodeEnd(body);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->time, end.time);
  EXPECT_EQ(decoded->txn, end.txn);
  EXPECT_EQ(decoded->outcome, end.outcome);
  EXPECT_EQ(decoded->id, end.id);
  EXPECT_FALSE(DecodeEnd(std::span(body).first(22)));  // as version 1 had it
}

// Traps 18 and 19: time and place apart; an LFB within a mini-transaction.
TEST_F(FlushBufferTest, TimesAscendWithPlacesWhoeverAppends) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t n = 0; n < 500; ++n) {
        const VsTime time = Append(1 + n % 3, 40 + 200 * (n % 5) + i);
        if (n % 100 == 0) buffer->WaitDurable(time);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  buffer->Stop();
  uint64_t last = 0, lfbs = 0, pages = 0, changes = 0;
  for (const Seen& record : RecordsOf(device->bytes())) {
    EXPECT_GT(record.first, last);
    last = record.last;
    lfbs += record.kind == kLfbKind;
    pages += record.kind == kPagesKind;
    if (record.kind == kPagesKind) changes += record.last - record.first + 1;
  }
  EXPECT_GE(lfbs, 5u);
  EXPECT_EQ(pages, 4 * 500u);
  EXPECT_EQ(changes, 4 * (167 + 2 * 167 + 3 * 166));
}

TEST_F(FlushBufferTest, ALogEndsInAnLfb) {
  Append(1, 100);
  Append(2, 5000);
  buffer->Stop();
  const std::vector<Seen> records = RecordsOf(device->bytes());
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.back().kind, kLfbKind);
  EXPECT_EQ(buffer->DurableUntil(), VsTime(records.back().first));
}

TEST_F(FlushBufferTest, ARecordIsDurableWithTheLfbThatCoversIt) {
  device->Allow(0);
  const VsTime time = Append(1, 100);
  while (device->bytes().empty()) host::Yield();
  EXPECT_FALSE(buffer->IsDurable(time));
  device->Allow(UINT64_MAX);
  buffer->WaitDurable(time);
  // The LFB's own time is later.
  EXPECT_GT(buffer->DurableUntil().value(), time.value());
}

TEST_F(FlushBufferTest, AFullRingWaitsForTheDeviceAndStillEndsInAnLfb) {
  device->Allow(0);
  std::atomic<int> appended = 0;
  std::thread filler([&] {
    for (int i = 0; i < 200; ++i, ++appended) Append(1, 2000);
  });
  int before = -1;
  while (appended != before) {
    before = appended;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LT(appended, 200);
  device->Allow(UINT64_MAX);
  filler.join();
  buffer->Stop();
  EXPECT_EQ(RecordsOf(device->bytes()).back().kind, kLfbKind);
}

TEST_F(FlushBufferTest, AFailedDeviceEndsAllWaits) {
  device->Allow(0);
  const VsTime time = Append(1, 100);
  device->FailNow();
  EXPECT_THROW(buffer->WaitDurable(time), Error);
  EXPECT_THROW(Append(1, 100), Error);
  EXPECT_FALSE(buffer->IsDurable(time));
}

// --- ReplicatedDevice ---

struct ReplicatedDeviceTest : testing::Test {
  ReplicatedDeviceTest() : network(kWriter), device(network, {MasterId(1), ClusterEpoch(1), kSet}) {
    device.Open();
    for (int i = 0; i < 3; ++i) network.Next();
  }
  void Write(uint64_t block, int value) {
    const std::vector<std::byte> bytes = Block(value);
    device.StartWrite(format::kStreamOffset + block * format::kBlockBytes, bytes);
  }
  bool Say(uint8_t store, MessageType type, uint64_t blocks, uint32_t epoch = 1, uint64_t set = 1) {
    LogMessage message = StoreProbe::Message(epoch, blocks);
    message.set.number = StoreSetNumber(set);
    return device.OnMessage({Role::kLogStore, store}, type, EncodeLog(message));
  }
  // "append 2 to 1": what is sent next.
  std::string Sent() {
    const auto sent = network.Next(std::chrono::milliseconds(50));
    if (!sent) return "";
    const LogMessage message = *DecodeLog(sent->body);
    const std::string to = " to " + std::to_string(sent->to.index);
    if (sent->type == kLogOpen) return "open" + to;
    if (sent->type == kLogComplete) {
      return "complete " + std::to_string(message.complete.value() / format::kBlockBytes) + to;
    }
    return "append " + std::to_string(message.at.value() / format::kBlockBytes) + to;
  }
  uint64_t Blocks() { return (device.Complete(false) - format::kStreamOffset) / format::kBlockBytes; }

  ProbeNetwork network;
  ReplicatedDevice device;
};

TEST_F(ReplicatedDeviceTest, CompleteIsWhatTwoHave) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  Write(0, 11);
  Write(1, 12);
  Say(0, kLogAppended, 2);
  EXPECT_EQ(Blocks(), 0u);
  Say(2, kLogAppended, 1);
  EXPECT_EQ(Blocks(), 1u);
  Say(1, kLogAppended, 2);
  EXPECT_EQ(Blocks(), 2u);
}

TEST_F(ReplicatedDeviceTest, CompleteIsToldWhenTheLogIsIdle) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  Write(0, 11);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Sent().starts_with("append 0"));
  Say(0, kLogAppended, 1);
  Say(1, kLogAppended, 1);
  EXPECT_EQ(Sent(), "complete 1 to 0");
  EXPECT_EQ(Sent(), "complete 1 to 1");
  EXPECT_EQ(Sent(), "complete 1 to 2");
}

TEST_F(ReplicatedDeviceTest, AStoreThatComesBackIsSentWhatItLacksInOrder) {
  for (uint8_t store = 0; store < 2; ++store) Say(store, kLogState, 0);
  for (uint64_t i = 0; i < 3; ++i) Write(i, static_cast<int>(i));
  for (int i = 0; i < 6; ++i) Sent();
  Say(2, kLogState, 1);
  EXPECT_EQ(Sent(), "append 1 to 2");
  EXPECT_EQ(Sent(), "append 2 to 2");
}

// Started anew it does not know up to where two have the log, and serves readers no further than it knows.
TEST_F(ReplicatedDeviceTest, AStoreThatComesBackToAnIdleLogIsToldWhatIsComplete) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  Write(0, 11);
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogAppended, 1);
  while (!Sent().empty()) continue;
  device.OnLinkDown({Role::kLogStore, 2});
  EXPECT_EQ(Sent(), "open to 2");
  Say(2, kLogState, 1);
  EXPECT_EQ(Sent(), "complete 1 to 2");
}

TEST_F(ReplicatedDeviceTest, ABrokenLinkOpensTheLogAgain) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  device.OnLinkDown({Role::kLogStore, 1});
  EXPECT_EQ(Sent(), "open to 1");
  Write(0, 11);
  EXPECT_EQ(Sent(), "append 0 to 0");
  EXPECT_EQ(Sent(), "append 0 to 2");
  EXPECT_EQ(Sent(), "");
}

TEST_F(ReplicatedDeviceTest, TheBytesAreItsOwn) {
  for (uint8_t store = 0; store < 2; ++store) Say(store, kLogState, 0);
  std::vector<std::byte> bytes = Block(11);
  device.StartWrite(format::kStreamOffset, bytes);
  for (int i = 0; i < 2; ++i) network.Next();
  Say(0, kLogAppended, 1);
  Say(1, kLogAppended, 1);
  std::fill(bytes.begin(), bytes.end(), std::byte{99});
  for (int i = 0; i < 2; ++i) network.Next();
  Say(2, kLogState, 0);
  const auto sent = network.Next();
  ASSERT_TRUE(sent && sent->type == kLogAppend);
  EXPECT_EQ(DecodeLog(sent->body)->bytes[0], std::byte{11});
}

TEST_F(ReplicatedDeviceTest, AFencedWriterFailsForGood) {
  Write(0, 11);
  Say(1, kLogStale, 0, 2);
  EXPECT_THROW(device.Complete(true), Error);
  EXPECT_THROW(Write(1, 12), Error);
}

TEST_F(ReplicatedDeviceTest, WithAnOlderSetOfStoresItWaitsForTheNewOne) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogStale, 0, 1, 2);
  Write(0, 11);
  EXPECT_EQ(Sent(), "");
  device.SetStores({StoreSetNumber(2), {0, 1, 3}});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Sent().starts_with("open"));
  Say(0, kLogState, 0, 1, 2);
  EXPECT_EQ(Sent(), "append 0 to 0");
}

TEST_F(ReplicatedDeviceTest, AStateOfALaterEpochFailsForGoodToo) {
  Say(1, kLogState, 0, 2);
  EXPECT_THROW(device.Complete(false), Error);
}

TEST_F(ReplicatedDeviceTest, MoreThanWasSentCannotBeThere) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  Write(0, 11);
  EXPECT_FALSE(Say(0, kLogAppended, 2));
  EXPECT_EQ(Blocks(), 0u);
}

TEST_F(ReplicatedDeviceTest, AStoreOfAnotherSetDoesNotCount) {
  for (uint8_t store = 0; store < 3; ++store) Say(store, kLogState, 0);
  device.SetStores({StoreSetNumber(2), {0, 1, 3}});
  Write(0, 11);
  Say(0, kLogState, 1, 1, 2);
  Say(2, kLogAppended, 1);
  EXPECT_EQ(Blocks(), 0u);
  Say(3, kLogState, 1, 1, 2);
  EXPECT_EQ(Blocks(), 1u);
}

}  // namespace
}  // namespace dbx::mm
