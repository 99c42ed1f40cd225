// A tree over pages in memory, small enough for many splits, and its comparison with the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "multi_master/page/paged_tree.h"
#include "tests/multi_master/page/memory_source.h"
#include "tests/multi_master/reference/tree_checker.h"

namespace dbx::mm {

inline constexpr TreeId kTestTree{4};
inline constexpr PageId kTestRoot{1};

inline TxnName Txn(uint64_t sequence) { return {MasterId(1), ClusterEpoch(1), sequence}; }
inline std::span<const std::byte> AsBytes(const std::string& text) { return std::as_bytes(std::span(text)); }
inline std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TreeUnderTest {
 public:
  explicit TreeUnderTest(size_t frames_max = 1024, SplitListener* listener = nullptr, size_t page_bytes_max = 512)
      : source_(frames_max), tree_(source_, kTestTree, kTestRoot, listener, {page_bytes_max}) {
    source_.StoreEmptyRoot(kTestTree, kTestRoot);
  }
  PagedTree& tree() { return tree_; }
  MemorySource& source() { return source_; }

  void Put(Key key, uint64_t txn, const std::string& image, LeafHints* hints = nullptr) {
    for (;;) {
      PinnedLeaf leaf = tree_.PinLeaf(key, LockMode::kExclusive, hints);
      if (tree_.Put(leaf, key, Txn(txn), AsBytes(image)) == PagedTree::PutStatus::kDone) return;
      leaf.LetGo();
      tree_.MakeRoom(key, Txn(txn), AsBytes(image));
    }
  }
  void Delete(Key key, uint64_t txn) {
    PinnedLeaf leaf = tree_.PinLeaf(key, LockMode::kExclusive);
    tree_.Delete(leaf, key, Txn(txn));
  }
  void Restore(Key key, uint64_t txn) {
    PinnedLeaf leaf = tree_.PinLeaf(key, LockMode::kExclusive);
    tree_.Restore(leaf, key, Txn(txn));
  }
  void Purge(Key key) {
    PinnedLeaf leaf = tree_.PinLeaf(key, LockMode::kExclusive);
    tree_.Purge(leaf, key);
  }
  // Nothing: no such row, or a deleted one.
  std::optional<std::string> Get(Key key, LeafHints* hints = nullptr) {
    const PinnedLeaf leaf = tree_.PinLeaf(key, LockMode::kShared, hints);
    const std::optional<RowView> row = leaf.Find(key);
    if (!row || !row->current.present) return std::nullopt;
    return TextOf(row->current.image);
  }
  // The rows that are not deleted, by a scan of the leaves.
  std::map<Key, std::string> Scan(Key low = 0) {
    std::map<Key, std::string> rows;
    for (PinnedLeaf leaf = tree_.PinLeaf(low, LockMode::kShared);; tree_.MoveRight(leaf)) {
      for (uint32_t slot = leaf.page().LowerBound(low); slot < leaf.page().slots(); ++slot) {
        const RowView row = leaf.page().RowAt(slot);
        EXPECT_TRUE(rows.empty() || rows.rbegin()->first < row.key) << "a scan goes back";
        if (row.current.present) rows.emplace(row.key, TextOf(row.current.image));
      }
      if (!leaf.page().has_right()) return rows;
    }
  }

  // The reference's replay of the record bodies is what is stored, and what is buffered; and it is a tree.
  reference::CheckedTree CheckAll() {
    reference::ModelPages model;
    model[kTestRoot.value()].tree = kTestTree.value();
    for (const std::vector<std::byte>& body : source_.bodies()) reference::Replay(body, model);
    for (const auto& [id, page] : source_.StoredPages()) {
      EXPECT_EQ(reference::ParsePage(page.bytes()), model.at(id.value())) << "stored page " << id.value();
      PageFrame* frame = source_.Pin(id, LockMode::kShared, true);
      EXPECT_EQ(frame->page.WhyInvalid(id), nullptr);
      EXPECT_EQ(reference::ParsePage(frame->page.bytes()), model.at(id.value())) << "buffered page " << id.value();
      source_.Unpin(*frame, LockMode::kShared);
    }
    reference::CheckedTree checked = reference::CheckTree(model, kTestTree.value(), kTestRoot.value());
    EXPECT_EQ(checked.problems, std::vector<std::string>());
    EXPECT_EQ(checked.pages, model.size()) << "pages that no link leads to";
    return checked;
  }

 private:
  MemorySource source_;
  PagedTree tree_;
};

inline std::map<Key, std::string> PresentRows(const reference::CheckedTree& checked) {
  std::map<Key, std::string> rows;
  for (const auto& [key, row] : checked.rows) {
    if (row.current.present) rows.emplace(key, row.current.image);
  }
  return rows;
}

}  // namespace dbx::mm
