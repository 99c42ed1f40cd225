// A tree over pages that several masters change: a B-link tree (Lehman and Yao, TODS 1981) with a fixed root page.
//
// A page that is full is split to the right: its upper rows go to a new page, and it links there. The separator is
// posted to the level above in a second mini-transaction. Until then, and for a reader that has an older version of the
// upper page, keys from the high key on are found through the right link. So a descent holds one page at a time, and
// needs no two pages of one version. If the posting is lost in a crash, the next writer that moves right does it again.
//
//   split                new page P' pinned first, then P: P' formatted with the upper rows, P split left
//   split of the root    two new pages pinned first, then the root: both formatted, the root one level up
//   posting              the page one level up: insert child, unless it is there
//
// A row is deleted by a flag, which keeps its key for row locks, undo and readers of older versions; Purge takes it
// away when none of them needs it. Pages are not merged.
//
// Row locks are the caller's: it pins a leaf, takes row locks under the pin, and writes through the pin. Where it must
// wait for a row lock, or for room, it lets go and pins again: the row may then be on another leaf.
//
// Threads: any, at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/host.h"
#include "multi_master/page/leaf_hints.h"
#include "multi_master/page/mini_transaction.h"
#include "multi_master/page/page_source.h"

namespace dbx::mm {

class SplitListener {
 public:
  virtual ~SplitListener() = default;
  // The rows of leaf `left` from `separator` on are now rows of leaf `right`, as are their row locks; both are pinned
  // exclusively. Separator 0: all of them. A split of the root calls it for each of the two new leaves.
  virtual void OnSplit(PageId left, PageId right, Key separator) = 0;
};

// A leaf that is pinned, with pages right of it if the next key is there.
class PinnedLeaf {
 public:
  PinnedLeaf() = default;

  // False: let go, or its source has no such page.
  explicit operator bool() const { return frame_ != nullptr; }
  PageId id() const { return frame_->id; }
  const PageFrame& frame() const { return *frame_; }
  const SlottedPage& page() const { return frame_->page; }
  LockMode mode() const { return mode_; }
  // The row, deleted or not. Valid until the leaf is written or let go.
  std::optional<RowView> Find(Key key) const;
  void LetGo();

 private:
  friend class PagedTree;

  std::optional<MiniTransaction> mini_;
  PageFrame* frame_ = nullptr;
  LockMode mode_ = LockMode::kShared;
  std::vector<PageFrame*> right_;  // from left to right
};

class PagedTree {
 public:
  struct Options {
    size_t page_bytes_max = kPageBytes;  // a page is split before it holds more; at least 512
  };

  // The root exists. `listener` may be null.
  PagedTree(PageSource& source, TreeId tree, PageId root, SplitListener* listener, Options options);
  PagedTree(PageSource& source, TreeId tree, PageId root, SplitListener* listener)
      : PagedTree(source, tree, root, listener, Options()) {}

  TreeId tree() const { return tree_; }
  PageId root() const { return root_; }
  size_t image_bytes_max() const { return image_bytes_max_; }

  // The leaf whose keys include `key`. Empty: the source has no version of a page that fits. With kExclusive it first
  // posts separators that it finds missing. Throws Error if pages do not form a tree. `hints` may spare the descent,
  // and learn from it.
  PinnedLeaf PinLeaf(Key key, LockMode mode, LeafHints* hints = nullptr);
  // To the right neighbour, which the leaf has; it is pinned before the leaf is let go. Empty: see PinLeaf.
  void MoveRight(PinnedLeaf& leaf);

  // The first key above `key`, deleted rows included, for next-key locks: on this leaf, or on one right of it, which is
  // then pinned in `mode` together with the leaf and those between. Without a key: there is none up to the end of the
  // tree, and the frame is the last leaf. Without a frame: see PinLeaf.
  struct NextKey {
    const PageFrame* frame = nullptr;
    std::optional<Key> key;
  };
  NextKey FindNext(PinnedLeaf& leaf, Key key, LockMode mode);

  enum class PutStatus : uint8_t {
    kDone,    // the leaf was let go
    kNoRoom,  // nothing has changed, and the leaf is pinned still: let go, MakeRoom, and pin again
  };
  // Inserts or updates. The leaf is pinned exclusively. Another transaction's version becomes the one before; the
  // writer holds the row's lock, so that version is committed.
  PutStatus Put(PinnedLeaf& leaf, Key key, const TxnName& writer, std::span<const std::byte> image);
  // Splits the leaf of the key unless this Put has room there. No page is pinned by the caller.
  void MakeRoom(Key key, const TxnName& writer, std::span<const std::byte> image);
  // The row is there. Takes no room.
  void Delete(PinnedLeaf& leaf, Key key, const TxnName& writer);
  // Undo of all that `writer` did to the row, whose current version is its own. A row that it inserted is deleted then.
  void Restore(PinnedLeaf& leaf, Key key, const TxnName& writer);
  // Takes a deleted row away. No row lock refers to it or the gap in front of it, and no reader to an older version.
  void Purge(PinnedLeaf& leaf, Key key);

  uint64_t splits() const { return splits_.load(std::memory_order_relaxed); }
  uint64_t moves_right() const { return moves_right_.load(std::memory_order_relaxed); }
  uint64_t posted_late() const { return posted_late_.load(std::memory_order_relaxed); }

 private:
  // The page that a right link leads to: keys from `lowest` on.
  struct Neighbour {
    uint8_t level;
    Key lowest;
    PageId id;
  };
  using Growth = std::function<int64_t(const SlottedPage&)>;

  static Neighbour RightOf(const SlottedPage& page) { return {page.level(), page.high_key(), page.right()}; }

  // The page of this level whose keys include `key`, pinned by `mini`, which holds new pages at most. Null: see
  // PinLeaf. Adds the pages to `unposted`, unless it is null, of which the level above had no separator.
  PageFrame* Descend(MiniTransaction& mini, Key key, uint8_t level, LockMode mode, std::vector<Neighbour>* unposted,
                     LeafHints* hints = nullptr);
  PinnedLeaf PinLeafOnce(Key key, LockMode mode, std::vector<Neighbour>* unposted, LeafHints* hints);
  // Empty: the leaf of the key is another one, or see PinLeaf.
  PinnedLeaf PinHinted(PageId hint, Key key, LockMode mode);
  // Null: see PinLeaf.
  PageFrame* PinRight(MiniTransaction& mini, const Neighbour& right, LockMode mode) const;
  // Inserts the separator into the level above. False: it was there.
  bool Post(const Neighbour& right);
  // Splits the page of this level and key, unless it has room to grow.
  void Split(uint8_t level, Key key, const Growth& growth);
  void SplitPage(MiniTransaction& mini, PageFrame& left, PageFrame& right, Key separator);
  void SplitRootPage(MiniTransaction& mini, PageFrame& root, PageFrame& left, PageFrame& right, Key separator);
  bool HasRoom(const SlottedPage& page, int64_t growth) const;
  void Write(PinnedLeaf& leaf, const Change& what);

  PageSource& source_;
  const TreeId tree_;
  const PageId root_;
  SplitListener* const listener_;
  const size_t page_bytes_max_;
  const size_t image_bytes_max_;
  // When last seen: whether the root is pinned as the page that is looked for. A guess; relaxed.
  Atomic<uint8_t> root_level_{kLevelsMax};
  // Counters, relaxed.
  Atomic<uint64_t> splits_{0};
  Atomic<uint64_t> moves_right_{0};
  Atomic<uint64_t> posted_late_{0};
};

}  // namespace dbx::mm
