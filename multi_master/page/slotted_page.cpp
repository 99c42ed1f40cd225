#include "multi_master/page/slotted_page.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"

namespace dbx::mm {
namespace {

constexpr uint8_t kPresent = 1;
constexpr uint8_t kHasBefore = 2;
constexpr uint8_t kBeforePresent = 4;

struct RowCell {
  uint64_t key;
  uint64_t writer_sequence;
  uint64_t before_sequence;
  uint32_t writer_epoch;
  uint32_t before_epoch;
  uint16_t image_bytes;
  uint16_t before_bytes;
  uint8_t writer_master;
  uint8_t before_master;
  uint8_t flags;
  uint8_t zero;
};
static_assert(sizeof(RowCell) == kRowCellBytes);

struct InnerCell {
  uint64_t separator;
  uint64_t child;
};
static_assert(sizeof(InnerCell) == kInnerCellBytes);

// Cells are not aligned.
template <class T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void Append(const T& value, std::vector<std::byte>& to) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

bool IsValid(const RowCell& row) {
  if (row.zero != 0 || row.flags > (kPresent | kHasBefore | kBeforePresent)) return false;
  if (row.writer_master >= kMastersMax || row.before_master >= kMastersMax) return false;
  if (row.image_bytes > kImageBytesMax || row.before_bytes > kImageBytesMax) return false;
  if ((row.flags & kPresent) == 0 && row.image_bytes > 0) return false;
  if ((row.flags & kBeforePresent) == 0 && row.before_bytes > 0) return false;
  if ((row.flags & kHasBefore) != 0) return true;
  return (row.flags & kBeforePresent) == 0 && row.before_sequence == 0 && row.before_epoch == 0 &&
         row.before_master == 0;
}

}  // namespace

size_t CellBytes(uint8_t level, std::span<const std::byte> bytes) {
  if (level > 0) {
    if (bytes.size() < kInnerCellBytes) return 0;
    return Load<InnerCell>(bytes.data()).child != 0 ? kInnerCellBytes : 0;
  }
  if (bytes.size() < kRowCellBytes) return 0;
  const auto row = Load<RowCell>(bytes.data());
  const size_t length = RowBytes(row.image_bytes, row.before_bytes);
  return IsValid(row) && length <= bytes.size() ? length : 0;
}

Key CellKey(std::span<const std::byte> cell) { return Load<uint64_t>(cell.data()); }

RowView DecodeRow(std::span<const std::byte> cell) {
  const auto row = Load<RowCell>(cell.data());
  const auto image = cell.subspan(kRowCellBytes, row.image_bytes);
  const auto before = cell.subspan(kRowCellBytes + row.image_bytes, row.before_bytes);
  return {row.key,
          {{MasterId(row.writer_master), ClusterEpoch(row.writer_epoch), row.writer_sequence},
           (row.flags & kPresent) != 0,
           image},
          (row.flags & kHasBefore) != 0,
          {{MasterId(row.before_master), ClusterEpoch(row.before_epoch), row.before_sequence},
           (row.flags & kBeforePresent) != 0,
           before}};
}

size_t EncodeRow(const RowView& row, std::span<std::byte> to) {
  RowCell cell{};
  cell.key = row.key;
  cell.writer_sequence = row.current.writer.sequence;
  cell.writer_epoch = row.current.writer.epoch.value();
  cell.writer_master = row.current.writer.master.value();
  cell.image_bytes = static_cast<uint16_t>(row.current.image.size());
  cell.flags = row.current.present ? kPresent : 0;
  if (row.has_before) {
    cell.before_sequence = row.before.writer.sequence;
    cell.before_epoch = row.before.writer.epoch.value();
    cell.before_master = row.before.writer.master.value();
    cell.before_bytes = static_cast<uint16_t>(row.before.image.size());
    cell.flags = static_cast<uint8_t>(cell.flags | kHasBefore | (row.before.present ? kBeforePresent : 0));
  }
  const size_t length = RowBytes(cell.image_bytes, cell.before_bytes);
  CHECK(IsValid(cell) && length <= to.size());
  std::memcpy(to.data(), &cell, sizeof cell);
  std::byte* const images = to.data() + kRowCellBytes;
  if (cell.image_bytes > 0 && row.current.image.data() != images) {
    std::memcpy(images, row.current.image.data(), cell.image_bytes);
  }
  if (cell.before_bytes > 0) std::memcpy(images + cell.image_bytes, row.before.image.data(), cell.before_bytes);
  return length;
}

void EncodeRow(const RowView& row, std::vector<std::byte>& to) {
  const size_t begin = to.size();
  to.resize(begin + RowBytes(row.current.image.size(), row.has_before ? row.before.image.size() : 0));
  EncodeRow(row, std::span(to).subspan(begin));
}

void EncodeChild(Key separator, PageId child, std::vector<std::byte>& to) {
  CHECK(child != PageId());
  Append(InnerCell{separator, child.value()}, to);
}

// --- Reading ---

uint16_t SlottedPage::SlotAt(uint32_t slot) const {
  return Load<uint16_t>(bytes().data() + sizeof(PageHeader) + slot * kSlotBytes);
}

Key SlottedPage::KeyAt(uint32_t slot) const { return Load<uint64_t>(bytes().data() + SlotAt(slot)); }

uint32_t SlottedPage::LowerBound(Key key) const {
  uint32_t low = 0, high = slots();
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (KeyAt(middle) < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

std::optional<uint32_t> SlottedPage::Find(Key key) const {
  const uint32_t slot = LowerBound(key);
  if (slot == slots() || KeyAt(slot) != key) return std::nullopt;
  return slot;
}

void SlottedPage::PrefetchKeys() const {
  constexpr uint32_t kFew = 16;
  if (slots() > kFew) return;
  for (uint32_t slot = 0; slot < slots(); ++slot) Prefetch(bytes().data() + SlotAt(slot));
}

std::span<const std::byte> SlottedPage::CellAt(uint32_t slot) const {
  const std::span<const std::byte> from = bytes().subspan(SlotAt(slot));
  return from.first(CellBytes(level(), from));
}

RowView SlottedPage::RowAt(uint32_t slot) const { return DecodeRow(CellAt(slot)); }

PageId SlottedPage::ChildAt(uint32_t slot) const {
  return PageId(Load<InnerCell>(bytes().data() + SlotAt(slot)).child);
}

uint32_t SlottedPage::ChildSlotOf(Key key) const {
  const uint32_t slot = LowerBound(key);
  if (slot < slots() && KeyAt(slot) == key) return slot;
  CHECK(slot > 0);
  return slot - 1;
}

// --- Validation ---

const char* SlottedPage::WhyInvalid(PageId expected) const {
  const char* why = WhyHeaderInvalid(expected);
  return why != nullptr ? why : WhyCellsInvalid();
}

const char* SlottedPage::WhyHeaderInvalid(PageId expected) const {
  if (header_.id == 0 || id() != expected) return "the page has another id";
  if (header_.level >= kLevelsMax) return "the level is too high";
  if (header_.lsn_master >= kMastersMax) return "the LSN names no master";
  if (header_.lsn_time >= kPageTimeEnd) return "the LSN is too large";
  if (header_.lsn_time == 0 && header_.lsn_master != 0) return "a page as it was loaded names a master";
  if (header_.right == header_.id) return "the page is its own right neighbour";
  if ((header_.right == 0) != (header_.high_key == 0)) return "a high key without a right link, or the reverse";
  if (header_.zero != 0) return "a reserved field is not zero";
  const size_t directory_end = sizeof(PageHeader) + header_.slots * kSlotBytes;
  if (header_.cells_begin > kPageBytes || header_.cells_begin < directory_end) return "slots and cells overlap";
  if (header_.level > 0 && header_.slots == 0) return "an inner page without children";
  return nullptr;
}

const char* SlottedPage::WhyCellsInvalid() const {
  std::vector<std::pair<size_t, size_t>> cells;  // begin, end
  cells.reserve(slots());
  size_t cell_bytes = 0;
  for (uint32_t slot = 0; slot < slots(); ++slot) {
    const size_t begin = SlotAt(slot);
    if (begin < header_.cells_begin || begin >= kPageBytes) return "a slot does not point to a cell";
    const size_t length = CellBytes(level(), bytes().subspan(begin));
    if (length == 0) return "a cell is malformed";
    cells.emplace_back(begin, begin + length);
    cell_bytes += length;
    if (slot > 0 && KeyAt(slot - 1) >= KeyAt(slot)) return "the keys do not ascend";
    if (!IsBelowHighKey(KeyAt(slot))) return "a key is not below the high key";
  }
  if (cell_bytes != header_.cell_bytes) return "the cells have another size";
  std::sort(cells.begin(), cells.end());
  for (size_t i = 1; i < cells.size(); ++i) {
    if (cells[i].first < cells[i - 1].second) return "two cells overlap";
  }
  return nullptr;
}

// --- Changes ---

void SlottedPage::Format(PageId id, TreeId tree, uint8_t level, PageId right, Key high_key) {
  CHECK(id != PageId() && right != id && level < kLevelsMax && (right == PageId()) == (high_key == 0));
  const PageLsn kept = lsn();
  header_ = {};
  rest_.fill(std::byte{0});
  header_.id = id.value();
  header_.tree = tree.value();
  header_.level = level;
  header_.right = right.value();
  header_.high_key = high_key;
  header_.cells_begin = static_cast<uint16_t>(kPageBytes);
  set_lsn(kept);
}

void SlottedPage::set_lsn(const PageLsn& lsn) {
  header_.lsn_master = lsn.master.value();
  header_.lsn_time = lsn.time.value();
}

void SlottedPage::SetSlot(uint32_t slot, size_t offset) {
  const auto at = static_cast<uint16_t>(offset);
  std::memcpy(bytes().data() + sizeof(PageHeader) + slot * kSlotBytes, &at, sizeof at);
}

bool SlottedPage::MakeRoom(size_t cell_bytes, uint32_t slots) {
  const size_t directory_end = sizeof(PageHeader) + slots * kSlotBytes;
  if (directory_end + header_.cell_bytes + cell_bytes > kPageBytes) return false;
  if (directory_end + cell_bytes > header_.cells_begin) Compact();
  return true;
}

void SlottedPage::Compact() {
  std::vector<std::pair<uint16_t, uint16_t>> by_offset;  // offset, slot
  by_offset.reserve(slots());
  for (uint32_t slot = 0; slot < slots(); ++slot) by_offset.emplace_back(SlotAt(slot), static_cast<uint16_t>(slot));
  std::sort(by_offset.rbegin(), by_offset.rend());
  size_t begin = kPageBytes;
  // From the last cell on: each moves towards the end, over bytes that no other cell needs any more.
  for (const auto& [offset, slot] : by_offset) {
    const size_t length = CellAt(slot).size();
    begin -= length;
    std::memmove(bytes().data() + begin, bytes().data() + offset, length);
    SetSlot(slot, begin);
  }
  header_.cells_begin = static_cast<uint16_t>(begin);
}

bool SlottedPage::Insert(uint32_t slot, std::span<const std::byte> cell) {
  CHECK(slot <= slots() && CellBytes(level(), cell) == cell.size());
  if (!MakeRoom(cell.size(), slots() + 1)) return false;
  const size_t begin = header_.cells_begin - cell.size();
  std::memcpy(bytes().data() + begin, cell.data(), cell.size());
  std::byte* directory = bytes().data() + sizeof(PageHeader);
  std::memmove(directory + (slot + 1) * kSlotBytes, directory + slot * kSlotBytes, (slots() - slot) * kSlotBytes);
  ++header_.slots;
  SetSlot(slot, begin);
  header_.cells_begin = static_cast<uint16_t>(begin);
  header_.cell_bytes = static_cast<uint16_t>(header_.cell_bytes + cell.size());
  return true;
}

bool SlottedPage::Replace(uint32_t slot, std::span<const std::byte> cell) {
  CHECK(slot < slots() && CellBytes(level(), cell) == cell.size() && CellKey(cell) == KeyAt(slot));
  const size_t old_bytes = CellAt(slot).size();
  if (cell.size() <= old_bytes) {
    std::memcpy(bytes().data() + SlotAt(slot), cell.data(), cell.size());
    header_.cell_bytes = static_cast<uint16_t>(header_.cell_bytes - old_bytes + cell.size());
    return true;
  }
  if (cell.size() - old_bytes > bytes_free()) return false;
  Remove(slot);
  CHECK(Insert(slot, cell));
  return true;
}

std::optional<std::span<std::byte>> SlottedPage::BeginVersion(uint32_t slot, const TxnName& writer) {
  std::byte* const at = bytes().data() + SlotAt(slot);
  auto row = Load<RowCell>(at);
  const std::span<std::byte> image(at + kRowCellBytes, row.image_bytes);
  const bool is_its = row.writer_sequence == writer.sequence && row.writer_epoch == writer.epoch.value() &&
                      row.writer_master == writer.master.value();
  if (is_its && (row.flags & kHasBefore) != 0) return image;
  if (row.before_bytes != row.image_bytes) return std::nullopt;
  std::memcpy(image.data() + image.size(), image.data(), image.size());
  row.before_sequence = row.writer_sequence;
  row.before_epoch = row.writer_epoch;
  row.before_master = row.writer_master;
  row.writer_sequence = writer.sequence;
  row.writer_epoch = writer.epoch.value();
  row.writer_master = writer.master.value();
  const bool was_present = (row.flags & kPresent) != 0;
  row.flags = static_cast<uint8_t>((row.flags & kPresent) | kHasBefore | (was_present ? kBeforePresent : 0));
  CHECK(IsValid(row));
  std::memcpy(at, &row, sizeof row);
  return image;
}

void SlottedPage::Remove(uint32_t slot) {
  CHECK(slot < slots());
  header_.cell_bytes = static_cast<uint16_t>(header_.cell_bytes - CellAt(slot).size());
  std::byte* directory = bytes().data() + sizeof(PageHeader);
  std::memmove(directory + slot * kSlotBytes, directory + (slot + 1) * kSlotBytes, (slots() - slot - 1) * kSlotBytes);
  --header_.slots;
}

void SlottedPage::SplitAt(uint32_t slot, PageId right, Key high_key) {
  CHECK(slot <= slots() && right != PageId() && right != id() && high_key != 0);
  for (uint32_t i = slot; i < slots(); ++i) {
    header_.cell_bytes = static_cast<uint16_t>(header_.cell_bytes - CellAt(i).size());
  }
  header_.slots = static_cast<uint16_t>(slot);
  header_.right = right.value();
  header_.high_key = high_key;
}

}  // namespace dbx::mm
