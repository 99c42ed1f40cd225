#include "multi_master/page/page_change.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace dbx::mm {
namespace {

using CellBuffer = std::array<std::byte, kCellBytesMax>;

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

ApplyStatus ApplyTo(SlottedPage& page, PageId, const PutRow& put) {
  if (!IsKeyOfLeaf(page, put.key) || put.writer == TxnName()) return ApplyStatus::kIllegal;
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

PutRow MakePut(const SlottedPage& leaf, Key key, const TxnName& writer, std::span<const std::byte> image) {
  const std::span<const std::byte> old = RowOf(leaf, key).current.image;
  const size_t both = std::min(old.size(), image.size());
  const auto prefix =
      static_cast<size_t>(std::mismatch(old.begin(), old.begin() + both, image.begin()).first - old.begin());
  size_t suffix = 0;
  while (prefix + suffix < both && old[old.size() - 1 - suffix] == image[image.size() - 1 - suffix]) ++suffix;
  return {key,
          writer,
          true,
          static_cast<uint16_t>(prefix),
          static_cast<uint16_t>(suffix),
          image.subspan(prefix, image.size() - prefix - suffix)};
}

PutRow MakeDelete(Key key, const TxnName& writer) { return {key, writer, false, 0, 0, {}}; }

int64_t GrowthOf(const SlottedPage& leaf, const PutRow& put) {
  const RowView row = RowOf(leaf, put.key);
  const bool keeps_before = row.has_before && row.current.writer == put.writer;
  const size_t image_bytes = size_t{put.prefix_bytes} + put.middle.size() + put.suffix_bytes;
  const size_t before_bytes = keeps_before ? row.before.image.size() : row.current.image.size();
  const auto after = static_cast<int64_t>(RowBytes(image_bytes, before_bytes));
  if (!leaf.Find(put.key)) return after + static_cast<int64_t>(kSlotBytes);
  return after - static_cast<int64_t>(RowBytes(row.current.image.size(), row.before.image.size()));
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
