#include "multi_master/page/paged_tree.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {
namespace {

// A new page for a split. Goes back to the source if no page of it comes to be.
class NewPage {
 public:
  explicit NewPage(PageSource& source) : source_(source) {}
  NewPage(const NewPage&) = delete;
  NewPage& operator=(const NewPage&) = delete;
  ~NewPage() {
    if (id_ != PageId() && !used_) source_.GiveBack(id_);
  }
  PageId id() {
    if (id_ == PageId()) id_ = source_.NewPage();
    return id_;
  }
  void MarkUsed() { used_ = true; }

 private:
  PageSource& source_;
  PageId id_;
  bool used_ = false;
};

[[noreturn]] void ThrowNoTree(PageId page, const char* why) {
  throw Error(ExitStatus::kCorrupt, "page " + std::to_string(page.value()) + ": " + why);
}

// Where to split a page that is too full for `key`. Keys that ascend leave full pages behind: the right one starts with
// the key, or, of an inner page, which is never empty, with the last child.
Key SeparatorFor(const SlottedPage& page, Key key) {
  CHECK(page.slots() >= 2);
  if (!page.has_right() && key > page.KeyAt(page.slots() - 1)) {
    return page.is_leaf() ? key : page.KeyAt(page.slots() - 1);
  }
  const size_t half = (page.bytes_used() - sizeof(PageHeader)) / 2;
  size_t left_bytes = page.CellAt(0).size() + kSlotBytes;
  uint32_t slot = 1;
  for (; slot + 1 < page.slots(); ++slot) {
    left_bytes += page.CellAt(slot).size() + kSlotBytes;
    if (left_bytes > half) break;
  }
  return page.KeyAt(slot);
}

size_t ImageBytesMax(size_t page_bytes_max) {
  CHECK(page_bytes_max >= 512 && page_bytes_max <= kPageBytes);
  return ((page_bytes_max - sizeof(PageHeader)) / 4 - kSlotBytes - kRowCellBytes) / 2;
}

}  // namespace

std::optional<RowView> PinnedLeaf::Find(Key key) const {
  const std::optional<uint32_t> slot = page().Find(key);
  if (!slot) return std::nullopt;
  return page().RowAt(*slot);
}

void PinnedLeaf::LetGo() {
  mini_.reset();
  frame_ = nullptr;
  right_.clear();
}

PagedTree::PagedTree(PageSource& source, TreeId tree, PageId root, SplitListener* listener, Options options)
    : source_(source),
      tree_(tree),
      root_(root),
      listener_(listener),
      page_bytes_max_(options.page_bytes_max),
      image_bytes_max_(ImageBytesMax(options.page_bytes_max)) {}

// --- Descent ---

PageFrame* PagedTree::PinRight(MiniTransaction& mini, const Neighbour& right, LockMode mode) const {
  PageFrame* frame = mini.Pin(right.id, mode);
  if (frame == nullptr) return nullptr;
  const SlottedPage& page = frame->page;
  if (page.id() != right.id || page.tree() != tree_) ThrowNoTree(right.id, "not a page of this tree");
  if (page.level() != right.level) ThrowNoTree(right.id, "a neighbour of another level");
  if (page.has_right() && page.high_key() <= right.lowest) ThrowNoTree(right.id, "high keys do not ascend");
  return frame;
}

PageFrame* PagedTree::Descend(MiniTransaction& mini, Key key, uint8_t level, LockMode mode,
                              std::vector<Neighbour>* unposted, LeafHints* hints) {
  LockMode pinned = root_level_.load(std::memory_order_relaxed) == level ? mode : LockMode::kShared;
  PageFrame* frame = mini.Pin(root_, pinned);
  if (frame == nullptr) return nullptr;
  root_level_.store(frame->page.level(), std::memory_order_relaxed);
  if (frame->page.level() < level || frame->page.has_right()) ThrowNoTree(root_, "not the root of a tree");
  while (frame != nullptr) {
    const SlottedPage& page = frame->page;
    if (page.id() != frame->id || page.tree() != tree_) ThrowNoTree(frame->id, "not a page of this tree");
    if (!page.IsBelowHighKey(key)) {
      moves_right_.fetch_add(1, std::memory_order_relaxed);
      const Neighbour right = RightOf(page);
      if (unposted != nullptr) unposted->push_back(right);
      mini.Unpin(*frame);
      frame = PinRight(mini, right, pinned);
      continue;
    }
    const bool found = page.level() == level;
    if (found && pinned == mode) return frame;
    if (!found && page.KeyAt(0) > key) ThrowNoTree(frame->id, "its lowest key is above a key that led to it");
    if (hints != nullptr && page.level() == 1) hints->Learn(page);
    const PageId next = found ? frame->id : page.ChildAt(page.ChildSlotOf(key));
    const auto next_level = static_cast<uint8_t>(found ? level : page.level() - 1);
    pinned = next_level == level ? mode : LockMode::kShared;
    mini.Unpin(*frame);
    frame = mini.Pin(next, pinned);
    // A root that is pinned again may have grown in between.
    if (!found && frame != nullptr && frame->page.level() != next_level) ThrowNoTree(next, "a child of another level");
  }
  return nullptr;
}

