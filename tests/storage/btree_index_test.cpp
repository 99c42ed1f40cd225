// BTreeIndex against an oracle, split at every position, scanned over every range, unlinked and grown again.
#include "storage/btree_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "base/epoch.h"
#include "base/random.h"
#include "storage/btree_scan.h"
#include "tests/storage/btree_rows.h"

namespace dbx {
namespace {

constexpr uint32_t kSlots = BTreeLeaf::kSlots;
constexpr WorkerId kWorker{0};

class BTreeIndexTest : public testing::Test {
 protected:
  Row* Insert(Key key) { return rows_.Insert(index_, key); }
  // In ascending order, which fills the leaves.
  void Load(BTreeIndex& index, uint64_t keys, uint64_t stride) {
    for (uint64_t i = 0; i < keys; ++i) rows_.Insert(index, i * stride);
  }
  void Load(uint64_t keys, uint64_t stride) { Load(index_, keys, stride); }
  UnlinkResult Unlink(Key key) {
    const EpochSection section(clock_, kWorker);
    return index_.UnlinkEmpty(key, clock_, kWorker, [](BTreeLeaf&, BTreeLeaf&) {});
  }
  void Erase(Key key) { EXPECT_TRUE(index_.Erase(key, index_.Find(key))) << key; }
  void EraseRange(Key low, Key high) {
    for (const Key key : ScanKeys(index_, low, high)) Erase(key);
  }

