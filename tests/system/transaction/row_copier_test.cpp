// Rows are copied as transactions have committed them, under each concurrency control. The transactions and the copier
// take turns in one thread, so that a copier that were to wait is seen to.
#include "system/transaction/row_copier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

constexpr Key kX = 5, kAbsent = 100, kRows = 40;

struct GivenUp {};

template <class Pair>
class RowCopierTest : public ::testing::Test {
 protected:
  RowCopierTest() {
    for (Key key = 0; key < kRows; ++key) engine_.LoadRow(key, 10 * key);
  }

  // What the copier takes until it has called for a batch, or tried one again, `batches_max` times.
  std::map<Key, uint64_t> Copied(int batches_max) {
    std::map<Key, uint64_t> copied;
    const auto take = [&](TableId, Key key, std::span<const std::byte> tuple) {
      std::memcpy(&copied[key], tuple.data(), sizeof(uint64_t));
    };
    const auto before_batch = [&] {
      if (--batches_max < 0) throw GivenUp();
    };
    try {
      copier_.CopyTable(engine_.table().id(), take, before_batch);
    } catch (const GivenUp&) {
    }
    return copied;
  }
  std::map<Key, uint64_t> AllCopied() { return Copied(1000); }

  // In a transaction that ends with `end`, behind its `change`: what the copier takes before it ends.
  std::map<Key, uint64_t> CopiedBeside(const Procedure& change, Outcome end) {
    std::map<Key, uint64_t> copied;
    engine_.Run(0, [&](TestContext& ctx) {
      EXPECT_EQ(change(ctx), Outcome::kOk);
      copied = Copied(50);
      return end;
    });
    return copied;
  }
  // The loaded value or nothing: a copier that has to wait gets no further than the row.
  static void ExpectLoaded(const std::map<Key, uint64_t>& copied, Key key) {
    const auto found = copied.find(key);
    EXPECT_TRUE(found == copied.end() || found->second == 10 * key) << found->second;
  }
  Procedure Update() {
    return [this](TestContext& ctx) {
      return ctx.Update(engine_.table(), kX, [](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, 7); });
    };
  }
  Procedure Insertion() {
    return [this](TestContext& ctx) {
      const Tuple tuple{7, {}};
      return ctx.Insert(engine_.table(), kAbsent, std::as_bytes(std::span(&tuple, 1)));
    };
  }
  Procedure Deletion() {
    return [this](TestContext& ctx) { return ctx.Delete(engine_.table(), kX); };
  }

  Harness<typename Pair::Cc, typename Pair::Log> engine_;
  RowCopier<typename Pair::Cc, typename Pair::Log> copier_{WorkerId(TestEngine::kWorkers - 1), engine_.shared(),
                                                           engine_.log(), engine_.database()};
};

template <template <class> class C, class L>
struct Of {
  using Cc = C<L>;
  using Log = L;
};
using Taurus = TaurusLog<DataPayload>;
using Serial = SerialLog<DataPayload>;
using Pairs = ::testing::Types<Of<NoWaitRows, Serial>, Of<NoWaitTable, Taurus>, Of<WaitDieRows, Taurus>,
                               Of<WaitDieTable, Serial>, Of<DlDetectRows, Serial>, Of<DlDetectTable, Taurus>,
                               Of<Silo, Serial>, Of<TicToc, Taurus>, Of<Hekaton, Taurus>, Of<HekatonSnapshot, Serial>>;
TYPED_TEST_SUITE(RowCopierTest, Pairs);

TYPED_TEST(RowCopierTest, AllRowsAreCopiedAndNoneThatIsDeleted) {
  this->engine_.Write(0, kX, 7);
  this->engine_.Insert(1, kAbsent, 8);
  this->engine_.Delete(1, kX + 1);
  const std::map<Key, uint64_t> copied = this->AllCopied();
  EXPECT_EQ(copied.size(), kRows);
  EXPECT_EQ(copied.at(kX), 7u);
  EXPECT_EQ(copied.at(kAbsent), 8u);
  EXPECT_FALSE(copied.contains(kX + 1));
}

TYPED_TEST(RowCopierTest, AChangeIsNotCopiedBeforeItCommits) {
  for (const Outcome end : {Outcome::kRollback, Outcome::kOk}) {
    this->ExpectLoaded(this->CopiedBeside(this->Update(), end), kX);
    EXPECT_EQ(this->AllCopied().at(kX), end == Outcome::kOk ? 7 : 10 * kX);
  }
}

TYPED_TEST(RowCopierTest, AnInsertionIsNotCopiedBeforeItCommits) {
  for (const Outcome end : {Outcome::kRollback, Outcome::kOk}) {
    EXPECT_FALSE(this->CopiedBeside(this->Insertion(), end).contains(kAbsent));
    EXPECT_EQ(this->AllCopied().contains(kAbsent), end == Outcome::kOk);
  }
}

TYPED_TEST(RowCopierTest, ADeletedRowIsCopiedIfTheDeletionIsUndone) {
  for (const Outcome end : {Outcome::kRollback, Outcome::kOk}) {
    this->ExpectLoaded(this->CopiedBeside(this->Deletion(), end), kX);
    EXPECT_EQ(this->AllCopied().contains(kX), end == Outcome::kRollback);
  }
}

TYPED_TEST(RowCopierTest, RowsBesideOneThatIsBeingChangedAreCopied) {
  // The row waits for the end of the transaction; those that come before it in its batch do not.
  const std::map<Key, uint64_t> copied = this->CopiedBeside(this->Update(), Outcome::kOk);
  EXPECT_GT(copied.size(), 0u);
}

}  // namespace
}  // namespace dbx::testing
