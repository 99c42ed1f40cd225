#include "multi_master/page/page_change.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace dbx::mm {
namespace {

using CellBuffer = std::array<std::byte, kCellBytesMax>;

constexpr size_t kPieceHeadBytes = 4;

void CopyTo(std::byte* to, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

// The cell of the row with the change, on top of `row`, the page's row of this key or an absent one. Empty if the
// change does not fit the row.
std::span<const std::byte> CellAfter(const RowView& row, const PutRow& put, CellBuffer& buffer) {
  const std::span<const std::byte> old = row.current.image;
  const size_t kept = size_t{put.prefix_bytes} + put.suffix_bytes;
  const size_t image_bytes = kept + put.middle.size();
  if (kept > old.size() || image_bytes > kImageBytesMax || (!put.present && image_bytes > 0)) return {};
  std::byte* const image = buffer.data() + kRowCellBytes;
  CopyTo(image, old.first(put.prefix_bytes));
  CopyTo(image + put.prefix_bytes, put.middle);
  CopyTo(image + put.prefix_bytes + put.middle.size(), old.last(put.suffix_bytes));
  RowView after = row;
  after.key = put.key;
  if (!row.has_before || row.current.writer != put.writer) {
    after.has_before = true;
    after.before = row.current;
  }
  after.current = {put.writer, put.present, {image, image_bytes}};
  return std::span(buffer).first(EncodeRow(after, buffer));
}

// How many bytes from the first one on are equal, of `count`, which both have.
size_t EqualBytes(std::span<const std::byte> a, std::span<const std::byte> b, size_t count) {
  size_t equal = 0;
  for (; equal + sizeof(uint64_t) <= count; equal += sizeof(uint64_t)) {
    uint64_t of_a, of_b;
    std::memcpy(&of_a, a.data() + equal, sizeof of_a);
    std::memcpy(&of_b, b.data() + equal, sizeof of_b);
    if (of_a != of_b) return equal + static_cast<size_t>(std::countr_zero(of_a ^ of_b)) / 8;
  }
  while (equal < count && a[equal] == b[equal]) ++equal;
  return equal;
}

RowView RowOf(const SlottedPage& leaf, Key key) {
  const std::optional<uint32_t> slot = leaf.Find(key);
  return slot ? leaf.RowAt(*slot) : RowView{key, {}, false, {}};
}

bool IsKeyOfLeaf(const SlottedPage& page, Key key) {
  return page.id() != PageId() && page.is_leaf() && page.IsBelowHighKey(key);
}

ApplyStatus ApplyTo(SlottedPage& page, PageId id, const FormatPage& format) {
  if (!IsWellFormed(id, format)) return ApplyStatus::kIllegal;
  page.Format(id, format.tree, format.level, format.right, format.high_key);
  std::span<const std::byte> rest = format.cells;
  for (uint32_t i = 0; i < format.cells_count; ++i) {
    const size_t length = CellBytes(format.level, rest);
    CHECK(page.Insert(i, rest.first(length)));
    rest = rest.subspan(length);
  }
  return ApplyStatus::kApplied;
}

// Calls see(offset, bytes) for each piece. False: they are not whole.
bool ForEachPiece(std::span<const std::byte> pieces, auto&& see) {
  for (size_t offset = 0; !pieces.empty();) {
    if (pieces.size() < kPieceHeadBytes) return false;
    uint16_t head[2];
    std::memcpy(head, pieces.data(), sizeof head);
    pieces = pieces.subspan(kPieceHeadBytes);
    if (head[1] == 0 || head[1] > pieces.size()) return false;
    offset += head[0];
    see(offset, pieces.first(head[1]));
    offset += head[1];
    pieces = pieces.subspan(head[1]);
  }
  return true;
}

ApplyStatus ApplyPieces(SlottedPage& page, const PutRow& put) {
  const std::optional<uint32_t> slot = page.Find(put.key);
  if (!slot) return ApplyStatus::kNoSuchRow;
  const RowView row = page.RowAt(*slot);
  const std::optional<size_t> end = EndOfPieces(put.middle);
  if (!row.current.present || !end || *end > row.current.image.size()) return ApplyStatus::kIllegal;
  std::optional<std::span<std::byte>> image = page.BeginVersion(*slot, put.writer);
  if (!image) {
    // The row gets room for the version before.
    CellBuffer buffer;
    const auto whole = static_cast<uint16_t>(row.current.image.size());
    if (!page.Replace(*slot, CellAfter(row, {put.key, put.writer, true, whole, 0, {}, false}, buffer))) {
      return ApplyStatus::kNoRoom;
    }
    image = page.BeginVersion(*slot, put.writer);
  }
  ForEachPiece(put.middle, [&](size_t at, std::span<const std::byte> bytes) { CopyTo(image->data() + at, bytes); });
  return ApplyStatus::kApplied;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId, const PutRow& put) {
  if (!IsKeyOfLeaf(page, put.key) || put.writer == TxnName()) return ApplyStatus::kIllegal;
  if (put.in_pieces) return ApplyPieces(page, put);
  const uint32_t slot = page.LowerBound(put.key);
  const bool there = slot < page.slots() && page.KeyAt(slot) == put.key;
  CellBuffer buffer;
  const auto cell = CellAfter(there ? page.RowAt(slot) : RowView{}, put, buffer);
  if (cell.empty()) return ApplyStatus::kIllegal;
  return (there ? page.Replace(slot, cell) : page.Insert(slot, cell)) ? ApplyStatus::kApplied : ApplyStatus::kNoRoom;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId, const RestoreRow& restore) {
  if (!IsKeyOfLeaf(page, restore.key)) return ApplyStatus::kIllegal;
  const std::optional<uint32_t> slot = page.Find(restore.key);
  if (!slot) return ApplyStatus::kNoSuchRow;
  const RowView row = page.RowAt(*slot);
  if (row.current.writer != restore.writer || !row.has_before) return ApplyStatus::kWrongWriter;
  CellBuffer buffer;
  const size_t length = EncodeRow({row.key, row.before, false, {}}, buffer);
  CHECK(page.Replace(*slot, std::span(buffer).first(length)));  // it does not grow
  return ApplyStatus::kApplied;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId, const RemoveRow& remove) {
  if (!IsKeyOfLeaf(page, remove.key)) return ApplyStatus::kIllegal;
  const std::optional<uint32_t> slot = page.Find(remove.key);
  if (!slot) return ApplyStatus::kNoSuchRow;
  if (page.RowAt(*slot).current.present) return ApplyStatus::kRowThere;
  page.Remove(*slot);
  return ApplyStatus::kApplied;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId id, const SplitLeft& split) {
  if (page.id() == PageId() || split.right == PageId() || split.right == id) return ApplyStatus::kIllegal;
  if (split.separator == 0 || !page.IsBelowHighKey(split.separator)) return ApplyStatus::kIllegal;
  const uint32_t slot = page.LowerBound(split.separator);
  if (!page.is_leaf() && slot == 0) return ApplyStatus::kIllegal;
  page.SplitAt(slot, split.right, split.separator);
  return ApplyStatus::kApplied;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId id, const SplitRoot& split) {
  if (page.id() == PageId() || page.has_right() || page.level() + 1 >= kLevelsMax) return ApplyStatus::kIllegal;
  if (split.left == PageId() || split.right == PageId() || split.separator == 0) return ApplyStatus::kIllegal;
  if (split.left == split.right || split.left == id || split.right == id) return ApplyStatus::kIllegal;
  std::vector<std::byte> low, high;
  EncodeChild(0, split.left, low);
  EncodeChild(split.separator, split.right, high);
  page.Format(id, page.tree(), static_cast<uint8_t>(page.level() + 1), PageId(), 0);
  CHECK(page.Insert(0, low) && page.Insert(1, high));
  return ApplyStatus::kApplied;
}

ApplyStatus ApplyTo(SlottedPage& page, PageId id, const InsertChild& insert) {
  if (page.id() == PageId() || page.is_leaf() || !page.IsBelowHighKey(insert.separator)) return ApplyStatus::kIllegal;
  if (insert.child == PageId() || insert.child == id || insert.separator < page.KeyAt(0)) return ApplyStatus::kIllegal;
  const uint32_t slot = page.LowerBound(insert.separator);
  if (slot < page.slots() && page.KeyAt(slot) == insert.separator) return ApplyStatus::kRowThere;
  std::vector<std::byte> cell;
  EncodeChild(insert.separator, insert.child, cell);
  return page.Insert(slot, cell) ? ApplyStatus::kApplied : ApplyStatus::kNoRoom;
}

}  // namespace

bool IsWellFormed(PageId page, const FormatPage& format) {
  if (page == PageId() || format.right == page || format.level >= kLevelsMax) return false;
  if ((format.right == PageId()) != (format.high_key == 0)) return false;
  if (format.level > 0 && format.cells_count == 0) return false;
  if (format.cells_count * kSlotBytes + format.cells.size() > kPageBytes - sizeof(PageHeader)) return false;
  std::span<const std::byte> rest = format.cells;
  std::optional<Key> last;
  for (uint32_t i = 0; i < format.cells_count; ++i) {
    const size_t length = CellBytes(format.level, rest);
    if (length == 0) return false;
    const Key key = CellKey(rest);
    if ((last && key <= *last) || (format.right != PageId() && key >= format.high_key)) return false;
    last = key;
    rest = rest.subspan(length);
  }
  return rest.empty();
}

ApplyStatus Apply(SlottedPage& page, const PageChange& change) {
  if (change.page == PageId() || (page.id() != PageId() && page.id() != change.page)) return ApplyStatus::kWrongPage;
  if (page.lsn() != change.previous || !change.previous.IsOlderThan(change.lsn)) return ApplyStatus::kWrongVersion;
  const ApplyStatus status =
      std::visit([&](const auto& what) { return ApplyTo(page, change.page, what); }, change.what);
  if (status == ApplyStatus::kApplied) page.set_lsn(change.lsn);
  return status;
}

std::optional<size_t> EndOfPieces(std::span<const std::byte> pieces) {
  size_t end = 0;
  const auto see = [&](size_t at, std::span<const std::byte> bytes) { end = at + bytes.size(); };
  if (!ForEachPiece(pieces, see)) return std::nullopt;
  return end;
}

size_t BytesOfPieces(std::span<const std::byte> pieces) {
  size_t sum = 0;
  CHECK(ForEachPiece(pieces, [&](size_t, std::span<const std::byte> bytes) { sum += bytes.size(); }));
  return sum;
}

PutRow MakePut(const SlottedPage& leaf, Key key, const TxnName& writer, std::span<const std::byte> image) {
  const std::span<const std::byte> old = RowOf(leaf, key).current.image;
  const size_t both = std::min(old.size(), image.size());
  const size_t prefix = EqualBytes(old, image, both);
  size_t suffix = 0;
  while (prefix + suffix < both && old[old.size() - 1 - suffix] == image[image.size() - 1 - suffix]) ++suffix;
  return {key,
          writer,
          true,
          static_cast<uint16_t>(prefix),
          static_cast<uint16_t>(suffix),
          image.subspan(prefix, image.size() - prefix - suffix),
          false};
}

PutRow MakePut(const SlottedPage& leaf, Key key, const TxnName& writer, std::span<const std::byte> image,
               PieceBuffer& pieces) {
  const RowView row = RowOf(leaf, key);
  const std::span<const std::byte> old = row.current.image;
  const PutRow put = MakePut(leaf, key, writer, image);
  if (!row.current.present || old.size() != image.size()) return put;
  const size_t end = image.size() - put.suffix_bytes;
  size_t used = 0, last = 0;
  for (size_t at = put.prefix_bytes; at < end;) {
    // A piece begins with a byte that differs. It goes on over equal bytes that cost less than another piece.
    size_t piece_end = at, equal = 0;
    do {
      piece_end += equal;
      while (piece_end < end && old[piece_end] != image[piece_end]) ++piece_end;
      equal = EqualBytes(old.subspan(piece_end), image.subspan(piece_end), end - piece_end);
    } while (piece_end < end && equal <= kPieceHeadBytes);
    const std::span<const std::byte> piece = image.subspan(at, piece_end - at);
    if (used + kPieceHeadBytes + piece.size() > put.middle.size()) return put;
    const uint16_t head[2] = {static_cast<uint16_t>(at - last), static_cast<uint16_t>(piece.size())};
    std::memcpy(&pieces[used], head, sizeof head);
    std::memcpy(&pieces[used + kPieceHeadBytes], piece.data(), piece.size());
    used += kPieceHeadBytes + piece.size();
    last = piece_end;
    at = piece_end + equal;
  }
  return {key, writer, true, 0, 0, std::span(pieces).first(used), true};
}

PutRow MakeDelete(Key key, const TxnName& writer) { return {key, writer, false, 0, 0, {}, false}; }

int64_t GrowthOf(const SlottedPage& leaf, const PutRow& put) {
  const size_t of_put = size_t{put.prefix_bytes} + put.middle.size() + put.suffix_bytes;
  return GrowthOf(leaf, put.key, put.writer, put.in_pieces ? RowOf(leaf, put.key).current.image.size() : of_put);
}

int64_t GrowthOf(const SlottedPage& leaf, Key key, const TxnName& writer, size_t image_bytes) {
  const std::optional<uint32_t> slot = leaf.Find(key);
  if (!slot) return static_cast<int64_t>(RowBytes(image_bytes, 0) + kSlotBytes);
  const RowView row = leaf.RowAt(*slot);
  const bool keeps_before = row.has_before && row.current.writer == writer;
  const size_t before_bytes = keeps_before ? row.before.image.size() : row.current.image.size();
  return static_cast<int64_t>(RowBytes(image_bytes, before_bytes)) -
         static_cast<int64_t>(RowBytes(row.current.image.size(), row.before.image.size()));
}

std::vector<std::byte> CopyCells(const SlottedPage& page, uint32_t begin, uint32_t end) {
  std::vector<std::byte> cells;
  for (uint32_t slot = begin; slot < end; ++slot) {
    const std::span<const std::byte> cell = page.CellAt(slot);
    cells.insert(cells.end(), cell.begin(), cell.end());
  }
  return cells;
}

void StampChanges(VsClock& clock, std::span<PageChange> changes) {
  for (size_t i = 0; i < changes.size(); ++i) {
    for (size_t before = i; before-- > 0;) {
      if (changes[before].page != changes[i].page) continue;
      changes[i].previous = changes[before].lsn;
      break;
    }
    changes[i].lsn = {clock.self(), clock.Tick()};
    CHECK(changes[i].previous.IsOlderThan(changes[i].lsn));
  }
}

}  // namespace dbx::mm
