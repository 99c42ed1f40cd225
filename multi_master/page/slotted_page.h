// A page of a tree: 16 KiB with a header, a directory of slots that ascends by key, and cells from the end backward.
//
//   | header 48 | slot 0 | slot 1 | ... free ... | cells, in any order, with holes between them |
//
// A slot is the offset of its cell, 2 bytes. A leaf's cell is a row: key, the current version, and the version before
// its writer, which undo and readers of older versions need. An inner page's cell is a separator and a child: the child
// of slot i leads to the keys from separator i up to separator i + 1, or up to the page's high key. Slot 0 of an inner
// page holds the page's own lowest key.
//
// Keys of a page are below its high key; keys from it on are found through the right link (Lehman and Yao, "Efficient
// locking for concurrent operations on B-trees", TODS 1981). The rightmost page of a level has neither.
//
// A page from a peer or a disk may be anything. WhyInvalid decides without reading beyond the page, whatever it holds;
// all other functions require a page that passed it, and keep it so.
//
// Threads: none of their own; the latch of the page's frame guards it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "multi_master/names.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// A table, or an index that is one of its own.
using TreeId = StrongInt<struct TreeIdTag, uint32_t>;

inline constexpr uint8_t kLevelsMax = 16;
// Times of pages are below it: a record packs one with its master.
inline constexpr uint64_t kPageTimeEnd = uint64_t{1} << 60;

// A row as one transaction left it. TxnName() as the writer: as it was loaded, or before the first transaction that
// wrote the key.
struct RowVersion {
  TxnName writer;
  bool present = false;  // false: deleted, or not yet inserted
  std::span<const std::byte> image;
};

// A row of a leaf; the images point into the page.
struct RowView {
  Key key = 0;
  RowVersion current;
  // Kept from a transaction's first write of the row until its undo, or until another transaction writes.
  bool has_before = false;
  RowVersion before;
};

struct PageHeader {
  uint64_t id;
  uint64_t right;     // 0: none
  uint64_t high_key;  // 0 without a right link
  uint64_t lsn_time;
  uint32_t tree;
  uint16_t slots;
  uint16_t cells_begin;  // offset of the first byte that a cell may occupy
  uint16_t cell_bytes;   // of all cells; the rest behind cells_begin are holes
  uint8_t level;         // 0: leaf
  uint8_t lsn_master;
  uint32_t zero;
};
static_assert(sizeof(PageHeader) == 48 && std::is_trivially_copyable_v<PageHeader>);

inline constexpr size_t kSlotBytes = 2;
inline constexpr size_t kInnerCellBytes = 16;
inline constexpr size_t kRowCellBytes = 40;  // a row without its images
// Four of the largest rows fit, so that a page which has no room for a row can be split.
inline constexpr size_t kCellBytesMax = (kPageBytes - sizeof(PageHeader)) / 4 - kSlotBytes;
inline constexpr size_t kImageBytesMax = (kCellBytesMax - kRowCellBytes) / 2;

class SlottedPage {
 public:
  // All zeros: a page that was never formatted, at PageLsn().
  SlottedPage() : header_{}, rest_{} {}

  // Null: a valid page with this id. Otherwise the reason.
  const char* WhyInvalid(PageId expected) const;

  // Drops all that it held, but keeps its LSN. `high_key` is 0 if `right` is.
  void Format(PageId id, TreeId tree, uint8_t level, PageId right, Key high_key);

  // For a builder that learns the id last.
  void Renumber(PageId id) { header_.id = id.value(); }

  PageId id() const { return PageId(header_.id); }
  TreeId tree() const { return TreeId(header_.tree); }
  uint8_t level() const { return header_.level; }
  bool is_leaf() const { return header_.level == 0; }
  PageLsn lsn() const { return {MasterId(header_.lsn_master), VsTime(header_.lsn_time)}; }
  void set_lsn(const PageLsn& lsn);
  bool has_right() const { return header_.right != 0; }
  PageId right() const { return PageId(header_.right); }
  Key high_key() const { return header_.high_key; }
  // False: the key, if it is in the tree, is right of this page.
  bool IsBelowHighKey(Key key) const { return !has_right() || key < header_.high_key; }

  uint32_t slots() const { return header_.slots; }
  Key KeyAt(uint32_t slot) const;
  // The first slot of this key or a larger one; slots() if there is none.
  uint32_t LowerBound(Key key) const;
  std::optional<uint32_t> Find(Key key) const;
  // Before a search in a page of few rows, which are large: all keys come from memory at a time, not one after the
  // other.
  void PrefetchKeys() const;
  RowView RowAt(uint32_t slot) const;   // of a leaf
  PageId ChildAt(uint32_t slot) const;  // of an inner page
  uint32_t ChildSlotOf(Key key) const;  // of an inner page whose lowest key is not above `key`
  std::span<const std::byte> CellAt(uint32_t slot) const;

  // Header, slots and cells, without holes.
  size_t bytes_used() const { return sizeof(PageHeader) + header_.slots * kSlotBytes + header_.cell_bytes; }
  size_t bytes_free() const { return kPageBytes - bytes_used(); }

  // The cell becomes slot `slot`. False, and nothing changed: there is no room.
  bool Insert(uint32_t slot, std::span<const std::byte> cell);
  bool Replace(uint32_t slot, std::span<const std::byte> cell);
  void Remove(uint32_t slot);
  // Makes `writer` the writer of the row's current version, with another writer's kept as the one before, and returns
  // the image, whose bytes may be changed. Nothing, and nothing changed: the cell must grow or shrink for that.
  std::optional<std::span<std::byte>> BeginVersion(uint32_t slot, const TxnName& writer);
  // Drops the slots from `slot` on, and links the page to `right`.
  void SplitAt(uint32_t slot, PageId right, Key high_key);

  std::span<std::byte, kPageBytes> bytes() {
    return std::span<std::byte, kPageBytes>(reinterpret_cast<std::byte*>(this), kPageBytes);
  }
  std::span<const std::byte, kPageBytes> bytes() const {
    return std::span<const std::byte, kPageBytes>(reinterpret_cast<const std::byte*>(this), kPageBytes);
  }

 private:
  uint16_t SlotAt(uint32_t slot) const;
  void SetSlot(uint32_t slot, size_t offset);
  const char* WhyHeaderInvalid(PageId expected) const;
  const char* WhyCellsInvalid() const;
  // Room for so many bytes in front of the cells and behind a directory of so many slots, by compaction if need be.
  bool MakeRoom(size_t cell_bytes, uint32_t slots);
  // Moves the cells together at the end of the page.
  void Compact();

  PageHeader header_;
  std::array<std::byte, kPageBytes - sizeof(PageHeader)> rest_;
};
static_assert(sizeof(SlottedPage) == kPageBytes && std::is_trivially_copyable_v<SlottedPage>);

// The length of the cell at the start of `bytes`, of a page at this level; 0 if no valid cell is there.
size_t CellBytes(uint8_t level, std::span<const std::byte> bytes);
Key CellKey(std::span<const std::byte> cell);
RowView DecodeRow(std::span<const std::byte> cell);
void EncodeRow(const RowView& row, std::vector<std::byte>& to);
// The length of the cell. `to` has room for it; the current image may lie where it goes, behind kRowCellBytes.
size_t EncodeRow(const RowView& row, std::span<std::byte> to);
void EncodeChild(Key separator, PageId child, std::vector<std::byte>& to);
inline size_t RowBytes(size_t image_bytes, size_t before_bytes) { return kRowCellBytes + image_bytes + before_bytes; }

}  // namespace dbx::mm
