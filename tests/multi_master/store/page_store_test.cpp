// Claims about a Page Store: which version a request gets, and when.
#include "multi_master/store/page_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace dbx::mm {
namespace {

constexpr PageId kPage{4}, kForeign{5};
const NodeId kMaster0{Role::kMaster, 0};

MasterId M(uint32_t i) { return MasterId(static_cast<uint8_t>(i)); }

// A store of the even pages, and the changes of a page that two masters make in turn.
class PageStoreTest : public testing::Test {
 protected:
  PageStoreTest()
      : store_([](PageId) { return SlottedPage(); }, [](PageId page) { return page.value() % 2 == 0; },
               [this](NodeId, const PageRead& read) { Answered(read); }) {}

  // The page's next change, at this time of the master.
  PageChange Change(uint32_t master, uint64_t time) {
    FormatPage format;
    format.tree = TreeId(static_cast<uint32_t>(time));
    const PageChange change{kPage, {M(master), VsTime(time)}, last_, format};
    last_ = change.lsn;
    return change;
  }
  void Flush(uint32_t master, uint64_t time, std::vector<PageChange> changes) {
    LfbStamp lfb{M(master), {}, {}};
    lfb.stamp.Set(M(master), VsTime(time));
    store_.OnFlush(lfb, changes, nullptr);
  }
  template <class Message>
  bool Ask(const Message& message, NodeId from = kMaster0) {
    std::vector<std::byte> body;
    WireWriter writer(body);
    message.Encode(writer);
    return store_.OnMessage(from, Message::kType, body);
  }
  bool AskAt(uint64_t request, const PageLsn& lsn) { return Ask(ReadPageAt{RequestId(request), kPage, lsn}); }
  bool AskBelow(uint64_t request, uint64_t time0, uint64_t time1) {
    VsVector tv;
    tv.Set(M(0), VsTime(time0));
    tv.Set(M(1), VsTime(time1));
    return Ask(ReadPageBelow{RequestId(request), kPage, tv});
  }
  void Answered(const PageRead& read) {
    answers_[read.request.value()] = read.page ? "version " + std::to_string(read.page->lsn().time.value()) : "none";
  }

  PageStore store_;
  PageLsn last_;
  std::map<uint64_t, std::string> answers_;
};

using Answers = std::map<uint64_t, std::string>;

TEST_F(PageStoreTest, AVersionThatIsThereIsSentAtOnce) {
  Flush(0, 11, {Change(0, 10)});
  EXPECT_TRUE(AskAt(1, {M(0), VsTime(10)}));
  EXPECT_EQ(answers_, (Answers{{1, "version 10"}}));
}

TEST_F(PageStoreTest, AVersionIsWaitedForUntilItsLogHasBeenRead) {
  EXPECT_TRUE(AskAt(1, {M(0), VsTime(10)}));
  EXPECT_TRUE(answers_.empty());
  Flush(1, 30, {});
  EXPECT_TRUE(answers_.empty());
  Flush(0, 11, {Change(0, 10)});
  EXPECT_EQ(answers_, (Answers{{1, "version 10"}}));
}

TEST_F(PageStoreTest, AVersionIsWaitedForUntilItsCauseOfAnotherLogHasBeenRead) {
  const PageChange cause = Change(1, 10), change = Change(0, 20);
  Flush(0, 21, {change});
  EXPECT_TRUE(AskAt(1, change.lsn));
  EXPECT_TRUE(answers_.empty());
  Flush(1, 11, {cause});
  EXPECT_EQ(answers_, (Answers{{1, "version 20"}}));
}

TEST_F(PageStoreTest, AReaderWaitsUntilAllLogsUpToItsTimesHaveBeenRead) {
  Flush(0, 11, {Change(0, 10)});
  EXPECT_TRUE(AskBelow(1, 11, 30));
  Flush(1, 29, {Change(1, 20)});
  EXPECT_TRUE(answers_.empty());
  Flush(1, 31, {});
  EXPECT_EQ(answers_, (Answers{{1, "version 20"}}));
}

TEST_F(PageStoreTest, AReaderDoesNotSeeWhatItsTimesDoNotCover) {
  Flush(0, 11, {Change(0, 10)});
  Flush(1, 21, {Change(1, 20)});
  EXPECT_TRUE(AskBelow(1, 11, 19));
  EXPECT_EQ(answers_, (Answers{{1, "version 10"}}));
}

TEST_F(PageStoreTest, AVersionThatIsNotKeptAnyMoreIsRefused) {
  Flush(0, 11, {Change(0, 10)});
  Flush(0, 21, {Change(0, 20)});
  VsVector least;
  least.Set(M(0), VsTime(21));
  store_.FoldBelow(least);
  EXPECT_TRUE(AskAt(1, {M(0), VsTime(10)}));
  EXPECT_TRUE(AskBelow(2, 11, 0));
  EXPECT_EQ(answers_, (Answers{{1, "none"}, {2, "none"}}));
}

TEST_F(PageStoreTest, APageBeyondItsSlicesIsRefused) {
  EXPECT_FALSE(Ask(ReadPageAt{RequestId(1), kForeign, {}}));
  EXPECT_FALSE(Ask(ReadPageBelow{RequestId(2), kForeign, {}}));
  EXPECT_TRUE(answers_.empty());
}

TEST_F(PageStoreTest, ChangesBeyondItsSlicesArePassedOver) {
  PageChange foreign = Change(0, 10);
  foreign.page = kForeign;
  Flush(0, 11, {foreign});
  EXPECT_EQ(store_.counters().changes, 0u);
}

TEST_F(PageStoreTest, AMasterWhoseLinkIsDownGetsNoAnswer) {
  EXPECT_TRUE(AskAt(1, {M(0), VsTime(10)}));
  store_.OnLinkDown(kMaster0);
  Flush(0, 11, {Change(0, 10)});
  EXPECT_TRUE(answers_.empty());
}

TEST_F(PageStoreTest, BytesThatAreNoRequestChangeNothing) {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> body(random.Below(64));
    for (std::byte& byte : body) byte = std::byte(random.Below(256));
    const MessageType type(static_cast<uint16_t>(299 + random.Below(5)));
    if (type == ReadPageAt::kType || type == ReadPageBelow::kType) body.resize(body.size() % 20);
    store_.OnMessage(kMaster0, type, body);
  }
  EXPECT_TRUE(answers_.empty());
}

TEST(StoreMessagesTest, APageArrivesAsItWasSent) {
  PageRead sent{RequestId(9), {}, std::make_unique<SlottedPage>()};
  sent.page->Format(kPage, TreeId(3), 0, PageId(), 0);
  sent.newest.Set(M(3), VsTime(8));
  std::vector<std::byte> body;
  WireWriter writer(body);
  sent.Encode(writer);
  WireReader reader(body);
  const PageRead read = PageRead::Decode(reader);
  ASSERT_TRUE(reader.AtEnd());
  EXPECT_EQ(read.request, sent.request);
  EXPECT_EQ(read.newest, sent.newest);
  EXPECT_EQ(std::memcmp(read.page->bytes().data(), sent.page->bytes().data(), kPageBytes), 0);
  for (size_t length = 0; length < body.size(); length += 97) {
    WireReader cut(std::span<const std::byte>(body).first(length));
    PageRead::Decode(cut);
    EXPECT_FALSE(cut.AtEnd()) << length;
  }
}

}  // namespace
}  // namespace dbx::mm