PinnedLeaf PagedTree::PinLeafOnce(Key key, LockMode mode, std::vector<Neighbour>* unposted, LeafHints* hints) {
  PinnedLeaf leaf;
  leaf.mini_.emplace(source_);
  leaf.mode_ = mode;
  leaf.frame_ = Descend(*leaf.mini_, key, 0, mode, unposted, hints);
  if (leaf.frame_ == nullptr) leaf.LetGo();
  return leaf;
}

PinnedLeaf PagedTree::PinHinted(PageId hint, Key key, LockMode mode) {
  PinnedLeaf leaf;
  leaf.mini_.emplace(source_);
  leaf.mode_ = mode;
  leaf.frame_ = leaf.mini_->Pin(hint, mode);
  if (leaf.frame_ == nullptr) return {};
  const SlottedPage& page = leaf.page();
  if (page.id() != hint || page.tree() != tree_ || !page.is_leaf()) ThrowNoTree(hint, "not a leaf of this tree");
  page.PrefetchKeys();
  if (!page.IsBelowHighKey(key)) leaf.LetGo();
  return leaf;
}

PinnedLeaf PagedTree::PinLeaf(Key key, LockMode mode, LeafHints* hints) {
  if (const PageId hint = hints != nullptr ? hints->Find(key) : PageId(); hint != PageId()) {
    PinnedLeaf leaf = PinHinted(hint, key, mode);
    if (leaf) return leaf;
  }
  if (mode == LockMode::kShared) return PinLeafOnce(key, mode, nullptr, hints);
  std::vector<Neighbour> unposted;
  PinnedLeaf leaf = PinLeafOnce(key, mode, &unposted, hints);
  if (unposted.empty()) return leaf;
  leaf.LetGo();
  for (const Neighbour& right : unposted) {
    if (Post(right)) posted_late_.fetch_add(1, std::memory_order_relaxed);
  }
  return PinLeafOnce(key, mode, nullptr, hints);
}

void PagedTree::MoveRight(PinnedLeaf& leaf) {
  CHECK(leaf.page().has_right());
  for (PageFrame* right : leaf.right_) leaf.mini_->Unpin(*right);
  leaf.right_.clear();
  PageFrame* left = leaf.frame_;
  leaf.frame_ = PinRight(*leaf.mini_, RightOf(left->page), leaf.mode_);
  if (leaf.frame_ == nullptr) return leaf.LetGo();
  leaf.mini_->Unpin(*left);
}

PagedTree::NextKey PagedTree::FindNext(PinnedLeaf& leaf, Key key, LockMode mode) {
  const PageFrame* frame = leaf.frame_;
  uint32_t slot = frame->page.LowerBound(key);
  if (slot < frame->page.slots() && frame->page.KeyAt(slot) == key) ++slot;
  for (size_t i = 0; slot == frame->page.slots() && frame->page.has_right(); ++i, slot = 0) {
    if (i == leaf.right_.size()) {
      PageFrame* right = PinRight(*leaf.mini_, RightOf(frame->page), mode);
      if (right == nullptr) return {};
      leaf.right_.push_back(right);
    }
    frame = leaf.right_[i];
  }
  if (slot == frame->page.slots()) return {frame, std::nullopt};
  return {frame, frame->page.KeyAt(slot)};
}

// --- Rows ---

bool PagedTree::HasRoom(const SlottedPage& page, int64_t growth) const {
  return static_cast<int64_t>(page.bytes_used()) + growth <= static_cast<int64_t>(page_bytes_max_);
}

void PagedTree::Write(PinnedLeaf& leaf, const Change& what) {
  leaf.mini_->SubmitOne(*leaf.frame_, what);
  leaf.LetGo();
}

PagedTree::PutStatus PagedTree::Put(PinnedLeaf& leaf, Key key, const TxnName& writer,
                                    std::span<const std::byte> image) {
  CHECK(image.size() <= image_bytes_max_ && leaf.page().IsBelowHighKey(key));
  if (!HasRoom(leaf.page(), GrowthOf(leaf.page(), key, writer, image.size()))) return PutStatus::kNoRoom;
  PieceBuffer pieces;
  Write(leaf, MakePut(leaf.page(), key, writer, image, pieces));
  return PutStatus::kDone;
}

