// Changes of pages, as PAGES records carry them: physical by page, logical within it.
//
// One PAGES record is one mini-transaction: its changes are applied all or none. Masters, Page Stores, recovery and
// masters that read another one's log apply them by the same function, Apply, to the same version of the page, so the
// images are the same everywhere. Before-images are derived (multi_master.md, 14.15): Apply keeps the version that a
// transaction's first write of a row replaces.
//
// Body of a PAGES record, little-endian:
//
//   body    := master u8, changes u16 (> 0), change ...
//   change  := kind u8, page u64, time u64, previous u64, fields by kind
//              previous: time << 4 | master of the page's version before; 0 as it was loaded or never formatted
//   1 format       tree u32, level u8, right u64, high key u64, cells u16, bytes u16, cells as in a page, by key
//   2 put row      key u64, writer, present u8, prefix u16, suffix u16, bytes u16, bytes
//                  the new image: `prefix` bytes of the row's current one, `bytes`, its last `suffix` bytes
//   3 restore row  key u64, writer                       undo: the version before this writer
//   4 remove row   key u64                               purge of a deleted row
//   5 split left   separator u64, right u64              drops keys >= separator, links to `right`
//   6 split root   left u64, right u64, separator u64    one level up, over two children
//   7 insert child separator u64, child u64
//   8 put pieces   key u64, writer, bytes u16, piece ...   an image of the same length as the current one
//                  piece := skip u16, count u16 (> 0), bytes        `skip` bytes behind the piece before are kept
//   writer  := master u8, epoch u32, sequence u64
//
// At most 3 + 53 bytes beside what changed, from its first byte to its last (page_change_test.cpp).
//
// Threads: none of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "multi_master/page/slotted_page.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

// The page becomes this, whatever it was.
struct FormatPage {
  TreeId tree;
  uint8_t level = 0;
  PageId right;
  Key high_key = 0;
  uint16_t cells_count = 0;
  std::span<const std::byte> cells;
};
struct PutRow {
  Key key = 0;
  TxnName writer;
  bool present = true;  // false: deletes the row
  uint16_t prefix_bytes = 0;
  uint16_t suffix_bytes = 0;
  std::span<const std::byte> middle;
  // Kind 8: `middle` holds pieces, as in the record. The row is there and keeps its length; both numbers are 0.
  bool in_pieces = false;
};
// Legal while the row's current writer is this one and the version before is kept.
struct RestoreRow {
  Key key = 0;
  TxnName writer;
};
// Legal for a deleted row. Its row locks, the gap in front of it, and readers of older versions are the caller's
// matter.
struct RemoveRow {
  Key key = 0;
};
struct SplitLeft {
  Key separator = 0;
  PageId right;
};
struct SplitRoot {
  PageId left;
  PageId right;
  Key separator = 0;
};
struct InsertChild {
  Key separator = 0;
  PageId child;
};
using Change = std::variant<FormatPage, PutRow, RestoreRow, RemoveRow, SplitLeft, SplitRoot, InsertChild>;

// Spans point to bytes of the caller, or into the record that it was decoded from.
struct PageChange {
  PageId page;
  PageLsn lsn;       // the page's version with the change
  PageLsn previous;  // and without it
  Change what;
};

// The page that the change leaves would be valid: levels, links and cells.
bool IsWellFormed(PageId page, const FormatPage& format);

enum class ApplyStatus : uint8_t {
  kApplied,
  kWrongPage,
  kWrongVersion,  // the page is not at `previous`
  kNoSuchRow,
  kWrongWriter,  // the row's version is another transaction's, or there is none before it
  kRowThere,     // a row that is not deleted, or a child of the same separator
  kIllegal,      // not for this level or this key, or a page that would not be valid
  kNoRoom,
};

// The page is unchanged unless it returns kApplied.
ApplyStatus Apply(SlottedPage& page, const PageChange& change);

// What a PutRow of this image carries: the bytes between the first and the last that differ.
PutRow MakePut(const SlottedPage& leaf, Key key, const TxnName& writer, std::span<const std::byte> image);
PutRow MakeDelete(Key key, const TxnName& writer);
// The same in pieces, if these take fewer bytes: of a row of many columns a transaction writes some. `pieces` holds
// them.
using PieceBuffer = std::array<std::byte, kImageBytesMax>;
PutRow MakePut(const SlottedPage& leaf, Key key, const TxnName& writer, std::span<const std::byte> image,
               PieceBuffer& pieces);
// Behind the last byte that the pieces write. Nothing: they are not whole.
std::optional<size_t> EndOfPieces(std::span<const std::byte> pieces);
// How many bytes the pieces write, which are whole.
size_t BytesOfPieces(std::span<const std::byte> pieces);
// By how much the leaf's bytes_used grows. Negative if the row shrinks.
int64_t GrowthOf(const SlottedPage& leaf, const PutRow& put);
int64_t GrowthOf(const SlottedPage& leaf, Key key, const TxnName& writer, size_t image_bytes);
// The cells of slots [begin, end), one behind the other.
std::vector<std::byte> CopyCells(const SlottedPage& page, uint32_t begin, uint32_t end);

// Gives the changes of one mini-transaction consecutive times of the master's clock (VS3), and each change of a page
// behind the first the version that the one before it leaves. `previous` of a page's first change is the caller's.
void StampChanges(VsClock& clock, std::span<PageChange> changes);

inline constexpr size_t kPagesHeadBytes = 3;
inline constexpr size_t kChangeBytesMax = 53;  // of one change, without the bytes that change
// A split of the root, the largest mini-transaction, formats two pages with the cells of one.
inline constexpr size_t kPagesBodyBytesMax = 2 * kPageBytes;

// All changes are one master's.
std::vector<std::byte> EncodePages(std::span<const PageChange> changes);
// The same to where it stays: `to` has PagesBytes, which does not depend on times.
void EncodePages(std::span<const PageChange> changes, std::span<std::byte> to);
size_t PagesBytes(std::span<const PageChange> changes);
// Nothing if `body` is not exactly the body of a PAGES record, such as EncodePages makes it.
std::optional<std::vector<PageChange>> DecodePages(std::span<const std::byte> body);
// The same behind what `to` has. False: see there.
bool DecodePages(std::span<const std::byte> body, std::vector<PageChange>& to);

}  // namespace dbx::mm
