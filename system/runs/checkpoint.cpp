#include "system/runs/checkpoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "logging/write_entries.h"

namespace dbx {
namespace {

using format::CheckpointBlock;
using format::CheckpointEnd;
using format::CheckpointHeader;
using format::WriteEntry;

// A block is written once it holds this much; a row more than that makes it longer.
constexpr size_t kFullBytes = size_t{1} << 20;

using AlignedBuffer = CheckpointPartWriter::Buffer;

AlignedBuffer MakeBuffer() {
  AlignedBuffer buffer(
      static_cast<std::byte*>(std::aligned_alloc(format::kBlockBytes, format::kCheckpointBlockBytesMax)));
  if (!buffer) throw std::bad_alloc();
  return buffer;
}

uint32_t CrcOf(CheckpointHeader header) {
  header.crc = 0;
  return Crc32c(std::as_bytes(std::span(&header, 1)));
}

CheckpointHeader HeaderOf(const CheckpointIdentity& identity) {
  CheckpointHeader header{};
  std::memcpy(header.magic, format::kCheckpointMagic, sizeof header.magic);
  header.version = format::kVersion;
  header.database_id = identity.database_id;
  header.run_id = identity.run_id;
  header.schema_hash = identity.schema_hash;
  header.part = identity.part;
  header.part_count = identity.part_count;
  header.crc = CrcOf(header);
  return header;
}

class PartReader {
 public:
  // `add_row(table, key, image)` returns why the row is impossible, or nullptr.
  using AddRow = std::function<const char*(TableId, Key, std::span<const std::byte>)>;

  PartReader(FileSystem& files, const std::string& path, AddRow add_row)
      : device_(files.Open(path)), buffer_(MakeBuffer()), add_row_(std::move(add_row)) {}

  CheckpointIdentity ReadHeader() {
    CheckpointHeader header;
    if (Load(format::kBlockBytes) < format::kBlockBytes) Refuse("the file ends inside its header");
    std::memcpy(&header, buffer_.get(), sizeof header);
    if (std::memcmp(header.magic, format::kCheckpointMagic, sizeof header.magic) != 0) Refuse("no checkpoint");
    if (header.crc != CrcOf(header)) Refuse("the header's checksum does not match");
    if (header.version != format::kVersion) Refuse("its version is not known", ExitStatus::kMismatch);
    Take(format::kBlockBytes);
    return {header.database_id, header.run_id, header.schema_hash, header.part, header.part_count};
  }

  // False behind the last block.
  bool ReadBlock() {
    CheckpointBlock block;
    if (Load(format::kBlockBytes) < format::kBlockBytes) Refuse("the file is cut off");
    std::memcpy(&block, buffer_.get(), sizeof block);
    if (block.bytes < sizeof block || block.bytes > format::kCheckpointBlockBytesMax ||
        block.bytes % format::kRecordAlignment != 0) {
      Refuse("impossible length of a block");
    }
    const size_t padded = RoundUp(block.bytes, format::kBlockBytes);
    if (padded > format::kBlockBytes && Load(padded) < padded) Refuse("the file is cut off");
    if (block.crc != Crc32c({buffer_.get() + sizeof block.crc, block.bytes - sizeof block.crc})) {
      Refuse("the checksum of a block does not match");
    }
    const uint32_t digest = digest_;
    digest_ = Crc32cExtend(digest_, {buffer_.get(), sizeof block.crc});
    const std::span body(buffer_.get() + sizeof block, block.bytes - sizeof block);
    if (block.kind == format::kCheckpointEnd) {
      CheckEnd(body, digest);
    } else if (block.kind == format::kCheckpointRows) {
      AddRows(body, block.rows);
    } else {
      Refuse("unknown kind of block");
    }
    Take(padded);
    return block.kind != format::kCheckpointEnd;
  }

  format::CheckpointPart Finish() {
    if (part_.bytes != device_->SizeBytes()) Refuse("something follows the end");
    return part_;
  }

  void RefuseUnless(bool holds, const char* why) const {
    if (!holds) Refuse(why, ExitStatus::kMismatch);
  }

 private:
  size_t Load(size_t bytes) { return device_->Read(part_.bytes, {buffer_.get(), bytes}); }
  void Take(size_t bytes) {
    part_.crc = Crc32cExtend(part_.crc, {buffer_.get(), bytes});
    part_.bytes += bytes;
  }

  void AddRows(std::span<std::byte> body, uint32_t rows) {
    WriteEntries entries(body);
    WriteImage row;
    uint32_t count = 0;
    for (; entries.Next(row); ++count) {
      if (row.op != format::WriteOp::kPut) Refuse("a row that is none");
      if (const char* why = add_row_(row.table, row.key, row.image)) Refuse(why);
    }
    if (entries.malformed() || count != rows) Refuse("malformed rows");
    part_.rows += count;
  }

  void CheckEnd(std::span<const std::byte> body, uint32_t digest) {
    CheckpointEnd end;
    if (body.size() != sizeof end) Refuse("malformed end");
    std::memcpy(&end, body.data(), sizeof end);
    if (end.rows != part_.rows || end.digest != digest) Refuse("its end counts other rows");
  }

  [[noreturn]] void Refuse(const char* why, ExitStatus status = ExitStatus::kCorrupt) const {
    throw Error(status, "cannot read " + device_->path() + "@" + std::to_string(part_.bytes) + ": " + why);
  }

