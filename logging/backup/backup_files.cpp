#include "logging/backup/backup_files.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"

namespace dbx {
namespace {

using format::BackupFrame;

uint32_t CrcOf(std::span<const std::byte> frame) { return Crc32c(frame.subspan(sizeof(BackupFrame::crc))); }

BackupFrame FrameOf(const BackupShape& shape, uint32_t copy, TableId table, uint32_t page, uint32_t number) {
  const BackupShape::OfTable& of_table = shape.tables[table.value()];
  BackupFrame frame{};
  frame.salt = format::Salt(shape.run_id, format::kBackupSalt + copy);
  frame.page = page;
  frame.number = number;
  frame.table = table.value();
  frame.copy = static_cast<uint16_t>(copy);
  frame.rows_per_page = of_table.rows_per_page;
  frame.tuple_bytes = of_table.tuple_bytes;
  return frame;
}

// The number at the front of `text`, which loses it.
uint32_t TakeNumber(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

size_t BackupShape::ImageBytes(uint32_t table) const {
  const OfTable& of_table = tables[table];
  const size_t bits_bytes = RoundUp((size_t{of_table.rows_per_page} + 7) / 8, 8);
  return bits_bytes + of_table.rows_per_page * (sizeof(Key) + RoundUp(of_table.tuple_bytes, 8));
}

size_t BackupShape::FrameBytes(uint32_t table) const {
  return RoundUp(sizeof(BackupFrame) + ImageBytes(table), format::kBlockBytes);
}

std::string BackupShape::PathOf(uint32_t copy, uint32_t table, uint32_t part) const {
  return directories[part] + "/" + BackupFileName(copy, table, part);
}

std::string BackupFileName(uint32_t copy, uint32_t table, uint32_t part) {
  CHECK(copy < BackupWriter::kCopies);
  char name[48];
  std::snprintf(name, sizeof name, "backup-%c-%02u-%02u.bak", copy == 0 ? 'a' : 'b', table, part);
  return name;
}

std::optional<BackupPart> ParseBackupFileName(std::string_view name) {
  for (uint32_t copy = 0; copy < BackupWriter::kCopies; ++copy) {
    std::string_view rest = name;
    const std::string_view prefix = copy == 0 ? "backup-a-" : "backup-b-";
    if (!rest.starts_with(prefix)) continue;
    rest.remove_prefix(prefix.size());
    BackupPart part{.copy = copy};
    part.table = TakeNumber(rest);
    rest.remove_prefix(std::min<size_t>(rest.size(), 1));
    part.part = TakeNumber(rest);
    if (name == BackupFileName(part.copy, part.table, part.part)) return part;
  }
  return std::nullopt;
}

BackupWriter::BackupWriter(FileSystem& files, BackupShape shape, bool durable)
    : files_(files), shape_(std::move(shape)), durable_(durable) {
  CHECK(!shape_.directories.empty());
  for (uint32_t copy = 0; copy < kCopies; ++copy) {
    files_of_[copy].resize(shape_.tables.size() * shape_.parts());
    crcs_of_[copy].resize(shape_.tables.size());
    for (uint32_t table = 0; table < shape_.tables.size(); ++table) {
      for (uint32_t part = 0; part < shape_.parts(); ++part) Create(copy, table, part);
    }
  }
}

void BackupWriter::Create(uint32_t copy, uint32_t table, uint32_t part) {
  FileOf(copy, table, part) = {files_.CreatePages(shape_.PathOf(copy, table, part), durable_)};
}

void BackupWriter::Attempt(File& file, auto&& operation) {
  CHECK(file.pages != nullptr);
  try {
    operation(*file.pages);
  } catch (const Error&) {
    file = {};
    throw;
  }
}

void BackupWriter::Write(uint32_t copy, TableId table, uint32_t page, uint32_t number, std::span<std::byte> frames) {
  const size_t frame_bytes = shape_.FrameBytes(table.value());
  const size_t images_end = sizeof(BackupFrame) + shape_.ImageBytes(table.value());
  CHECK(!frames.empty() && frames.size() % frame_bytes == 0);
  uint32_t page_of_frame = page;
  for (size_t at = 0; at < frames.size(); at += frame_bytes, page_of_frame += shape_.parts()) {
    const std::span<std::byte> frame = frames.subspan(at, frame_bytes);
    std::ranges::fill(frame.subspan(images_end), std::byte{0});
    BackupFrame header = FrameOf(shape_, copy, table, page_of_frame, number);
    std::memcpy(frame.data(), &header, sizeof header);
    header.crc = CrcOf(frame);
    std::memcpy(frame.data(), &header, sizeof header);
    std::vector<uint32_t>& crcs = crcs_of_[copy][table.value()];
    if (crcs.size() <= page_of_frame) crcs.resize(page_of_frame + 1);
    crcs[page_of_frame] = header.crc;
  }
  File& file = FileOf(copy, table.value(), page % shape_.parts());
  file.is_written = true;
  Attempt(file, [&](PageFile& pages) { pages.WriteAt(shape_.OffsetOf(table.value(), page), frames); });
  written_bytes_ += frames.size();
}

uint32_t BackupWriter::ChecksumOf(uint32_t copy, TableId table, uint32_t pages) const {
  const std::vector<uint32_t>& crcs = crcs_of_[copy][table.value()];
  CHECK(crcs.size() >= pages);
  return std::accumulate(crcs.begin(), crcs.begin() + pages, uint32_t{0}, std::bit_xor());
}

void BackupWriter::Sync(uint32_t copy) {
  for (File& file : files_of_[copy]) {
    if (!file.is_written) continue;
    Attempt(file, [](PageFile& pages) { pages.Sync(); });
    file.is_written = false;
  }
}

void BackupWriter::Renew(uint32_t copy) {
  for (uint32_t table = 0; table < shape_.tables.size(); ++table) {
    for (uint32_t part = 0; part < shape_.parts(); ++part) {
      if (FileOf(copy, table, part).pages != nullptr) continue;
      const std::string path = shape_.PathOf(copy, table, part);
      if (files_.KindOf(path) != FileSystem::Entry::kNone) files_.Remove(path);
      Create(copy, table, part);
    }
  }
}

BackupReader::BackupReader(FileSystem& files, BackupShape shape, uint32_t copy, uint32_t number,
                           std::vector<uint32_t> pages_by_table)
    : shape_(std::move(shape)), copy_(copy), number_(number), pages_by_table_(std::move(pages_by_table)) {
  CHECK(pages_by_table_.size() == shape_.tables.size());
  for (uint32_t table = 0; table < shape_.tables.size(); ++table) {
    for (uint32_t part = 0; part < parts(); ++part) devices_.push_back(files.Open(shape_.PathOf(copy, table, part)));
  }
}

BackupReader::Frames::Frames(const BackupReader& reader, TableId table, uint32_t part, bool read_ahead)
    : reader_(reader),
      table_(table),
      part_(part),
      device_(reader.DeviceOf(table, part)),
      frame_bytes_(reader.shape_.FrameBytes(table.value())),
      count_((uint64_t{reader.pages_by_table_[table.value()]} + reader.parts() - 1 - part) / reader.parts()),
      read_ahead_(read_ahead && !device_.is_memory()) {
  // Before memory is taken for frames that an anchor claims there to be.
  const uint64_t there = device_.SizeBytes() / frame_bytes_;
  if (there >= count_) return;
  next_ = there;
  Refuse("the file ends before the page, which the anchor counts");
}

bool BackupReader::Frames::Load() {
  if (block_end_ == count_) return false;
  if (read_.started()) {
    current_ ^= 1;
  } else {
    StartReading(block_end_, current_, /*ahead=*/false);
  }
  if (read_.Take() < blocks_[current_].size()) Refuse("the file has become shorter");
  block_begin_ = block_end_;
  block_end_ += blocks_[current_].size() / frame_bytes_;
  if (read_ahead_ && block_end_ < count_) StartReading(block_end_, current_ ^ 1, /*ahead=*/true);
  return true;
}

size_t BackupReader::Frames::BytesOfBlock(uint64_t begin) const {
  return std::min<uint64_t>(count_ - begin, (kFramesBytesMax + frame_bytes_ - 1) / frame_bytes_) * frame_bytes_;
}

void BackupReader::Frames::StartReading(uint64_t begin, int block, bool ahead) {
  blocks_[block].resize(BytesOfBlock(begin));
  const auto read = [&device = device_, offset = begin * frame_bytes_, to = std::span(blocks_[block])] {
    return device.Read(offset, to);
  };
  ahead ? read_.Start(read) : read_.ReadHere(read);
}

const std::byte* BackupReader::Frames::Next() {
  if (next_ == block_end_) return nullptr;
  page_ = static_cast<uint32_t>(part_ + next_ * reader_.parts());
  const auto frame =
      std::span<const std::byte>(blocks_[current_]).subspan((next_ - block_begin_) * frame_bytes_, frame_bytes_);
  Check(frame);
  ++next_;
  return frame.data() + sizeof(BackupFrame);
}

void BackupReader::Frames::Check(std::span<const std::byte> frame) {
  BackupFrame found;
  std::memcpy(&found, frame.data(), sizeof found);
  const BackupFrame wanted = FrameOf(reader_.shape_, reader_.copy_, table_, page_, found.number);
  if (found.crc != CrcOf(frame)) Refuse("the checksum of the page does not match");
  if (found.salt != wanted.salt || found.copy != wanted.copy) Refuse("a page of another run or copy");
  if (found.table != wanted.table || found.page != wanted.page) Refuse("another page");
  if (found.rows_per_page != wanted.rows_per_page || found.tuple_bytes != wanted.tuple_bytes) {
    Refuse("a page of another shape");
  }
  if (found.number > reader_.number_) Refuse("a page of a later checkpoint than the one that the anchor names");
  if (found.unused != 0) Refuse("something stands where nothing belongs");
  checksum_ ^= found.crc;
}

void BackupReader::Frames::Refuse(const char* why) const {
  throw Error(ExitStatus::kCorrupt, "cannot read " + device_.PlaceOf(next_ * frame_bytes_) + ": " + why);
}

}  // namespace dbx
