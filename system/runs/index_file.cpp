#include "system/runs/index_file.h"

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"

namespace dbx {
namespace {

constexpr char kMagic[8] = {'D', 'B', 'X', 'I', 'N', 'D', 'E', 'X'};
constexpr uint32_t kVersion = 1;
constexpr size_t kSlotAlignment = 16;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t checksum;
  uint64_t heap_id, bytes, count;
};
struct Sizes {
  uint64_t slots, primaries;
};

size_t SlotsBegin(size_t count) { return RoundUp(sizeof(Header) + count * sizeof(Sizes), kSlotAlignment); }

uint32_t ChecksumOf(std::span<const std::byte> bytes) { return Crc32cOfSealed(bytes, offsetof(Header, checksum)); }

void Append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> Encode(uint64_t heap_id, const Database& database) {
  const auto& indexes = database.secondary_indexes();
  std::vector<std::byte> bytes(sizeof(Header));
  for (const auto& index : indexes) {
    const Sizes sizes{index->slots().size(), index->primaries().size()};
    Append(bytes, std::as_bytes(std::span(&sizes, 1)));
  }
  bytes.resize(SlotsBegin(indexes.size()));
  for (const auto& index : indexes) Append(bytes, index->slots());
  for (const auto& index : indexes) Append(bytes, index->primaries());
  bytes.resize(RoundUp(bytes.size(), heap_format::kBlockBytes));
  Header header{};
  header.version = kVersion;
  header.heap_id = heap_id, header.bytes = bytes.size(), header.count = indexes.size();
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum = ChecksumOf(bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

[[noreturn]] void Refuse(const std::string& place, const char* why, ExitStatus status = ExitStatus::kCorrupt) {
  throw Error(status, place + "@0: " + why);
}

}  // namespace

IndexFile IndexFile::Decode(std::span<const std::byte> bytes, const std::string& place) {
  Header header;
  if (bytes.size() < sizeof header) Refuse(place, "the file is too short for secondary indexes");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) Refuse(place, "no secondary indexes");
  if (header.bytes != bytes.size() || header.checksum != ChecksumOf(bytes)) {
    Refuse(place, "the secondary indexes are damaged; without the file they are built from the rows");
  }
  if (header.version != kVersion) Refuse(place, "its version is not known", ExitStatus::kMismatch);
  IndexFile file;
  file.heap_id = header.heap_id;
  if (header.count > bytes.size() / sizeof(Sizes) || SlotsBegin(header.count) > bytes.size()) {
    Refuse(place, "no secondary indexes have this shape");
  }
  std::span<const std::byte> rest = bytes.subspan(SlotsBegin(header.count));
  const auto take = [&](uint64_t size, size_t unit) {
    if (size > rest.size() || size % unit != 0) Refuse(place, "no secondary indexes have this shape");
    return std::exchange(rest, rest.subspan(size)).first(size);
  };
  std::vector<Sizes> sizes(header.count);
  if (!sizes.empty()) std::memcpy(sizes.data(), bytes.data() + sizeof header, sizes.size() * sizeof(Sizes));
  for (const Sizes& of : sizes) file.indexes.push_back({take(of.slots, kSlotAlignment), {}});
  for (size_t i = 0; i < sizes.size(); ++i) file.indexes[i].primaries = take(sizes[i].primaries, sizeof(Key));
  if (rest.size() >= heap_format::kBlockBytes) Refuse(place, "no secondary indexes have this shape");
  return file;
}

void WriteIndexFile(FileSystem& files, const std::string& path, uint64_t heap_id, const Database& database) {
  if (database.secondary_indexes().empty()) return;
  const std::vector<std::byte> bytes = Encode(heap_id, database);
  const auto memory = files.MapPersistent(path, {.create_bytes = bytes.size()});
  const auto writer = memory->NewWriter();
  std::memcpy(memory->bytes().data(), bytes.data(), bytes.size());
  writer->WriteBack(memory->bytes().data(), bytes.size());
  writer->Drain();
}

std::unique_ptr<PersistentMemory> MapIndexFile(FileSystem& files, const std::string& path, uint64_t heap_id,
                                               Database& database) {
  if (database.secondary_indexes().empty() || files.KindOf(path) != FileSystem::Entry::kFile) return nullptr;
  auto memory = files.MapPersistent(path, {.copy_on_write = true});
  const std::string place = "cannot recover " + path;
  const IndexFile file = IndexFile::Decode(memory->bytes(), place);
  if (file.heap_id != heap_id || file.indexes.size() != database.secondary_indexes().size()) {
    Refuse(place, "the secondary indexes of another heap", ExitStatus::kMismatch);
  }
  for (size_t i = 0; i < file.indexes.size(); ++i) {
    SecondaryIndex& index = *database.secondary_indexes()[i];
    if (!index.FreezeOver(file.indexes[i].slots, file.indexes[i].primaries)) {
      Refuse(place, "no secondary indexes have this shape");
    }
  }
  return memory;
}

}  // namespace dbx
