// What a transaction changes of wide rows, in whatever order and pieces, is there when it has committed, and nothing
// else has changed: against an oracle that keeps whole rows.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/concurrency_control/pairs.h"

namespace dbx::testing {
namespace {

constexpr size_t kTupleBytes = 1000;
constexpr Key kKeys = 4;
using Bytes = std::array<std::byte, kTupleBytes>;
using Rows = std::map<Key, Bytes>;

Bytes RandomBytes(std::mt19937_64& random) {
  Bytes bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class ChangedBytes : public PairTest {
 protected:
  ChangedBytes() : PairTest({.tuple_bytes = kTupleBytes}) {}
  void SetUp() override {
    for (Key key = 0; key < kKeys; ++key) {
      rows_[key] = RandomBytes(random_);
      h_.LoadRow(key, rows_[key]);
    }
  }

  // A piece of a row, often near where the last one was, on either side.
  template <class Piece>
  void Change(TestTuple& tuple, Bytes& copy) {
    const size_t most = kTupleBytes - sizeof(Piece);
    const int64_t near = static_cast<int64_t>(at_ + random_() % 400) - 200;
    at_ = random_() % 3 == 0 ? random_() % (most + 1) : static_cast<size_t>(std::clamp<int64_t>(near, 0, most));
    const Bytes bytes = RandomBytes(random_);
    Piece piece;
    std::memcpy(&piece, bytes.data(), sizeof piece);
    tuple.SetAt<Piece>(at_, piece);
    std::memcpy(copy.data() + at_, &piece, sizeof piece);
  }

  Outcome Step(TestContext& ctx, Rows& rows) {
    const Key key = random_() % kKeys;
    const bool there = rows.contains(key);
    switch (random_() % 8) {
      case 0: {
        const Outcome outcome = ctx.Delete(h_.table(), key);
        EXPECT_EQ(outcome, there ? Outcome::kOk : Outcome::kNotFound);
        rows.erase(key);
        return Outcome::kOk;
      }
      case 1: {
        const Bytes bytes = RandomBytes(random_);
        EXPECT_EQ(ctx.Insert(h_.table(), key, bytes), there ? Outcome::kExists : Outcome::kOk);
        if (!there) rows[key] = bytes;
        return Outcome::kOk;
      }
      default: {
        const Outcome outcome = ctx.Update(h_.table(), key, [&](TestTuple& tuple) {
          for (size_t pieces = random_() % 4; pieces > 0; --pieces) {
            if (random_() % 3 == 0) Change<std::array<std::byte, TestTuple::kLongBytes>>(tuple, rows[key]);
            if (random_() % 3 == 0) Change<uint8_t>(tuple, rows[key]);
            Change<uint64_t>(tuple, rows[key]);
          }
        });
        EXPECT_EQ(outcome, there ? Outcome::kOk : Outcome::kNotFound);
        return Outcome::kOk;
      }
    }
  }

  Rows ReadAll() {
    Rows found;
    const CallResult result = h_.Run(1, [&](TestContext& ctx) {
      for (Key key = 0; key < kKeys; ++key) {
        Bytes bytes;
        const Outcome outcome = ctx.Read(h_.table(), key, [&](const TestTuple& tuple) { tuple.CopyAt(0, bytes); });
        if (outcome == Outcome::kOk) found[key] = bytes;
      }
      return Outcome::kOk;
    });
    EXPECT_EQ(result.outcome, Outcome::kOk);
    return found;
  }

  std::mt19937_64 random_{1};
  size_t at_ = 0;
  Rows rows_;
};

INSTANTIATE_TEST_SUITE_P(With, ChangedBytes, In(ControlsWhere([](const TestPair&) { return true; })), NameOfPair);

TEST_P(ChangedBytes, AreThoseThatATransactionSet) {
  for (int txn = 0; txn < 3000; ++txn) {
    Rows rows = rows_;
    const bool gives_up = random_() % 8 == 0;
    const CallResult result = h_.Run(0, [&](TestContext& ctx) {
      for (size_t steps = 1 + random_() % 6; steps > 0; --steps) {
        if (const Outcome outcome = Step(ctx, rows); outcome != Outcome::kOk) return outcome;
      }
      return gives_up ? Outcome::kNotFound : Outcome::kOk;
    });
    ASSERT_EQ(result.outcome, gives_up ? Outcome::kRollback : Outcome::kOk);
    if (!gives_up) rows_ = rows;
    ASSERT_TRUE(ReadAll() == rows_) << "after transaction " << txn;
  }
}

}  // namespace
}  // namespace dbx::testing
