// What a master's log in Log Stores calls the last record: what readers wait for.
#include "multi_master/master/stored_log.h"

#include <gtest/gtest.h>

#include <array>

#include "logging/device/posix_file_system.h"
#include "tests/logging/device/temp_dir.h"

namespace dbx::mm {
namespace {

class StoredLogTest : public testing::Test {
 protected:
  static constexpr MasterId kSelf{1};

  StoredLogTest() {
    FlushBufferOptions options;
    options.self = kSelf;
    log_ = std::make_unique<StoredLog>(options, PosixFileSystem().Create(directory_ / "log", DeviceOptions{}));
  }
  ~StoredLogTest() override { log_->Stop(); }

  // Changes of a page, the first from its version `previous`.
  VsTime Append(size_t count, const PageLsn& previous = {}) {
    std::vector<PageChange> changes(count);
    for (PageChange& change : changes) {
      change.page = PageId(7);
      change.what = RemoveRow{3};
    }
    changes.front().previous = previous;
    log_->AppendPages(changes);
    for (size_t i = 1; i < count; ++i) EXPECT_EQ(changes[i].previous, changes[i - 1].lsn);
    return changes.back().lsn.time;
  }

  TempDir directory_;
  std::unique_ptr<StoredLog> log_;
};

TEST_F(StoredLogTest, TheLastRecordIsThatOfTheLastChange) {
  EXPECT_EQ(log_->last_record(), VsTime());
  const VsTime last = Append(3);
  EXPECT_EQ(log_->last_record(), last);
  log_->AwaitDurable(last);
  EXPECT_GE(log_->durable_until().value(), last.value());
}

// A reader of what a transaction has written, once that has ended, must wait for its END: without it a crash makes it a
// loser.
TEST_F(StoredLogTest, AnEndIsARecordTooThatReadersWaitFor) {
  Append(1);
  const VsTime end = log_->AppendEnd({kSelf, ClusterEpoch(1), 1}, EndKind::kCommitted, {});
  EXPECT_EQ(log_->last_record(), end);
}

// Of the time that a grant raises the clock to there is no record, and nothing would ever become durable.
TEST_F(StoredLogTest, AGrantIsNoRecord) {
  const VsTime last = Append(1);
  log_->OnGrant({MasterId(0), VsTime(1000)}, {});
  EXPECT_EQ(log_->last_record(), last);
  log_->AwaitDurable(log_->last_record());
  EXPECT_GT(Append(1).value(), 1000u);
}

// RecordHeader 32; PAGES: lead 12, length 4, body 3 and 25 a change, and 8 for the key of each.
TEST_F(StoredLogTest, TheVolumeIsToldByKindOfRecord) {
  Append(2);
  log_->AwaitDurable(log_->AppendEnd({kSelf, ClusterEpoch(1), 1}, EndKind::kCommitted, {}));
  const LogVolume volume = log_->volume();
  EXPECT_EQ(volume.pages_records, 1u);
  EXPECT_EQ(volume.changes, 2u);
  EXPECT_EQ(volume.changed_bytes, 0u);
  EXPECT_EQ(volume.pages_bytes, 120u);  // 32 + 12 + 4 + 3 + 2 * 33 in whole words
  EXPECT_EQ(volume.ends, 1u);
  EXPECT_EQ(volume.record_bytes, 120 + 64 + volume.lfbs * (32 + 8 + 128));
  EXPECT_EQ(volume.time_bytes(), 8 + 2 * 16 + 8 + volume.lfbs * 136);
  EXPECT_EQ(volume.bytes % 4096, 0u);
}

TEST_F(StoredLogTest, VectorClocksTakeAWordForEachMasterInstead) {
  LogVolume volume;
  volume.pages_records = 10, volume.changes = 20, volume.ends = 5, volume.lfbs = 1;
  EXPECT_EQ(volume.time_bytes(), 80u + 320 + 40 + 136);
  EXPECT_EQ(volume.vector_time_bytes(8), 8 * (320u + 40) + 8);
  EXPECT_EQ(volume.one_stamp_time_bytes(8), 8 * (160u + 40) + 160 + 8);
}

TEST_F(StoredLogTest, BytesOfRowsAreCountedApart) {
  const std::array<std::byte, 40> image{};
  std::vector<PageChange> changes(1);
  changes.front().page = PageId(7);
  changes.front().what = PutRow{3, {kSelf, ClusterEpoch(1), 1}, true, 0, 0, image};
  log_->AppendPages(changes);
  EXPECT_EQ(log_->volume().changed_bytes, 40u);
}

TEST_F(StoredLogTest, AChangeNamesTheVersionThatItWasMadeFrom) {
  const PageLsn before{MasterId(0), VsTime(40)};
  log_->OnGrant(before, {});
  EXPECT_GT(Append(2, before).value(), 41u);
}

}  // namespace
}  // namespace dbx::mm
