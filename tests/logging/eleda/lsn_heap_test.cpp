// The LSN-heap gives the least entry, whatever is inserted, replaced and popped.
#include "logging/eleda/lsn_heap.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace dbx {
namespace {

TEST(LsnHeap, TheTopIsAlwaysTheLeast) {
  std::mt19937_64 random(5);
  LsnHeap heap(32);
  std::multiset<Lsn> model;
  for (int i = 0; i < 20'000; ++i) {
    const Lsn lsn(random() % 1000);
    if (model.size() < 32 && random() % 2 == 0) {
      heap.Insert({lsn, 0}), model.insert(lsn);
    } else if (!model.empty() && random() % 2 == 0) {
      model.erase(model.begin()), model.insert(lsn), heap.ReplaceTop(lsn);
    } else if (!model.empty()) {
      model.erase(model.begin()), heap.Pop();
    }
    ASSERT_EQ(heap.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(heap.top().lsn, *model.begin());
    }
  }
}

TEST(LsnHeap, ReplacingTheTopMovesAtMostItsDepth) {
  LsnHeap heap(32);
  for (uint32_t i = 0; i < 32; ++i) heap.Insert({Lsn(i), i});
  const uint64_t before = heap.moves();
  for (uint64_t lsn = 32; lsn < 1032; ++lsn) heap.ReplaceTop(Lsn(lsn));
  EXPECT_LE(heap.moves() - before, 5u * 1000);
}

}  // namespace
}  // namespace dbx
