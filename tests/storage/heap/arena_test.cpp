// RowArena and MappedMemory: zeroed, aligned, recycled, and no larger than what is used.
#include "storage/heap/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace dbx {
namespace {

TEST(TouchMemoryTest, WhatIsThereStays) {
  std::vector<std::byte> bytes(5 * kPageBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  const std::vector<std::byte> before = bytes;
  TouchMemory(bytes.data() + 100, 4 * kPageBytes - 150);
  EXPECT_EQ(bytes, before);
}

std::span<std::byte> Bytes(Row* row, size_t row_bytes) { return {reinterpret_cast<std::byte*>(row), row_bytes}; }

class RowArenaAlignmentTest : public testing::TestWithParam<std::pair<size_t, size_t>> {};

TEST_P(RowArenaAlignmentTest, RowsAreAlignedZeroedAndApart) {
  const auto [row_bytes, alignment] = GetParam();
  RowArena arena(row_bytes, alignment);
  std::set<std::byte*> starts;
  for (int i = 0; i < 3000; ++i) {
    const auto row = Bytes(arena.Allocate(), row_bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(row.data()) % alignment, 0u);
    ASSERT_TRUE(AllZero(row));
    std::ranges::fill(row, std::byte{0xff});
    const auto [at, fresh] = starts.insert(row.data());
    ASSERT_TRUE(fresh);
    ASSERT_TRUE(at == starts.begin() || *std::prev(at) + row_bytes <= row.data());
    ASSERT_TRUE(std::next(at) == starts.end() || row.data() + row_bytes <= *std::next(at));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowArenaAlignmentTest,
                         testing::Values(std::pair<size_t, size_t>{16, 16}, std::pair<size_t, size_t>{1024, 64},
                                         std::pair<size_t, size_t>{48, 16}, std::pair<size_t, size_t>{4096, 4096},
                                         std::pair<size_t, size_t>{80'000, 16}));

TEST(RowArenaTest, RecycledRowIsZeroedButStaysGoneUntilItsNextLife) {
  RowArena arena(128, 64);
  Row* const row = arena.Allocate();
  std::ranges::fill(Bytes(row, 128), std::byte{0xff});
  arena.Recycle(row);
  EXPECT_EQ(row->control.load(), Row::kGone);
  ASSERT_EQ(arena.Allocate(), row);
  EXPECT_EQ(row->control.load(), Row::kGone);
  EXPECT_TRUE(AllZero(Bytes(row, 128).subspan(sizeof row->control)));
}

TEST(RowArenaTest, RecycledRowsAreUsedBeforeFreshOnes) {
  RowArena arena(64, 64);
  std::set<Row*> rows;
  for (int i = 0; i < 100; ++i) rows.insert(arena.Allocate());
  for (Row* row : rows) arena.Recycle(row);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rows.erase(arena.Allocate()), 1u);
  EXPECT_TRUE(rows.empty());
}

TEST(RowArenaTest, TinyArenasStayTiny) {
  RowArena arena(1024, 64);
  EXPECT_EQ(arena.memory_bytes(), 0u);
  arena.Allocate();
  EXPECT_LE(arena.memory_bytes(), kPageBytes);
}

TEST(RowArenaTest, LargeLoadWastesAtMostTwoPercent) {
  RowArena arena(1040, 16);
  constexpr size_t kRows = 200'000;
  for (size_t i = 0; i < kRows; ++i) arena.Allocate()->key = i;
  EXPECT_GE(arena.memory_bytes(), kRows * 1040);
  EXPECT_LE(arena.memory_bytes(), kRows * 1040 * 102 / 100);
}

TEST(RowArenaTest, PrefaultedMemoryIsCountedHandedOutAndZero) {
  RowArena arena(1024, 64);
  arena.Allocate();
  arena.Prefault(20 << 20);
  const size_t prefaulted = arena.memory_bytes();
  EXPECT_GE(prefaulted, size_t{20} << 20);
  for (int i = 0; i < 20 << 10; ++i) ASSERT_TRUE(AllZero(Bytes(arena.Allocate(), 1024)));
  EXPECT_EQ(arena.memory_bytes(), prefaulted);
}

TEST(MappedMemoryTest, LargeMemoryStartsOnAHugePage) {
  const MappedMemory memory((size_t{5} << 20) + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kHugePageBytes, 0u);
  EXPECT_GT(memory.bytes(), size_t{5} << 20);
  std::memset(memory.data(), 1, memory.bytes());
}

TEST(MappedMemoryTest, MoreThanTheSystemHasIsOneClearError) {
  try {
    const MappedMemory memory(size_t{1} << 60);
    FAIL() << "mapped an exbibyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kNoSpace);
  }
}

TEST(MappedMemoryTest, MovingLeavesOneOwner) {
  MappedMemory from(kPageBytes);
  std::byte* const data = from.data();
  MappedMemory to(std::move(from));
  MappedMemory back;
  back = std::move(to);
  EXPECT_EQ(back.data(), data);
  back.data()[0] = std::byte{1};
}

}  // namespace
}  // namespace dbx
