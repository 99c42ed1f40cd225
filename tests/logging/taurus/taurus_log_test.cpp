// Taurus by the paper's worked examples (Figs. 3 and 4), and the traps around anchors and forgotten metadata.
#include "logging/taurus/taurus_log.h"

#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

using Command = TaurusLog<CommandPayload>;

// Two logs; a record's length is whatever it is, so the figure's LSNs are reached by padding the logs.
class TaurusTest : public ::testing::Test {
 protected:
  void SetMeta(Key key, std::array<uint64_t, 2> write_lv, std::array<uint64_t, 2> read_lv) {
    auto* meta = reinterpret_cast<uint64_t*>(h_.table().Find(key)->meta());
    for (int j = 0; j < 2; ++j) {
      meta[j] = write_lv[j];
      meta[2 + j] = read_lv[j];
    }
  }
  std::array<uint64_t, 4> MetaOf(Key key) {
    std::array<uint64_t, 4> meta;
    std::memcpy(meta.data(), h_.table().Find(key)->meta(), sizeof meta);
    return meta;
  }
  std::array<uint64_t, 2> PointOf(uint32_t worker) { return {h_.point(worker)[0], h_.point(worker)[1]}; }

  Harness<NoWaitRows<Command>, Command> h_{2};
};

// Fig. 3, step by step. T1 (log 1) writes A and reads B, T2 reads A, T3 (log 2) writes B. The figure's LSNs 16 and 21
// are ours: the positions behind the records.
TEST_F(TaurusTest, Figure3) {
  constexpr Key kA = 1, kB = 2;
  h_.LoadRow(kA, 0);
  h_.LoadRow(kB, 0);
  SetMeta(kA, {4, 2}, {3, 7});
  SetMeta(kB, {8, 6}, {5, 11});

  std::array<uint64_t, 2> after_a{}, after_b{};
  const CallResult t1 = h_.Run(0, [&](TestContext& ctx) {
    EXPECT_EQ(h_.state(0).lv[0], 0u);  // step 1
    EXPECT_EQ(ctx.Update(h_.table(), kA, [](TestTuple& t) { t.SetAt<uint64_t>(0, 1); }), Outcome::kOk);
    after_a = {h_.state(0).lv[0], h_.state(0).lv[1]};  // step 2
    EXPECT_EQ(ctx.Read(h_.table(), kB, [](const TestTuple&) {}), Outcome::kOk);
    after_b = {h_.state(0).lv[0], h_.state(0).lv[1]};           // step 3
    EXPECT_EQ(h_.Read(2, kA).outcome, Outcome::kConflict);      // step 4: T2 must wait
    EXPECT_EQ(h_.Write(1, kB, 3).outcome, Outcome::kConflict);  // step 5: T3 must wait
    return Outcome::kOk;
  });
  ASSERT_TRUE(t1.wrote);
  EXPECT_EQ(after_a, (std::array<uint64_t, 2>{4, 7}));
  EXPECT_EQ(after_b, (std::array<uint64_t, 2>{8, 7}));
  const uint64_t lsn1 = h_.logs().stream(0).reserved_until().value();  // step 6
  EXPECT_EQ(PointOf(0), (std::array<uint64_t, 2>{lsn1, 7}));
  EXPECT_EQ(MetaOf(kA), (std::array<uint64_t, 4>{lsn1, 7, 3, 7}));  // step 7
  EXPECT_EQ(MetaOf(kB), (std::array<uint64_t, 4>{8, 6, lsn1, 11}));

  ASSERT_EQ(h_.Read(2, kA).outcome, Outcome::kOk);  // step 8: T2
  EXPECT_EQ(PointOf(2), (std::array<uint64_t, 2>{lsn1, 7}));
  EXPECT_EQ(h_.logs().stream(0).reserved_until(), Lsn(lsn1));  // and leaves no record

  ASSERT_TRUE(h_.Write(1, kB, 3).wrote);  // steps 9 and 11: T3
  EXPECT_EQ(h_.state(1).own_dependency, 11u);
  const uint64_t lsn3 = h_.logs().stream(1).reserved_until().value();
  EXPECT_EQ(PointOf(1), (std::array<uint64_t, 2>{lsn1, lsn3}));
  EXPECT_EQ(MetaOf(kB), (std::array<uint64_t, 4>{lsn1, lsn3, lsn1, 11}));  // step 12

  EXPECT_FALSE(h_.IsDurable(0));
  h_.Flush(0);
  EXPECT_FALSE(h_.IsDurable(0));  // T1 and T2 name position 7 of log 2, which is not durable yet
  h_.Flush(1);
  EXPECT_TRUE(h_.IsDurable(0));  // step 10
  EXPECT_TRUE(h_.IsDurable(2));
  EXPECT_TRUE(h_.IsDurable(1));  // step 13
}

// Fig. 4: T.LV = [4, 45, 1, 2] after the anchor [7, 16, 2, 4]: only element 2 is stored.
TEST(TaurusCompression, Figure4) {
  Harness<NoWaitRows<Command>, Command> h(4);
  h.LoadRow(1, 0);
  // The anchor needs durable positions of 7, 16, 2 and 4: set as if the logs had been flushed up to there.
  auto& durable = const_cast<DurableVector&>(h.logs().durable());
  const uint64_t anchor[4] = {7, 16, 2, 4};
  std::copy(anchor, anchor + 4, durable.lsn);
  h.log().BeforeFlush(h.logs().stream(0));
  const uint64_t write_lv[4] = {4, 45, 1, 2};
  std::memcpy(h.table().Find(1)->meta(), write_lv, sizeof write_lv);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  EXPECT_EQ(h.state(0).lv_mask, 0b0010u);
  const std::byte* record = h.logs().stream(0).at(h.state(0).place);
  format::RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  EXPECT_EQ(header.lv_mask, 0b0010u);
  uint64_t element = 0;
  std::memcpy(&element, record + sizeof header + sizeof(TxnId), sizeof element);
  EXPECT_EQ(element, 45u);
}