  BTreeIndex index_{16};
  EpochClock clock_{2};
  Rows rows_;
};

// ---- Look-ups, inserts, erases ---------------------------------------------------------------------------

TEST_F(BTreeIndexTest, EmptyIndexFindsNothing) {
  EXPECT_EQ(index_.Find(kLowestKey), nullptr);
  EXPECT_EQ(index_.Find(kHighestKey), nullptr);
  EXPECT_TRUE(ScanKeys(index_, kLowestKey, kHighestKey).empty());
  EXPECT_EQ(AllLeaves(index_).size(), 1u);
}

TEST_F(BTreeIndexTest, MakeRunsOnlyForAnAbsentKey) {
  Row* const row = Insert(7);
  Row* const again = index_.FindOrInsert(7, []() -> Row* { throw std::logic_error("made a second row"); });
  EXPECT_EQ(again, row);
}

TEST_F(BTreeIndexTest, AHeldLeafIsChangedByItsHolderAlone) {
  Row* const row = Insert(1);
  const LeafRef before = AllLeaves(index_).front();
  ASSERT_TRUE(before.leaf->TryHold(before.version, 7));
  const LeafRef held = AllLeaves(index_).front();
  EXPECT_TRUE(held.held() && !before.held());
  EXPECT_FALSE(held.leaf->TryHold(held.version, 8));
  LeafChange change;
  const auto make = [&] { return rows_.Make(2); };
  EXPECT_EQ(index_.FindOrInsert(2, make, change, 8), nullptr);
  EXPECT_EQ(change.held_by, 7u);
  EXPECT_FALSE(index_.Erase(1, row, change));
  EXPECT_EQ(change.held_by, 7u);
  EXPECT_TRUE(held.Unchanged());
  EXPECT_NE(index_.FindOrInsert(2, make, change, 7), nullptr);
  held.leaf->EndHold();
  EXPECT_TRUE(index_.Erase(1, row, change));
}

TEST_F(BTreeIndexTest, ThrowingMakeLeavesTheTreeUsable) {
  for (Key key = 0; key < 2 * kSlots; ++key) {
    EXPECT_THROW(index_.FindOrInsert(key, []() -> Row* { throw std::bad_alloc(); }), std::bad_alloc);
    EXPECT_EQ(index_.Find(key), nullptr);
    Insert(key);
  }
  EXPECT_EQ(ScanKeys(index_, kLowestKey, kHighestKey).size(), 2 * kSlots);
}

TEST_F(BTreeIndexTest, ErasesTheNamedRowOnly) {
  Row* const row = Insert(7);
  Row other{};
  EXPECT_FALSE(index_.Erase(7, &other));
  EXPECT_FALSE(index_.Erase(8, row));
  EXPECT_FALSE(index_.Erase(8, nullptr));
  EXPECT_TRUE(index_.Erase(7, row));
  EXPECT_FALSE(index_.Erase(7, row));
}

TEST_F(BTreeIndexTest, TheLowestAndTheHighestKeyAreKeysLikeOthers) {
  for (Key i = 0; i < 500; ++i) {
    Insert(i);
    Insert(kHighestKey - i);
  }
  EXPECT_EQ(index_.Find(kHighestKey)->key, kHighestKey);
  EXPECT_EQ(ScanKeys(index_, kHighestKey, kHighestKey), std::vector<Key>{kHighestKey});
  EXPECT_EQ(ScanKeys(index_, kLowestKey, kLowestKey), std::vector<Key>{kLowestKey});
  EXPECT_EQ(ScanKeys(index_, kLowestKey, kHighestKey, ScanOrder::kDescending).size(), 1000u);
  Erase(kHighestKey);
  EXPECT_EQ(index_.Find(kHighestKey), nullptr);
  EXPECT_EQ(ScanKeys(index_, 500, kHighestKey).back(), kHighestKey - 1);
}

// ---- Key patterns ----------------------------------------------------------------------------------------

constexpr uint64_t kPatternKeys = 300'000;

struct Pattern {
  const char* name;
  Key (*key)(uint64_t i);  // distinct for i below kPatternKeys
  double entries_per_leaf_min;
};
Key Scattered(uint64_t i) { return Mix64(i); }
const Pattern kPatterns[] = {
    {"Ascending", [](uint64_t i) { return i << 4; }, 61},
    {"Descending", [](uint64_t i) { return (kPatternKeys - i) << 4; }, 61},
    {"Scattered", Scattered, 40},
    // Ten districts that grow at their ends, in turn.
    {"Districts", [](uint64_t i) { return (i % 10) << 36 | i / 10; }, 60},
    {"DistrictsNewestFirst", [](uint64_t i) { return (i % 10) << 36 | (kPatternKeys - i / 10); }, 60},
    // Many rows under few search keys, in random order.
    {"FewSearchKeys", [](uint64_t i) { return (i % 3) << 48 | Scattered(i) >> 16; }, 40},
};

class BTreePatternTest : public BTreeIndexTest, public testing::WithParamInterface<Pattern> {
 protected:
  std::vector<Key> Keys(uint64_t count) {
    std::vector<Key> keys(count);
    for (uint64_t i = 0; i < count; ++i) keys[i] = GetParam().key(i);
    return keys;
  }
};

TEST_P(BTreePatternTest, FindsWhatWasInsertedAndScansInOrder) {
  std::vector<Key> keys = Keys(kPatternKeys);
  for (const Key key : keys) Insert(key);
  std::ranges::sort(keys);
  ASSERT_EQ(ScanKeys(index_, kLowestKey, kHighestKey), keys);
  for (const Key key : keys) {
    ASSERT_EQ(index_.Find(key)->key, key);
    ASSERT_EQ(index_.Find(key + 1) != nullptr, std::ranges::binary_search(keys, key + 1));
  }
  std::ranges::reverse(keys);
  ASSERT_EQ(ScanKeys(index_, kLowestKey, kHighestKey, ScanOrder::kDescending), keys);
}

TEST_P(BTreePatternTest, LeavesAreFilled) {
  for (const Key key : Keys(kPatternKeys)) Insert(key);
  const auto leaves = static_cast<double>(AllLeaves(index_).size());
  EXPECT_GE(kPatternKeys / leaves, GetParam().entries_per_leaf_min);
  // 1024 bytes and 16 of metadata in a multiple of a line, inner nodes, the start of a chunk.
  if (DefaultNodePlacement() == NodePlacement::kPacked) {
    EXPECT_LE(static_cast<double>(index_.memory_bytes()), leaves * 1088 * 1.05 + kHugePageBytes * 2);
  }
  EXPECT_LE(index_.height(), 5u);
}

TEST_P(BTreePatternTest, ErasesAllAgain) {
  for (const Key key : Keys(20'000)) Insert(key);
  for (const Key key : Keys(20'000)) Erase(key);
  EXPECT_TRUE(ScanKeys(index_, kLowestKey, kHighestKey).empty());
  for (const Key key : Keys(20'000)) Insert(key);
  EXPECT_EQ(ScanKeys(index_, kLowestKey, kHighestKey).size(), 20'000u);
}

INSTANTIATE_TEST_SUITE_P(Patterns, BTreePatternTest, testing::ValuesIn(kPatterns),
                         [](const auto& info) { return info.param.name; });

// ---- The oracle ------------------------------------------------------------------------------------------

class BTreeOracleTest : public BTreeIndexTest, public testing::WithParamInterface<uint64_t> {
 protected:
  void Step(std::mt19937_64& rng) {
    const Key key = AnyKey(rng);
    const auto known = oracle_.find(key);
    ASSERT_EQ(index_.Find(key), known == oracle_.end() ? nullptr : known->second) << key;
    if (known == oracle_.end()) {
      oracle_[key] = Insert(key);
    } else if (rng() % 8 < (growing_ ? 2 : 7)) {
      Erase(key);
      oracle_.erase(known);
    }
    if (rng() % 16 == 0) Unlink(AnyKey(rng));
    if (rng() % 64 == 0) CompareScan(key, key + std::min(kHighestKey - key, rng() % 3000 * KeyStep()));
    if (rng() % 5000 == 0) growing_ = !growing_;
  }
  // Keys of a few thousand spread over the whole range.
  Key AnyKey(std::mt19937_64& rng) const { return rng() % GetParam() * KeyStep(); }
  static Key KeyStep() { return kHighestKey / GetParam(); }
  void CompareScan(Key low, Key high) const {
    std::vector<Key> expected;
    for (auto it = oracle_.lower_bound(low); it != oracle_.end() && it->first <= high; ++it) {
      expected.push_back(it->first);
    }
    ASSERT_EQ(ScanKeys(index_, low, high), expected);
    std::ranges::reverse(expected);
    ASSERT_EQ(ScanKeys(index_, low, high, ScanOrder::kDescending), expected);
  }

  std::map<Key, Row*> oracle_;
  bool growing_ = true;
};

TEST_P(BTreeOracleTest, AgreesWithAMap) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 200'000 && !HasFatalFailure(); ++i) Step(rng);
  CompareScan(kLowestKey, kHighestKey);
}

INSTANTIATE_TEST_SUITE_P(KeysInPlay, BTreeOracleTest, testing::Values(3, 100, 1000, 10'000, 1'000'000));

// ---- Scans -----------------------------------------------------------------------------------------------

TEST_F(BTreeIndexTest, ScansEveryRangeInBothOrders) {
  constexpr Key kKeys = 150;
  Load(kKeys, 3);  // three leaves
  for (Key low = 0; low <= 3 * kKeys; ++low) {
    for (Key high = 0; high <= 3 * kKeys; ++high) {
      std::vector<Key> expected;
      for (Key key = (low + 2) / 3 * 3; key <= high && key < 3 * kKeys; key += 3) expected.push_back(key);
      ASSERT_EQ(ScanKeys(index_, low, high), expected) << low << " to " << high;
      std::ranges::reverse(expected);
      ASSERT_EQ(ScanKeys(index_, low, high, ScanOrder::kDescending), expected) << low << " to " << high;
    }
  }
}

TEST_F(BTreeIndexTest, ScanReportsTheLeafOfEveryKeyOfItsRange) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  Load(20'000, 10);
  EraseRange(50'000, 100'000);
  for (int i = 0; i < 300; ++i) {
    const Key low = rng() % 200'000;
    const Key high = low + rng() % 5'000;
    const std::vector<LeafRef> up = ScanLeaves(index_, low, high);
    std::vector<LeafRef> down = ScanLeaves(index_, low, high, ScanOrder::kDescending);
    std::ranges::reverse(down);
    ASSERT_EQ(up, down);
    std::vector<LeafRef> expected;
    for (Key key = low; key <= high; ++key) {
      LeafRef seen;
      index_.Find(key, seen);
      if (expected.empty() || expected.back() != seen) expected.push_back(seen);
    }
    ASSERT_EQ(up, expected);
  }
}

TEST_F(BTreeIndexTest, ScanGoesOnWhereItWasThoughTheTreeChanges) {
  Load(1000, 2);
  BTreeScan scan(index_, 0, 1999, ScanOrder::kAscending);
  std::vector<Key> seen;
  while (scan.NextBatch()) {
    for (const BTreeEntry& entry : scan.entries()) seen.push_back(entry.key);
    // Before and behind: what lies behind is still seen.
    Insert(seen.back() - 1);
    Insert(seen.back() + 1);
  }
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(std::ranges::count_if(seen, [](Key key) { return key % 2 == 0; }), 1000);
  EXPECT_GT(seen.size(), 1010u);
}

TEST_F(BTreeIndexTest, RepeatedBatchCoversTheSameRange) {
  Load(1000, 2);
  for (const ScanOrder order : {ScanOrder::kAscending, ScanOrder::kDescending}) {
    BTreeScan scan(index_, 100, 300, order);
    std::vector<Key> seen;
    for (int batch = 0; scan.NextBatch(); ++batch) {
      if (batch % 2 == 0) {
        Insert(201);
        scan.Repeat();
        continue;
      }
      for (const BTreeEntry& entry : scan.entries()) seen.push_back(entry.key);
    }
    ASSERT_EQ(seen, ScanKeys(index_, 100, 300, order));
  }
}

// ---- Splits, versions, metadata --------------------------------------------------------------------------

// The middle one of three leaves is full; what an insert at one of its positions does.
class BTreeSplitTest : public BTreeIndexTest, public testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr size_t kMetaBytes = 16;

  BTreeSplitTest() {
    Load(3 * kSlots, 10);
    // So that a key can come behind the others.
    Erase(kLast);
    // In no order, so that the split does not follow a run.
    for (const Key key : {700, 1100, 660}) Erase(key);
    for (const Key key : {1105, 665, 905, 705}) Insert(key);
    keys_ = ScanKeys(index_, kFirst, kLast);
    before_ = AllLeaves(index_);
    std::memset(before_[1].leaf->meta(), 0x5a, kMetaBytes);
    before_[1].leaf->control = 77;
  }
  static constexpr Key kFirst = (kSlots - 1) * 10 + 1, kLast = (2 * kSlots - 1) * 10;  // of the range of the leaf

  std::vector<Key> keys_;
  std::vector<LeafRef> before_;
};

TEST_P(BTreeSplitTest, EveryPositionSplitsIntoTwoThatAreReported) {
  ASSERT_EQ(keys_.size(), kSlots);
  const uint32_t position = GetParam();
  const Key key = position < kSlots ? keys_[position] - 1 : kLast;
  LeafChange change;
  rows_.Insert(index_, key, change);
  keys_.insert(keys_.begin() + position, key);
  EXPECT_EQ(ScanKeys(index_, kFirst, kLast), keys_);
  const std::vector<LeafRef> after = AllLeaves(index_);
  EXPECT_EQ(before_[1], (LeafRef{change.leaf, change.before}));
  EXPECT_EQ(after, (std::vector<LeafRef>{before_[0], {change.leaf, change.after}, change.split_off, before_[2]}));
}

TEST_P(BTreeSplitTest, BothPartsInheritMetadataAndControl) {
  LeafChange change;
  rows_.Insert(index_, GetParam() < kSlots ? keys_[GetParam()] - 1 : kLast, change);
  for (BTreeLeaf* leaf : {change.leaf, change.split_off.leaf}) {
    ASSERT_NE(leaf, nullptr);
    EXPECT_EQ(leaf->control, 77u);
    for (size_t i = 0; i < kMetaBytes; ++i) EXPECT_EQ(leaf->meta()[i], std::byte{0x5a});
  }
}

INSTANTIATE_TEST_SUITE_P(Positions, BTreeSplitTest, testing::Range(0u, kSlots + 1));

TEST_F(BTreeIndexTest, AllSplitsHandOnMetadataAndControl) {
  LeafRef first;
  index_.Find(0, first);
  std::memset(first.leaf->meta(), 0xa5, 16);
  first.leaf->control = 5;
  for (uint64_t i = 0; i < 100'000; ++i) Insert(Scattered(i));
  const std::vector<LeafRef> leaves = AllLeaves(index_);
  EXPECT_GT(leaves.size(), 1000u);
  for (const LeafRef& leaf : leaves) {
    ASSERT_EQ(leaf.leaf->control, 5u);
    ASSERT_EQ(leaf.leaf->meta()[0], std::byte{0xa5});
    ASSERT_EQ(leaf.leaf->meta()[15], std::byte{0xa5});
  }
}

// The leaves whose version is no longer the one seen.
std::vector<LeafRef> Changed(const std::vector<LeafRef>& seen) {
  std::vector<LeafRef> changed;
  std::ranges::copy_if(seen, std::back_inserter(changed), [](const LeafRef& leaf) { return !leaf.Unchanged(); });
  return changed;
}

TEST_F(BTreeIndexTest, InsertAndEraseChangeTheVersionOfTheirLeafAlone) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  Load(2000, 100);
  for (int i = 0; i < 3000; ++i) {
    const std::vector<LeafRef> before = AllLeaves(index_);
    const Key key = rng() % 200'000;
    LeafChange change;
    if (Row* const row = index_.Find(key)) {
      index_.Erase(key, row, change);
    } else {
      rows_.Insert(index_, key, change);
    }
    ASSERT_TRUE(change.changed());
    ASSERT_EQ(Changed(before), (std::vector<LeafRef>{{change.leaf, change.before}}));
    ASSERT_TRUE((LeafRef{change.leaf, change.after}.Unchanged()));
    const size_t more = change.split_off.leaf == nullptr ? 0 : 1;
    ASSERT_EQ(AllLeaves(index_).size(), before.size() + more);
    ASSERT_TRUE(more == 0 || change.split_off.Unchanged());
  }
}

TEST_F(BTreeIndexTest, NothingElseChangesAVersion) {
  Load(100'000, 2);  // inner nodes that are full are split on the way down
  const std::vector<LeafRef> before = AllLeaves(index_);
  LeafChange change;
  for (Key key = 0; key < 200'000; key += 2) {
    rows_.Insert(index_, key, change);
    ASSERT_FALSE(change.changed());
    LeafRef seen;
    ASSERT_NE(index_.Find(key, seen), nullptr);
    ASSERT_EQ(seen, (LeafRef{change.leaf, change.before}));
    ASSERT_EQ(index_.Find(key + 1), nullptr);
    ASSERT_FALSE(index_.Erase(key + 1, index_.Find(key), change));
    ASSERT_EQ(Unlink(key), UnlinkResult::kNotEmpty);
  }
  ScanKeys(index_, kLowestKey, kHighestKey);
  // In the last leaf, which has room.
  EXPECT_THROW(index_.FindOrInsert(199'999, []() -> Row* { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_TRUE(Changed(before).empty());
}

// ---- Unlinking -------------------------------------------------------------------------------------------

TEST_F(BTreeIndexTest, EraseTellsWhenALeafIsEmpty) {
  Load(200, 1);
  LeafChange change;
  for (Key key = 0; key < kSlots; ++key) {
    EXPECT_FALSE(change.emptied);
    index_.Erase(key, index_.Find(key), change);
  }
  EXPECT_TRUE(change.emptied);
}

TEST_F(BTreeIndexTest, UnlinkingIsRefused) {
  EXPECT_EQ(Unlink(0), UnlinkResult::kOnlyLeaf);
  Load(200, 1);
  EXPECT_EQ(Unlink(0), UnlinkResult::kNotEmpty);
}

// Each leaf of a tree of three levels in turn is emptied and unlinked: the heir is a neighbour, which keeps its version
// and is from then on the leaf of the range.
TEST_F(BTreeIndexTest, ANeighbourInheritsTheRange) {
  for (size_t victim = 0; victim < 70; ++victim) {
    BTreeIndex index(16);
    Load(index, 70 * kSlots, 1);
    const Key low = victim * kSlots;
    for (Key key = low; key < low + kSlots; ++key) index.Erase(key, index.Find(key));
    const std::vector<LeafRef> before = AllLeaves(index);
    BTreeLeaf* heir = nullptr;
    const EpochSection section(clock_, kWorker);
    const auto absorb = [&](BTreeLeaf& leaving, BTreeLeaf& to) {
      heir = &to;
      EXPECT_EQ(&leaving, before[victim].leaf);
    };
    ASSERT_EQ(index.UnlinkEmpty(low, clock_, kWorker, absorb), UnlinkResult::kUnlinked);
    EXPECT_TRUE((victim > 0 && heir == before[victim - 1].leaf) || (victim < 69 && heir == before[victim + 1].leaf));
    EXPECT_EQ(Changed(before), std::vector<LeafRef>{before[victim]});
    for (Key key = low; key < low + kSlots; ++key) {
      LeafRef seen;
      index.Find(key, seen);
      ASSERT_EQ(seen.leaf, heir);
    }
    EXPECT_EQ(AllLeaves(index).size(), 69u);
  }
}

TEST_F(BTreeIndexTest, UnlinkingInAnyOrderLeavesOneLeafAndAUsableTree) {
  const uint64_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 rng(seed);
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 100'000; ++i) Insert(Scattered(i));
    EraseRange(kLowestKey, kHighestKey);
    for (int i = 0; i < 20'000; ++i) Unlink(rng());
    for (Key key = 0; Unlink(key) == UnlinkResult::kUnlinked;) key = 0;
    EXPECT_EQ(AllLeaves(index_).size(), 1u);
  }
  for (uint64_t i = 0; i < 100'000; ++i) Insert(Scattered(i));
  EXPECT_EQ(ScanKeys(index_, kLowestKey, kHighestKey).size(), 100'000u);
}

// A queue, as NEW-ORDER is: keys come at the end and go at the front.
TEST_F(BTreeIndexTest, AQueueThatMovesOnKeepsItsSize) {
  size_t bytes_early = 0;
  LeafChange change;
  for (Key key = 0; key < 500'000; ++key) {
    Insert(key);
    if (key < 5000) continue;
    index_.Erase(key - 5000, index_.Find(key - 5000), change);
    if (change.emptied) Unlink(key - 5000);
    if (key % 1000 == 0) clock_.Advance();
    if (key == 20'000) bytes_early = index_.memory_bytes();
  }
  EXPECT_LE(index_.memory_bytes(), bytes_early * 3 / 2);
  EXPECT_LE(AllLeaves(index_).size(), 100u);
}

TEST_F(BTreeIndexTest, AnUnlinkedLeafIsNotReusedWhileSomebodyMayHoldIt) {
  Load(10'000, 1);
  const EpochSection reader(clock_, WorkerId(1));
  LeafRef held;
  index_.Find(0, held);
  std::memset(held.leaf->meta(), 0x77, 16);
  EraseRange(0, 10'000);
  for (int i = 0; i < 1000; ++i) {
    Unlink(0);
    clock_.Advance();
  }
  for (uint64_t i = 0; i < 50'000; ++i) Insert(Scattered(i));
  for (const LeafRef& leaf : AllLeaves(index_)) ASSERT_NE(leaf.leaf, held.leaf);
  EXPECT_FALSE(held.Unchanged());
  EXPECT_EQ(held.leaf->meta()[0], std::byte{0x77});
}

}  // namespace
}  // namespace dbx
