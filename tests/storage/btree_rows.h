// What the tests of BTreeIndex share: rows that bear their key, and the contents of an index in short.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "storage/btree_scan.h"

namespace dbx {

inline constexpr Key kLowestKey = 0;
inline constexpr Key kHighestKey = ~Key{0};

inline uint64_t Seed() {
  const char* given = std::getenv("DBX_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device()();
  testing::Test::RecordProperty("seed", std::to_string(seed));
  return seed;
}

// Rows of an index of one thread.
class Rows {
 public:
  Row* Make(Key key) {
    Row* row = arena_.Allocate();
    row->key = key;
    row->control.store(0, std::memory_order_relaxed);
    return row;
  }
  Row* Insert(BTreeIndex& index, Key key, LeafChange& change) {
    return index.FindOrInsert(
        key, [&] { return Make(key); }, change);
  }
  Row* Insert(BTreeIndex& index, Key key) {
    LeafChange change;
    return Insert(index, key, change);
  }

 private:
  RowArena arena_{16, 16};
};

// The keys of a range in the order of the scan, each of which leads to the row that bears it.
inline std::vector<Key> ScanKeys(const BTreeIndex& index, Key low, Key high, ScanOrder order = ScanOrder::kAscending) {
  std::vector<Key> keys;
  BTreeScan scan(index, low, high, order);
  while (scan.NextBatch()) {
    for (const BTreeEntry& entry : scan.entries()) {
      EXPECT_EQ(entry.row->key, entry.key);
      keys.push_back(entry.key);
    }
  }
  return keys;
}

// The leaves that meet a range, in the order of the scan.
inline std::vector<LeafRef> ScanLeaves(const BTreeIndex& index, Key low, Key high,
                                       ScanOrder order = ScanOrder::kAscending) {
  std::vector<LeafRef> leaves;
  BTreeScan scan(index, low, high, order);
  while (scan.NextBatch()) {
    if (leaves.empty() || leaves.back() != scan.leaf()) leaves.push_back(scan.leaf());
  }
  return leaves;
}

inline std::vector<LeafRef> AllLeaves(const BTreeIndex& index) { return ScanLeaves(index, kLowestKey, kHighestKey); }

}  // namespace dbx