// No record may be compressed against an anchor that is not in the log.
TEST(TaurusCompression, AnAnchorThatWasNotAppendedIsNotUsed) {
  Harness<NoWaitRows<Command>, Command> h(1, 64 << 10);
  h.LoadRow(1, 0);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  h.Flush(0);
  // Fill the ring, so that the anchor finds no space.
  LogStream& stream = h.logs().stream(0);
  while (stream.reserved_until() + 4096 <= stream.persistent_until() + stream.ring_bytes()) {
    const LogStream::Place place = stream.Reserve(1, 4096);
    stream.Void(1, place);
  }
  h.log().BeforeFlush(stream);
  h.Flush(0);
  ASSERT_TRUE(h.Write(0, 1, 6).wrote);
  EXPECT_EQ(h.state(0).lv_mask, 1u) << "the record must carry its own dependency";
}

TEST(TaurusCompression, AnAnchorHoldsOnlyWhatWasDurable) {
  Harness<NoWaitRows<Command>, Command> h(1);
  h.LoadRow(1, 0);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  const Lsn anchor_at = h.logs().stream(0).reserved_until();
  h.log().BeforeFlush(h.logs().stream(0));
  uint64_t anchored = 1;
  std::memcpy(&anchored, h.logs().stream(0).at({anchor_at, 40}) + sizeof(format::RecordHeader), sizeof anchored);
  EXPECT_EQ(anchored, 0u);
}

struct CommandTxn {
  std::array<uint64_t, 2> words{};
  ProcedureId procedure() const { return ProcedureId(1); }
  std::span<const std::byte> args() const { return std::as_bytes(std::span(words)); }
  void ForEachImage(auto&&) const {}
  Tid commit_version() const { return {}; }
  Timestamp read_timestamp() const { return {}; }
  Timestamp end_timestamp() const { return {}; }
};
TEST(TaurusCompression, SwitchedOffEveryElementIsStored) {
  EXPECT_TRUE(LogOptions{}.compress);
  LogSetOptions set_options;
  FaultyFileSystem files;
  std::vector<LogSet::Target> targets;
  for (int i = 0; i < 3; ++i) targets.push_back({files.Create("log" + std::to_string(i), {}), 0});
  LogSet logs(std::move(targets), set_options);
  Command log(logs, {.compress = false, .forget_delta_bytes = 0});
  const CommandTxn txn;
  Command::TxnState state;
  log.InitWorker(state, WorkerId(0));
  log.Begin(state);
  ASSERT_TRUE(log.Reserve(state, txn));
  EXPECT_EQ(state.lv_mask, 0b111u);
  log.Submit(state, txn);
}

// Metadata that is forgotten and made anew must not be smaller than it was, nor wrap below zero.
TEST(TaurusForgetting, FreshMetaIsAtLeastWhateverWasForgettable) {
  for (const uint64_t delta : {uint64_t{0}, uint64_t{100}, uint64_t{1} << 40}) {
    LogSetOptions set_options;
    FaultyFileSystem files;
    std::vector<LogSet::Target> targets;
    targets.push_back({files.Create("log", {}), 0});
    LogSet logs(std::move(targets), set_options);
    Command log(logs, {.compress = true, .forget_delta_bytes = delta});
    auto& durable = const_cast<DurableVector&>(logs.durable());
    for (const uint64_t persistent : {0, 50, 100, 150, 5000}) {
      durable.lsn[0] = persistent;
      for (const uint64_t newest : {0, 1, 49, 50, 51, 4900, 5000, 5001}) {
        uint64_t meta[2] = {newest, newest / 2};
        if (!log.Forgettable(reinterpret_cast<Meta>(meta))) continue;
        log.FreshMeta(reinterpret_cast<Meta>(meta));
        EXPECT_GE(meta[0], newest) << persistent << " " << delta;
        EXPECT_LE(meta[0], persistent);
      }
    }
  }
}

TEST(TaurusForgetting, MetadataThatIsNotDurableIsKept) {
  Harness<NoWaitTable<Command>, Command> h(1);
  h.LoadRow(1, 0);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  const uint64_t lsn = h.point(0)[0];
  for (Key key = 100; key < 2000; ++key) (void)h.Read(1, key);  // walks every bucket of the lock table
  ASSERT_TRUE(h.Write(2, 1, 6).wrote);
  EXPECT_GE(h.state(2).own_dependency, lsn);
}

TEST(TaurusTurns, AWorkerUsesAllItsLogsWhenThereAreMoreLogsThanWorkers) {
  Harness<NoWaitRows<Command>, Command> h(8);
  h.LoadRow(1, 0);
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  EXPECT_GT(h.logs().stream(0).reserved_until(), Lsn(0));
  EXPECT_GT(h.logs().stream(4).reserved_until(), Lsn(0));
  EXPECT_EQ(h.logs().stream(1).reserved_until(), Lsn(0));
}

TEST(TaurusRecord, ACommandWithOneLogStaysBelow48BytesOfOverhead) {
  Harness<NoWaitRows<Command>, Command> h(1);
  h.LoadRow(1, 0);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  EXPECT_LE(h.state(0).place.bytes, 48u + sizeof(uint64_t));  // one word of arguments behind the transaction id
}

}  // namespace
}  // namespace dbx::testing
