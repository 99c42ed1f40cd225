// Claims about strict reads: what was acknowledged anywhere before a transaction begins is seen by it.
#include "multi_master/master/strict_reads.h"

#include <deque>

#include "tests/multi_master/master/read_fixture.h"

namespace dbx::mm {
namespace {

constexpr MasterId kSelf(0), kOther(1), kThird(2);

// One master's strict reads, with the others played by the test.
class StrictRoundsTest : public testing::Test {
 protected:
  StrictRoundsTest()
      : log_(kSelf, [](const MemoryFlush&) {}),
        strict_(kSelf, 3, log_, [this](MasterId to, const StrictQuestion& question) {
          const std::lock_guard latch(latch_);
          asked_.push_back({to, question.round});
        }) {}
  ~StrictRoundsTest() override { strict_.Stop(); }

  // A transaction that waits.
  class Waiter {
   public:
    explicit Waiter(StrictReads& strict)
        : thread_([this, &strict] {
            strict.Await();
            is_over_ = true;
          }) {}
    bool IsOverSoon() const {
      return Soon([this] { return is_over_.load(); }, 2000);
    }
    bool IsOver() const {
      return Soon([this] { return is_over_.load(); }, 20);
    }

   private:
    Atomic<bool> is_over_{false};
    Thread thread_;
  };
  static bool Soon(auto&& holds, int millis) {
    for (int i = 0; i < millis && !holds(); ++i) host::SleepFor(std::chrono::milliseconds(1));
    return holds();
  }
  // Questions so far, of which the last is of this round.
  bool Asked(uint64_t round) {
    return Soon(
        [&] {
          const std::lock_guard latch(latch_);
          return !asked_.empty() && asked_.back().second == round;
        },
        2000);
  }
  void Answer(MasterId from, uint64_t round, uint64_t time) {
    EXPECT_TRUE(strict_.OnAnswer(from, {round, VsTime(time)}));
  }
  void Apply(MasterId log, uint64_t time) {
    LfbStamp lfb{log, {}, log_.applied().of(log)};
    lfb.stamp.Set(log, VsTime(time));
    log_.OnApplied(lfb);
    strict_.OnApplied();
  }

