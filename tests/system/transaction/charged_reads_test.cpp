// Which reads are charged as those of persistent memory (PM_READS).
#include "system/transaction/charged_reads.h"

#include <gtest/gtest.h>

#include <memory>

namespace dbx {
namespace {

constexpr TableId kTable(1), kOther(2);

std::unique_ptr<ReadCharges> ChargesOf(uint64_t nanos) {
  auto charges = std::make_unique<ReadCharges>();
  charges->SetNanos(nanos);
  return charges;
}

TEST(ReadCharges, ARowIsChargedForOnceWhileItIsAmongTheLast) {
  const auto charges = ChargesOf(1);
  for (int i = 0; i < 3; ++i) charges->Access(kTable, 0);
  EXPECT_EQ(charges->charged(), 1u);
  charges->Access(kOther, 0);
  EXPECT_EQ(charges->charged(), 2u) << "the same key of another table";
}

TEST(ReadCharges, ARowIsChargedForAgainBehindAsManyOthers) {
  const auto charges = ChargesOf(1);
  charges->Access(kTable, 0);
  for (Key key = 1; key < ReadCharges::kCachedRows; ++key) charges->Access(kOther, 0);
  const uint64_t before = charges->charged();
  charges->Access(kTable, 0);
  EXPECT_EQ(charges->charged(), before) << "it is the last of the rows that are cached";
  for (Key key = 0; key < ReadCharges::kCachedRows; ++key) charges->Access(kOther, 0);
  charges->Access(kTable, 0);
  EXPECT_EQ(charges->charged(), before + 1);
}

TEST(ReadCharges, MoreRowsThanAreCachedAreChargedForEachTime) {
  const auto charges = ChargesOf(1);
  constexpr Key kRows = 3 * ReadCharges::kCachedRows;
  for (int round = 0; round < 3; ++round) {
    for (Key key = 0; key < kRows; ++key) charges->Access(kTable, key);
  }
  EXPECT_EQ(charges->charged(), 3 * kRows);
}

TEST(ReadCharges, NothingIsChargedForMemoryAsFastAsDram) {
  const auto charges = ChargesOf(0);
  charges->Access(kTable, 0);
  EXPECT_EQ(charges->charged(), 0u);
}

}  // namespace
}  // namespace dbx
