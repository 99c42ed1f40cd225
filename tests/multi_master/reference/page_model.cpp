#include "tests/multi_master/reference/page_model.h"

#include <stdexcept>

namespace dbx::mm::reference {
namespace {

void Require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> from) : from_(from) {}

  uint64_t Number(size_t bytes) {
    Require(at_ + bytes <= from_.size(), "the bytes end early");
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value |= std::to_integer<uint64_t>(from_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  uint8_t Byte() { return static_cast<uint8_t>(Number(1)); }
  std::string Text(size_t bytes) {
    Require(at_ + bytes <= from_.size(), "the bytes end early");
    std::string text;
    for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(from_[at_ + i]);
    at_ += bytes;
    return text;
  }
  ModelTxn Txn() {
    ModelTxn txn;
    txn.master = Byte();
    txn.epoch = static_cast<uint32_t>(Number(4));
    txn.sequence = Number(8);
    return txn;
  }
  bool done() const { return at_ == from_.size(); }

 private:
  std::span<const std::byte> from_;
  size_t at_ = 0;
};

// A cell of a page: key, sequences, epochs, lengths, masters, flags, zero, images.
void ReadRow(Cursor& from, ModelPage& page) {
  const uint64_t key = from.Number(8);
  ModelRow row;
  row.current.writer.sequence = from.Number(8);
  row.before.writer.sequence = from.Number(8);
  row.current.writer.epoch = static_cast<uint32_t>(from.Number(4));
  row.before.writer.epoch = static_cast<uint32_t>(from.Number(4));
  const size_t image_bytes = from.Number(2);
  const size_t before_bytes = from.Number(2);
  row.current.writer.master = from.Byte();
  row.before.writer.master = from.Byte();
  const uint8_t flags = from.Byte();
  from.Byte();
  row.current.present = (flags & 1) != 0;
  row.has_before = (flags & 2) != 0;
  row.before.present = (flags & 4) != 0;
  row.current.image = from.Text(image_bytes);
  row.before.image = from.Text(before_bytes);
  Require(page.rows.emplace(key, row).second, "a key twice");
}

void ReadCell(Cursor& from, ModelPage& page) {
  if (page.level == 0) return ReadRow(from, page);
  const uint64_t separator = from.Number(8);
  Require(page.children.emplace(separator, from.Number(8)).second, "a separator twice");
}

ModelPage Format(Cursor& from) {
  ModelPage page;
  page.tree = static_cast<uint32_t>(from.Number(4));
  page.level = from.Byte();
  page.right = from.Number(8);
  page.high_key = from.Number(8);
  const size_t cells = from.Number(2);
  Cursor bytes = from;
  const size_t length = from.Number(2);
  bytes.Number(2);
  from.Text(length);
  for (size_t i = 0; i < cells; ++i) ReadCell(bytes, page);
  return page;
}

void Put(Cursor& from, ModelPage& page) {
  const uint64_t key = from.Number(8);
  const ModelTxn writer = from.Txn();
  const bool present = from.Byte() == 1;
  const size_t prefix = from.Number(2);
  const size_t suffix = from.Number(2);
  const std::string middle = from.Text(from.Number(2));
  Require(page.level == 0, "a row on an inner page");
  Require(page.right == 0 || key < page.high_key, "a row right of its page");
  ModelRow& row = page.rows[key];
  const std::string old = row.current.image;
  Require(prefix + suffix <= old.size(), "more is kept than there is");
  if (!row.has_before || row.current.writer != writer) {
    row.has_before = true;
    row.before = row.current;
  }
  row.current = {writer, present, old.substr(0, prefix) + middle + old.substr(old.size() - suffix)};
}

void Patch(Cursor& from, ModelPage& page) {
  const auto row = page.rows.find(from.Number(8));
  const ModelTxn writer = from.Txn();
  Require(row != page.rows.end() && row->second.current.present, "a row that is not there is patched");
  const ModelVersion old = row->second.current;
  ModelVersion patched{writer, true, old.image};
  size_t at = 0;
  for (uint64_t left = from.Number(2); left > 0;) {
    at += from.Number(2);
    const std::string piece = from.Text(from.Number(2));
    Require(!piece.empty() && 4 + piece.size() <= left, "a piece that cannot be");
    Require(at + piece.size() <= patched.image.size(), "a piece behind the end of the row");
    patched.image.replace(at, piece.size(), piece);
    at += piece.size();
    left -= 4 + piece.size();
  }
  if (!row->second.has_before || old.writer != writer) row->second.before = old;
  row->second.has_before = true;
  row->second.current = patched;
}

void Restore(Cursor& from, ModelPage& page) {
  const auto row = page.rows.find(from.Number(8));
  const ModelTxn writer = from.Txn();
  Require(row != page.rows.end() && row->second.has_before, "nothing to restore");
  Require(row->second.current.writer == writer, "a row of another writer is restored");
  row->second = ModelRow{row->second.before, false, {}};
}

void SplitLeft(Cursor& from, ModelPage& page) {
  const uint64_t separator = from.Number(8);
  page.rows.erase(page.rows.lower_bound(separator), page.rows.end());
  page.children.erase(page.children.lower_bound(separator), page.children.end());
  Require(page.right == 0 || separator < page.high_key, "a split right of the page");
  page.right = from.Number(8);
  page.high_key = separator;
}

void SplitRoot(Cursor& from, ModelPage& page) {
  const uint64_t left = from.Number(8);
  const uint64_t right = from.Number(8);
  const uint64_t separator = from.Number(8);
  page.rows.clear();
  page.children = {{0, left}, {separator, right}};
  ++page.level;
}

void ReplayChange(Cursor& from, uint8_t master, ModelPages& pages) {
  const uint8_t kind = from.Byte();
  const uint64_t id = from.Number(8);
  const uint64_t time = from.Number(8);
  const uint64_t previous = from.Number(8);
  ModelPage& page = pages[id];
  Require((page.lsn_time << 4 | page.lsn_master) == previous, "a change of another version");
  Require(time > page.lsn_time, "times of a page do not ascend");
  switch (kind) {
    case 1:
      page = Format(from);
      break;
    case 2:
      Put(from, page);
      break;
    case 3:
      Restore(from, page);
      break;
    case 4:
      Require(page.rows.erase(from.Number(8)) == 1, "a row that is not there is removed");
      break;
    case 5:
      SplitLeft(from, page);
      break;
    case 6:
      SplitRoot(from, page);
      break;
    case 7: {
      const uint64_t separator = from.Number(8);
      Require(page.level > 0, "a child of a leaf");
      Require(page.children.emplace(separator, from.Number(8)).second, "a separator twice");
      break;
    }
    case 8:
      Patch(from, page);
      break;
    default:
      Require(false, "an unknown kind");
  }
  page.lsn_master = master;
  page.lsn_time = time;
}

}  // namespace

ModelPage ParsePage(std::span<const std::byte> image) {
  Cursor head(image);
  ModelPage page;
  head.Number(8);
  page.right = head.Number(8);
  page.high_key = head.Number(8);
  page.lsn_time = head.Number(8);
  page.tree = static_cast<uint32_t>(head.Number(4));
  const size_t slots = head.Number(2);
  head.Number(4);
  page.level = head.Byte();
  page.lsn_master = head.Byte();
  Cursor directory(image.subspan(48));
  for (size_t i = 0; i < slots; ++i) {
    Cursor cell(image.subspan(directory.Number(2)));
    ReadCell(cell, page);
  }
  return page;
}

void Replay(std::span<const std::byte> body, ModelPages& pages) {
  Cursor from(body);
  const uint8_t master = from.Byte();
  const size_t changes = from.Number(2);
  for (size_t i = 0; i < changes; ++i) ReplayChange(from, master, pages);
  Require(from.done(), "bytes behind the last change");
}

}  // namespace dbx::mm::reference
