// The table of transactions that come and go, against an ordinary map.
#include "logging/differential/txn_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace dbx {
namespace {

struct Number {
  uint32_t value = 0;
  bool IsEmpty() const { return value == 0; }
};
using Oracle = std::map<uint64_t, uint32_t>;

void ExpectSame(const TxnMap<Number>& map, const Oracle& oracle) {
  Oracle seen;
  map.ForEach([&seen](TxnId id, const Number& number) { seen[id.value] = number.value; });
  EXPECT_EQ(seen, oracle);
  EXPECT_EQ(map.size(), oracle.size());
}

TEST(TxnMap, KeepsWhatAnOrdinaryMapKeeps) {
  for (const uint64_t seed : {1, 2, 3}) {
    std::mt19937_64 random(seed);
    TxnMap<Number> map;
    Oracle oracle;
    for (uint32_t i = 1; i < 50'000; ++i) {
      // Workers' sequences, and more and more of them; at first most are soon gone.
      const uint64_t id = TxnId::Make(WorkerId(random() % 4), random() % (1 + i / 20)).value;
      const uint32_t value = random() % (i < 25'000 ? 2 : 5) == 0 ? 0 : i;
      ASSERT_EQ(map.Find(TxnId{id}).value, oracle.contains(id) ? oracle[id] : 0);
      map.Set(TxnId{id}, {value});
      oracle[id] = value;
      if (value == 0) oracle.erase(id);
      if (i % 5'000 == 0) ExpectSame(map, oracle);
    }
    ExpectSame(map, oracle);
    EXPECT_GT(oracle.size(), 5'000u);
  }
}

TEST(TxnMap, IdsOfAnyValueAreKept) {
  TxnMap<Number> map;
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    EXPECT_TRUE(map.Find(TxnId{id}).IsEmpty());
    map.Set(TxnId{id}, {7});
    EXPECT_EQ(map.Find(TxnId{id}).value, 7u);
  }
  EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace dbx
