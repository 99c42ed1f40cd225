// What a master's log in Log Stores calls the last record: what readers wait for.
#include "multi_master/master/stored_log.h"

#include <gtest/gtest.h>

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

TEST_F(StoredLogTest, AChangeNamesTheVersionThatItWasMadeFrom) {
  const PageLsn before{MasterId(0), VsTime(40)};
  log_->OnGrant(before, {});
  EXPECT_GT(Append(2, before).value(), 41u);
}

}  // namespace
}  // namespace dbx::mm
