// SecondaryIndex: runs come back ordered, whatever the order and the thread they were added in.
#include "storage/secondary_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace dbx {
namespace {

std::vector<Key> Found(const SecondaryIndex& index, uint64_t search_key) {
  const auto run = index.Find(search_key);
  return {run.begin(), run.end()};
}

TEST(SecondaryIndexTest, RunIsOrderedBySortKeyThenPrimary) {
  SecondaryIndex index("names");
  index.Add(7, "carol", 1);
  index.Add(7, "alice", 9);
  index.Add(8, "aaron", 5);
  index.Add(7, "bob", 3);
  index.Add(7, "alice", 2);
  index.Freeze();
  EXPECT_EQ(Found(index, 7), (std::vector<Key>{2, 9, 3, 1}));
  EXPECT_EQ(Found(index, 8), (std::vector<Key>{5}));
  EXPECT_EQ(index.entry_count(), 5u);
}

TEST(SecondaryIndexTest, UnknownSearchKeyHasNoRows) {
  SecondaryIndex index("names");
  index.Freeze();
  EXPECT_TRUE(index.Find(1).empty());
  index.Prefetch(1);
}

TEST(SecondaryIndexTest, ManySearchKeysKeepApart) {
  SecondaryIndex index("names");
  for (uint64_t i = 0; i < 30'000; ++i) index.Add(i / 3 << 20, std::to_string(9 - i % 3), i);
  index.Freeze();
  for (uint64_t i = 0; i < 30'000; i += 3) {
    ASSERT_EQ(Found(index, i / 3 << 20), (std::vector<Key>{i + 2, i + 1, i}));
    ASSERT_TRUE(index.Find((i / 3 << 20) + 1).empty());
  }
}

TEST(SecondaryIndexTest, DigestDependsOnEntriesNotOnTheOrderOfAdding) {
  const auto digest = [](std::vector<Key> primaries, uint64_t search_key) {
    SecondaryIndex index("names");
    for (Key primary : primaries) index.Add(search_key + primary % 2, "same", primary);
    index.Freeze();
    return index.Digest();
  };
  EXPECT_EQ(digest({1, 2, 3, 4}, 10), digest({4, 2, 3, 1}, 10));
  EXPECT_NE(digest({1, 2, 3, 4}, 10), digest({1, 2, 3, 6}, 10));
  EXPECT_NE(digest({1, 2, 3, 4}, 10), digest({1, 2, 3, 4}, 12));
}

TEST(SecondaryIndexTest, OneThatIsFrozenOverAnothersMemoryIsTheSame) {
  SecondaryIndex index("names"), mapped("names");
  for (uint64_t i = 0; i < 3000; ++i) index.Add(i / 3 << 20, std::to_string(9 - i % 3), i);
  index.Freeze();
  ASSERT_TRUE(mapped.FreezeOver(index.slots(), index.primaries()));
  EXPECT_TRUE(mapped.frozen());
  EXPECT_EQ(mapped.Digest(), index.Digest());
  EXPECT_EQ(mapped.entry_count(), 3000u);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(Found(mapped, i << 20), Found(index, i << 20));
  EXPECT_TRUE(mapped.Find(1).empty());
}

TEST(SecondaryIndexTest, WhatNoFrozenOneHasIsRefused) {
  SecondaryIndex index("names");
  index.Add(1, "", 7);
  index.Freeze();
  const auto slots = index.slots(), primaries = index.primaries();
  ASSERT_EQ(slots.size(), 4 * 16u);
  EXPECT_FALSE(SecondaryIndex("").FreezeOver(slots.first(3 * 16), primaries)) << "no power of two";
  EXPECT_FALSE(SecondaryIndex("").FreezeOver({}, {})) << "no slots";
  EXPECT_FALSE(SecondaryIndex("").FreezeOver(slots, {})) << "a run beyond the primary keys";
  size_t used = 0;
  for (size_t i = 0; i < 4; ++i) {
    if (slots[16 * i + 12] != std::byte{0}) used = i;
  }
  EXPECT_FALSE(SecondaryIndex("").FreezeOver(slots.subspan(16 * used, 16), primaries)) << "no empty slot";
}

TEST(SecondaryIndexTest, ThreadsAddSideBySide) {
  SecondaryIndex index("names");
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&index, t] {
      for (uint64_t i = t; i < 4000; i += 4) index.Add(i / 4, "", i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  index.Freeze();
  for (uint64_t i = 0; i < 1000; ++i)
    ASSERT_EQ(Found(index, i), (std::vector<Key>{4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}));
}

}  // namespace
}  // namespace dbx