void PagedTree::MakeRoom(Key key, const TxnName& writer, std::span<const std::byte> image) {
  CHECK(image.size() <= image_bytes_max_);
  Split(0, key, [&](const SlottedPage& leaf) { return GrowthOf(leaf, key, writer, image.size()); });
}

void PagedTree::Delete(PinnedLeaf& leaf, Key key, const TxnName& writer) {
  CHECK(leaf.page().Find(key).has_value());
  Write(leaf, MakeDelete(key, writer));
}

void PagedTree::Restore(PinnedLeaf& leaf, Key key, const TxnName& writer) { Write(leaf, RestoreRow{key, writer}); }

void PagedTree::Purge(PinnedLeaf& leaf, Key key) { Write(leaf, RemoveRow{key}); }

// --- Splits ---

void PagedTree::Split(uint8_t level, Key key, const Growth& growth) {
  NewPage first(source_), second(source_);
  for (bool is_root = false;;) {
    MiniTransaction mini(source_);
    PageFrame& right = mini.PinNew(first.id());
    PageFrame* left = is_root ? &mini.PinNew(second.id()) : nullptr;
    PageFrame* full = Descend(mini, key, level, LockMode::kExclusive, nullptr);
    CHECK(full != nullptr);
    if (HasRoom(full->page, growth(full->page))) return;
    if (full->id == root_ && left == nullptr) {
      is_root = true;
      continue;
    }
    const Key separator = SeparatorFor(full->page, key);
    first.MarkUsed();
    if (full->id == root_) {
      second.MarkUsed();
      return SplitRootPage(mini, *full, *left, right, separator);
    }
    SplitPage(mini, *full, right, separator);
    const PageId right_id = right.id;  // of the frame while it is pinned: an eviction gives it to another page
    mini.LetGo();
    Post({level, separator, right_id});
    return;
  }
}

void PagedTree::SplitPage(MiniTransaction& mini, PageFrame& left, PageFrame& right, Key separator) {
  const SlottedPage& page = left.page;
  const uint32_t slot = page.LowerBound(separator);
  const std::vector<std::byte> upper = CopyCells(page, slot, page.slots());
  mini.Add(right, FormatPage{tree_, page.level(), page.right(), page.high_key(),
                             static_cast<uint16_t>(page.slots() - slot), upper});
  mini.Add(left, SplitLeft{separator, right.id});
  mini.Submit();
  splits_.fetch_add(1, std::memory_order_relaxed);
  if (listener_ != nullptr && page.is_leaf()) listener_->OnSplit(left.id, right.id, separator);
}

void PagedTree::SplitRootPage(MiniTransaction& mini, PageFrame& root, PageFrame& left, PageFrame& right,
                              Key separator) {
  const SlottedPage& page = root.page;
  const bool of_leaves = page.is_leaf();
  const uint32_t slot = page.LowerBound(separator);
  const std::vector<std::byte> lower = CopyCells(page, 0, slot);
  const std::vector<std::byte> upper = CopyCells(page, slot, page.slots());
  mini.Add(left, FormatPage{tree_, page.level(), right.id, separator, static_cast<uint16_t>(slot), lower});
  mini.Add(right, FormatPage{tree_, page.level(), PageId(), 0, static_cast<uint16_t>(page.slots() - slot), upper});
  mini.Add(root, SplitRoot{left.id, right.id, separator});
  mini.Submit();
  splits_.fetch_add(1, std::memory_order_relaxed);
  root_level_.store(page.level(), std::memory_order_relaxed);
  if (listener_ == nullptr || !of_leaves) return;
  listener_->OnSplit(root.id, right.id, separator);
  listener_->OnSplit(root.id, left.id, 0);
}

bool PagedTree::Post(const Neighbour& right) {
  const auto level = static_cast<uint8_t>(right.level + 1);
  for (;;) {
    {
      // Mostly another thread has posted it meanwhile; no other reader of the page is disturbed then.
      MiniTransaction look(source_);
      const PageFrame* above = Descend(look, right.lowest, level, LockMode::kShared, nullptr);
      CHECK(above != nullptr);
      if (above->page.Find(right.lowest)) return false;
    }
    {
      MiniTransaction mini(source_);
      PageFrame* above = Descend(mini, right.lowest, level, LockMode::kExclusive, nullptr);
      CHECK(above != nullptr);
      if (above->page.Find(right.lowest)) return false;
      if (HasRoom(above->page, kInnerCellBytes + kSlotBytes)) {
        mini.Add(*above, InsertChild{right.lowest, right.id});
        mini.Submit();
        return true;
      }
    }
    Split(level, right.lowest, [](const SlottedPage&) { return int64_t{kInnerCellBytes + kSlotBytes}; });
  }
}

}  // namespace dbx::mm