  std::unique_ptr<BlockDevice> device_;
  AlignedBuffer buffer_;
  const AddRow add_row_;
  uint32_t digest_ = 0;
  format::CheckpointPart part_{};  // the part read so far
};

}  // namespace

CheckpointPartWriter::CheckpointPartWriter(FileSystem& files, const std::string& path, const DeviceOptions& options,
                                           const CheckpointIdentity& identity)
    : device_(files.Create(path, options)), buffer_(MakeBuffer()) {
  const CheckpointHeader header = HeaderOf(identity);
  std::memcpy(buffer_.get(), &header, sizeof header);
  WriteOut(sizeof header);
}

CheckpointPartWriter::~CheckpointPartWriter() = default;

void CheckpointPartWriter::Add(TableId table, Key key, std::span<const std::byte> tuple) {
  const size_t bytes = sizeof(WriteEntry) + RoundUp(tuple.size(), format::kRecordAlignment);
  CHECK(bytes + sizeof(CheckpointBlock) <= format::kCheckpointBlockBytesMax);
  if (used_ + bytes > kFullBytes && block_rows_ > 0) Flush(format::kCheckpointRows);
  WriteEntry entry{};
  entry.key = key;
  entry.table = table.value();
  entry.op = static_cast<uint8_t>(format::WriteOp::kPut);
  entry.length = static_cast<uint32_t>(tuple.size());
  std::memset(buffer_.get() + used_, 0, bytes);
  std::memcpy(buffer_.get() + used_, &entry, sizeof entry);
  std::memcpy(buffer_.get() + used_ + sizeof entry, tuple.data(), tuple.size());
  used_ += bytes;
  ++block_rows_;
  ++part_.rows;
}

format::CheckpointPart CheckpointPartWriter::Finish() {
  if (block_rows_ > 0) Flush(format::kCheckpointRows);
  const CheckpointEnd end{part_.rows, digest_};
  std::memcpy(buffer_.get() + used_, &end, sizeof end);
  used_ += sizeof end;
  Flush(format::kCheckpointEnd);
  return part_;
}

void CheckpointPartWriter::Flush(uint32_t kind) {
  CheckpointBlock block{0, static_cast<uint32_t>(used_), kind, static_cast<uint32_t>(block_rows_)};
  std::memcpy(buffer_.get(), &block, sizeof block);
  block.crc = Crc32c({buffer_.get() + sizeof block.crc, used_ - sizeof block.crc});
  std::memcpy(buffer_.get(), &block.crc, sizeof block.crc);
  digest_ = Crc32cExtend(digest_, {buffer_.get(), sizeof block.crc});
  WriteOut(used_);
  used_ = sizeof(CheckpointBlock);
  block_rows_ = 0;
}

void CheckpointPartWriter::WriteOut(size_t bytes) {
  const size_t padded = RoundUp(bytes, format::kBlockBytes);
  std::memset(buffer_.get() + bytes, 0, padded - bytes);
  device_->StartWrite(part_.bytes, {buffer_.get(), padded});
  device_->Complete(true);
  part_.crc = Crc32cExtend(part_.crc, {buffer_.get(), padded});
  part_.bytes += padded;
}

format::CheckpointPart WriteCheckpointPart(FileSystem& files, const std::string& path, const DeviceOptions& options,
                                           const CheckpointIdentity& identity, const Database& database) {
  CheckpointPartWriter writer(files, path, options, identity);
  for (uint16_t i = 0; i < database.table_count(); ++i) {
    const Table& table = database.table(TableId(i));
    table.ForEachRowOfPart(identity.part, identity.part_count, [&](const Row& row) {
      if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
      writer.Add(TableId(i), row.key, {table.tuple(&row), table.tuple_bytes()});
    });
  }
  return writer.Finish();
}

void LoadCheckpointPart(FileSystem& files, const std::string& path, const CheckpointIdentity& identity,
                        const format::CheckpointPart& expected, Database& database, WorkerId worker,
                        Repeated repeated) {
  const auto add_row = [&](TableId id, Key key, std::span<const std::byte> image) -> const char* {
    if (id.value() >= database.table_count()) return "a row of a table that does not exist";
    Table& table = database.table(id);
    if (image.size() != table.tuple_bytes()) return "a row of another length than its table's";
    if (Row* const row = table.Find(key)) {
      if (repeated == Repeated::kRefused) return "a row is there twice";
      std::memcpy(table.tuple(row), image.data(), image.size());
      return nullptr;
    }
    table.LoadRow(worker, key, image);
    return nullptr;
  };
  PartReader reader(files, path, add_row);
  const CheckpointHeader found = HeaderOf(reader.ReadHeader()), wanted = HeaderOf(identity);
  reader.RefuseUnless(std::memcmp(&found, &wanted, sizeof found) == 0, "the checkpoint of another run, schema or part");
  while (reader.ReadBlock()) continue;
  const format::CheckpointPart part = reader.Finish();
  reader.RefuseUnless(part.bytes == expected.bytes && part.rows == expected.rows && part.crc == expected.crc,
                      "not the checkpoint that the run names");
}

CheckpointSummary InspectCheckpointPart(FileSystem& files, const std::string& path) {
  CheckpointSummary summary;
  const auto add_row = [&](TableId id, Key, std::span<const std::byte>) -> const char* {
    if (id.value() >= summary.rows.size()) summary.rows.resize(id.value() + size_t{1});
    ++summary.rows[id.value()];
    return nullptr;
  };
  PartReader reader(files, path, add_row);
  summary.identity = reader.ReadHeader();
  while (reader.ReadBlock()) continue;
  summary.part = reader.Finish();
  return summary;
}

}  // namespace dbx
