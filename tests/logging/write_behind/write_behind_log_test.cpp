#include "logging/write_behind/write_behind_log.h"

#include <cstring>

#include "tests/logging/write_behind/stepped_log.h"

namespace dbx::testing {
namespace {

// No group is committed but by CommitGroup.
class WriteBehindLogTest : public SteppedLogTest {
 protected:
  WriteBehindLogTest() : SteppedLogTest(/*drains_are_slow=*/false, /*flush_interval_us=*/uint64_t{1} << 50) {}
  void CommitGroup() { log_->WriteRunEnd({}); }
};

TEST_F(WriteBehindLogTest, ACoveredWriterThatTheRecordListsIsNotDurable) {
  const Timestamp stamp = Draw(0);
  CommitGroup();
  ASSERT_EQ(gaps_.newest()->c_p, stamp.value());
  Install(0, stamp);
  EXPECT_FALSE(log_->IsDurable(PointOf(0)));
  CommitGroup();
  EXPECT_TRUE(log_->IsDurable(PointOf(0)));
}

TEST_F(WriteBehindLogTest, AReaderWaitsForTheGroupOfWhatItMayHaveRead) {
  const Timestamp stamp = Draw(0);
  CommitGroup();
  Install(0, stamp);
  log_->SetReadOnlyPoint(states_[1], PointOf(1));
  EXPECT_FALSE(log_->IsDurable(PointOf(1))) << "c_p covers it, and the record lists what it has read";
  CommitGroup();
  EXPECT_TRUE(log_->IsDurable(PointOf(1)));
}

class IndexLinesTest : public SteppedLogTest {
 protected:
  IndexLinesTest() : SteppedLogTest(/*drains_are_slow=*/false, uint64_t{1} << 50, /*index_lines=*/2) {}
  // Lines of the worker that are not zeros, in the memory, and after a crash that keeps what is durable alone.
  size_t StoredLines(uint32_t worker) { return LinesIn(worker, memory_->bytes()); }
  size_t DurableLines(uint32_t worker) {
    FaultyFileSystem after(files_.CrashImage(FaultyFileSystem::Crash::kDurableOnly));
    return LinesIn(worker, after.MapPersistent("heap.pm", {})->bytes());
  }

 private:
  size_t LinesIn(uint32_t worker, std::span<const std::byte> bytes) {
    size_t count = 0;
    for (uint32_t line = 0; line < 4; ++line) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + (IndexLine(worker, line) - memory_->bytes().data()), sizeof word);
      count += word != 0;
    }
    return count;
  }
};

TEST_F(IndexLinesTest, AnInsertAndADeleteWriteThemBackWithTheirGroup) {
  Install(0, Draw(0));  // no version is older
  EXPECT_EQ(StoredLines(0), 2u);
  EXPECT_EQ(DurableLines(0), 0u);
  log_->WriteRunEnd({});
  EXPECT_EQ(DurableLines(0), 2u);
  SlotOf(1)->older = SlotOf(0);
  SlotOf(1)->flags = HeapSlot::kAbsent;
  Install(1, Draw(1));
  EXPECT_EQ(StoredLines(1), 2u);
  log_->WriteRunEnd({});
  EXPECT_EQ(DurableLines(1), 2u);
}

TEST_F(IndexLinesTest, AnUpdateChangesNoIndex) {
  SlotOf(0)->older = SlotOf(1);
  Install(0, Draw(0));
  EXPECT_EQ(StoredLines(0), 0u);
}

}  // namespace
}  // namespace dbx::testing