  MemoryLog log_;
  Mutex latch_;
  std::vector<std::pair<MasterId, uint64_t>> asked_;
  StrictReads strict_;
};

TEST_F(StrictRoundsTest, ATransactionWaitsForAllAnswersAndUntilTheyAreApplied) {
  const Waiter waiter(strict_);
  ASSERT_TRUE(Asked(1));
  Answer(kOther, 1, 10);
  EXPECT_FALSE(waiter.IsOver()) << "one master has not answered";
  Answer(kThird, 1, 20);
  EXPECT_FALSE(waiter.IsOver()) << "nothing is applied";
  Apply(kOther, 12);
  EXPECT_FALSE(waiter.IsOver());
  Apply(kThird, 20);
  EXPECT_TRUE(waiter.IsOverSoon());
}

TEST_F(StrictRoundsTest, TheAnswersOfARoundThatIsUnderWayAreTooOld) {
  const Waiter first(strict_);
  ASSERT_TRUE(Asked(1));
  Answer(kOther, 1, 0);
  const Waiter second(strict_);
  EXPECT_FALSE(second.IsOver());
  Answer(kThird, 1, 0);
  EXPECT_TRUE(first.IsOverSoon());
  ASSERT_TRUE(Asked(2));
  EXPECT_FALSE(second.IsOver());
  Answer(kOther, 2, 0);
  Answer(kThird, 2, 0);
  EXPECT_TRUE(second.IsOverSoon());
  EXPECT_EQ(strict_.rounds(), 2u);
}

TEST_F(StrictRoundsTest, AnswersEnterNeitherClockNorApplied) {
  const Waiter waiter(strict_);
  ASSERT_TRUE(Asked(1));
  Answer(kOther, 1, 10);
  Answer(kThird, 1, 20);
  EXPECT_TRUE(log_.applied().IsEmpty());
  EXPECT_EQ(log_.View().tv, VsVector());
  EXPECT_TRUE(log_.MayApply({kOther, {}, VsTime(0)}));
  Apply(kOther, 10);
  Apply(kThird, 20);
  EXPECT_TRUE(waiter.IsOverSoon());
}

TEST_F(StrictRoundsTest, AQuestionThatWasLostIsAskedAgain) {
  const Waiter waiter(strict_);
  ASSERT_TRUE(Asked(1));
  Answer(kOther, 1, 0);
  const auto asked_again = [&] {
    const std::lock_guard latch(latch_);
    return asked_.size() >= 3 && asked_.back() == std::pair(kThird, uint64_t{1});
  };
  EXPECT_TRUE(Soon(asked_again, 2000));
  Answer(kThird, 1, 0);
  Answer(kThird, 1, 0);  // and to the first one, too
  EXPECT_TRUE(waiter.IsOverSoon());
}

TEST_F(StrictRoundsTest, ADeadMasterIsAskedNoMoreButItsLogCounts) {
  const Waiter waiter(strict_);
  ASSERT_TRUE(Asked(1));
  Answer(kOther, 1, 0);
  strict_.OnMasterDead(kThird, VsTime(30));
  EXPECT_FALSE(waiter.IsOver()) << "it may have acknowledged what its log has";
  Apply(kThird, 30);
  EXPECT_TRUE(waiter.IsOverSoon());
}

TEST_F(StrictRoundsTest, AnAnswerThatWasNotAskedForIsRefused) {
  EXPECT_FALSE(strict_.OnAnswer(kOther, {1, VsTime(5)}));
  EXPECT_FALSE(strict_.OnAnswer(kSelf, {0, VsTime(5)}));
  EXPECT_FALSE(strict_.OnAnswer(MasterId(7), {0, VsTime(5)}));
}

TEST(StrictMessagesTest, MessagesAreReadAsTheyWereWritten) {
  EXPECT_EQ(DecodeBody<StrictQuestion>(EncodeBody(StrictQuestion{7}))->round, 7u);
  const auto answer = DecodeBody<StrictAnswer>(EncodeBody(StrictAnswer{7, VsTime(9)}));
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->round, 7u);
  EXPECT_EQ(answer->durable, VsTime(9));
  EXPECT_FALSE(DecodeBody<StrictAnswer>(EncodeBody(StrictQuestion{7})).has_value());
}

// --- Within a cluster ---

class StrictReadTest : public ReadTest {
 protected:
  StrictReadTest() : ReadTest(/*strict_reads=*/true) {}
};

TEST_F(StrictReadTest, AReadThatBeginsAfterAnAcknowledgementElsewhereSeesIt) {
  ScanAll(0);  // its pages are in the buffer
  for (uint64_t value = 1; value <= 20; ++value) {
    WriteAlone(1, kLeft, value);
    EXPECT_EQ(ReadOne(0, kLeft), value);
  }
  EXPECT_EQ(requests(0), 0u) << "it was not read under a lock";
}

TEST_F(StrictReadTest, ItWaitsForFlushesThatAreNotAppliedYet) {
  ScanAll(0);
  cluster_.HoldFlushes(0);
  WriteAlone(1, kLeft, 5);
  Atomic<uint64_t> seen{0};
  Thread reader([&] { seen = ReadOne(0, kLeft); });
  host::SleepFor(std::chrono::milliseconds(30));
  EXPECT_EQ(seen.load(), 0u);
  cluster_.Deliver(0);
  reader.join();
  EXPECT_EQ(seen.load(), 5u);
}

TEST_F(ReadTest, WithoutStrictReadsAnOlderValueMayBeRead) {
  WriteAlone(1, kLeft, 4);
  cluster_.FlushAndApply(1, 0);
  cluster_.HoldFlushes(0);
  WriteAlone(1, kLeft, 5);
  EXPECT_EQ(ReadOne(0, kLeft), 4u);
}

}  // namespace
}  // namespace dbx::mm
