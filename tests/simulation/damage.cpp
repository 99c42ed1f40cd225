#include "tests/simulation/damage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/types.h"
#include "logging/backup/anchor_file.h"
#include "logging/backup/backup_files.h"
#include "logging/format.h"
#include "logging/records/record_type.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/row_anchor.h"
#include "tests/simulation/logs_on_disk.h"

namespace dbx::sim {
namespace {

constexpr size_t kSectorBytes = FaultyFileSystem::kSectorBytes;
constexpr uint64_t kStreamOffset = format::kStreamOffset;
constexpr uint64_t kForeignSequence = uint64_t{1} << 40;  // no run of ours comes so far

using format::RecordHeader;

// Where the bytes of a log end that are not zero; preallocated files go on with zeros.
uint64_t UsedBytes(const SparseBytes& file) {
  constexpr uint64_t kPieceBytes = 4096;
  const std::vector<std::byte> zeros(kPieceBytes);
  std::vector<std::byte> piece(kPieceBytes);
  for (uint64_t at = (file.size() + kPieceBytes - 1) / kPieceBytes * kPieceBytes; at > 0;) {
    at -= kPieceBytes;
    size_t end = file.Read(at, piece);
    if (std::memcmp(piece.data(), zeros.data(), end) == 0) continue;  // all the rest of a file that is preallocated
    for (; end > 0; --end) {
      if (piece[end - 1] != std::byte{0}) return at + end;
    }
  }
  return 0;
}

std::vector<std::byte> SectorAt(const SparseBytes& file, uint64_t at) {
  std::vector<std::byte> sector(kSectorBytes);
  file.Read(at, sector);
  return sector;
}

// Paths of files that hold something.
std::vector<std::string> FilesOf(const FaultyFileSystem::Image& image, bool logs) {
  std::vector<std::string> paths;
  for (const auto& [path, bytes] : image.files) {
    if (path.ends_with(".log") == logs && UsedBytes(bytes) > 0) paths.push_back(path);
  }
  return paths;
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "log ", "manifest ", ...
std::string KindOf(const std::string& path) { return NameOf(path).substr(0, NameOf(path).find_first_of("-.")) + " "; }

bool IsPartOfBackup(const std::string& path) { return path.ends_with(".bak"); }

// Logs of one run are swapped with each other, other files with their like in another run, parts of a backup with both.
std::vector<std::string> LikeFiles(const std::vector<std::string>& paths, const std::string& path) {
  std::vector<std::string> like;
  for (const std::string& other : paths) {
    const bool same_run = RunOf(other) == RunOf(path), same_name = NameOf(other) == NameOf(path);
    const bool is_like = path.ends_with(".log") ? same_run
                         : IsPartOfBackup(path) ? same_name || (same_run && IsPartOfBackup(other))
                                                : same_name;
    if (is_like) like.push_back(other);
  }
  return like;
}

// The anchor of the row checkpoints of the run of `path`; none: nothing, or none that is intact.
std::optional<RowAnchor> RowAnchorBeside(const FaultyFileSystem::Image& image, const std::string& path) {
  for (const auto& [other, bytes] : image.files) {
    if (RunOf(other) != RunOf(path) || NameOf(other) != kRowAnchorFileName) continue;
    try {
      return DecodeRowAnchor(bytes.All(), other);
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

// Whether the file is a part of a copy of a backup, or of a checkpoint, that no anchor names: it may hold anything.
bool IsOfUnusedCopy(const FaultyFileSystem::Image& image, const std::string& path) {
  if (path.ends_with(".ckp")) {
    const std::optional<RowAnchor> anchor = RowAnchorBeside(image, path);
    const bool of_rows = NameOf(path).starts_with("rows-");
    if (!anchor || !anchor->names_checkpoint()) return of_rows;
    return !of_rows || !NameOf(path).starts_with(RowFileName(anchor->copy, 0).substr(0, 6));
  }
  if (!IsPartOfBackup(path)) return false;
  for (const auto& [other, bytes] : image.files) {
    if (RunOf(other) != RunOf(path) || NameOf(other) != kAnchorFileName) continue;
    try {
      return NameOf(path).starts_with(BackupFileName(1 - DecodeAnchor(bytes.All(), other).copy, 0, 0).substr(0, 8));
    } catch (const Error&) {
      return false;
    }
  }
  return false;
}

bool IsFrozen(const FaultyFileSystem::Image& image, uint32_t run) {
  return std::any_of(image.files.begin(), image.files.end(),
                     [&](const auto& file) { return RunOf(file.first) == run && NameOf(file.first) == "frozen"; });
}

// A byte of a log record's kind, log index, LSN vector mask or procedure: what a checksum alone defends. The records of
// a log share their salt.
uint64_t SomeRecordField(const SparseBytes& log, uint64_t from, std::mt19937_64& random) {
  const std::vector<std::byte> bytes = log.All();
  const auto salt_at = [&](uint64_t record) { return bytes.begin() + static_cast<ptrdiff_t>(record + 8); };
  for (uint64_t at = std::max(from / 8 * 8, kStreamOffset); at + 32 <= bytes.size(); at += 8) {
    if (std::equal(salt_at(at), salt_at(at) + 4, salt_at(kStreamOffset))) return at + 24 + random() % 6;
  }
  return from;
}

// What a log would hold if another run had written it: valid to the last byte, with transactions of its own.
struct Twin {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> records;  // where they start
  uint64_t end = kStreamOffset;   // of the last one, which may be of zeros
  format::FileHeader header;      // of the log that it is like
};

void Seal(RecordHeader& header, std::span<std::byte> record) {
  constexpr size_t kCrcBytes = sizeof header.header_crc;
  const auto* bytes = reinterpret_cast<const std::byte*>(&header);
  header.header_crc = Crc32c({bytes + kCrcBytes, sizeof header - kCrcBytes});
  std::memcpy(record.data(), &header, sizeof header);
}

void MakeForeign(std::span<std::byte> record, RecordHeader& header, uint32_t salt) {
  header.salt = salt;
  const std::span<std::byte> body = record.subspan(sizeof header, header.length - sizeof header);
  if (IsTransaction(header)) {
    TxnId id;
    std::memcpy(&id, body.data(), sizeof id);
    id = TxnId::Make(id.worker(), id.sequence() + kForeignSequence);
    std::memcpy(body.data(), &id, sizeof id);
    header.body_crc = Crc32c(body);
  }
  Seal(header, record);
}

// Nothing for a log without an intact header. The records of stripes, which lie in pieces, stay as they are.
std::optional<Twin> TwinOf(const SparseBytes& log, bool other_database) {
  Twin twin;
  twin.bytes = log.All();
  const std::span<std::byte> bytes(twin.bytes);
  if (bytes.size() < kStreamOffset) return std::nullopt;
  try {
    twin.header = DecodeHeader(bytes.first(kStreamOffset), "");
  } catch (const Error&) {
    return std::nullopt;
  }
  format::FileHeader header = twin.header;
  header.run_id ^= 0x5a5a5a5a;
  if (other_database) header.database_id ^= 0xa5a5a5a5;
  EncodeHeader(header, bytes.first<kStreamOffset>());
  const uint32_t own = format::Salt(twin.header.run_id, header.log_index);
  const uint32_t salt = format::Salt(header.run_id, header.log_index);
  for (size_t at = kStreamOffset; !IsStripe(header) && at + sizeof(RecordHeader) <= bytes.size();) {
    RecordHeader record;
    std::memcpy(&record, bytes.data() + at, sizeof record);
    if (record.salt != own || record.length < sizeof record + sizeof(TxnId) || record.length > bytes.size() - at) break;
    twin.records.push_back(at);
    MakeForeign(bytes.subspan(at), record, salt);
    at += record.length;
    twin.end = at;
  }
  return twin;
}

// A bit of a byte somewhere, or of one that a checksum alone defends.
void FlipBit(SparseBytes& file, uint64_t at, bool is_log, std::mt19937_64& random) {
  if (is_log && random() % 2 == 0) at = SomeRecordField(file, at, random);
  std::vector<std::byte> byte(1);
  file.Read(at, byte);
  byte[0] ^= std::byte{1} << (random() % 8);
  file.Write(at, byte);
}

std::vector<std::byte> Garbage(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> garbage(bytes);
  for (std::byte& byte : garbage) byte = static_cast<std::byte>(random());
  return garbage;
}

// As a disk does that lost a write: what an older file, of another run, had left in that place.
std::vector<std::byte> StaleSector(const SparseBytes& log, uint64_t sector) {
  const std::optional<Twin> twin = TwinOf(log, false);
  std::vector<std::byte> stale(kSectorBytes);
  if (!twin || sector >= twin->bytes.size()) return stale;
  const size_t bytes = std::min<size_t>(kSectorBytes, twin->bytes.size() - sector);
  std::copy_n(twin->bytes.begin() + static_cast<ptrdiff_t>(sector), bytes, stale.begin());
  return stale;
}

// Where the next record of a log would stand: behind the block of whatever stands there.
uint64_t EndOf(const SparseBytes& log, const Twin& twin) {
  const uint64_t end = std::max(twin.end, UsedBytes(log));
  return (end + format::kBlockBytes - 1) / format::kBlockBytes * format::kBlockBytes;
}

Damage AppendGarbage(SparseBytes& file, bool is_log, size_t bytes, uint64_t seed) {
  const std::optional<Twin> twin = is_log ? TwinOf(file, false) : std::nullopt;
  // Of stripes we do not know where the last record ends. A log without any may belong to a run that is passed over, as
  // it was never served; with something in it, it is one that lacks its manifest.
  const bool is_behind = twin && !IsStripe(twin->header) && !twin->records.empty();
  file.Write(is_behind ? EndOf(file, *twin) : file.size(), Garbage(bytes, seed));
  return {"garbage behind the end", false, is_behind};
}

// As a disk does that loses a track, or a person with dd: whole blocks, from 4 KiB to 8 MiB, as far as the file goes;
// in a log behind its headers, half of the time the first ones there.
Damage ChangeRegion(SparseBytes& file, bool is_log, uint64_t at, uint64_t variant) {
  constexpr uint64_t kBlock = format::kBlockBytes;
  uint64_t begin = at / kBlock * kBlock;
  if (is_log) begin = variant / 4 % 2 == 0 ? kStreamOffset : std::max(begin, kStreamOffset);
  const uint64_t bytes = std::min(kBlock << variant / 8 % 12, file.size() - std::min(begin, file.size()));
  if (bytes == 0) return {};
  const bool is_garbage = variant % 2 == 0;
  file.Write(begin, is_garbage ? Garbage(bytes, variant) : std::vector<std::byte>(bytes));
  return {std::string(is_garbage ? "garbage" : "zeros") + (bytes < 1 << 20 ? " of blocks" : " of 1 MiB or more")};
}

// A draw decides by its upper half what came to the list later, so that older seeds do as ever.
Damage Change(SparseBytes& file, bool is_log, std::mt19937_64& random) {
  const uint64_t used = UsedBytes(file);
  const uint64_t at = random() % used;
  const uint64_t sector = at / kSectorBytes * kSectorBytes;
  const uint64_t draw = random();
  const uint64_t variant = draw >> 32;
  switch (draw % 4) {
    case 0:
      FlipBit(file, at, is_log, random);
      return {"bit flipped"};
    case 1:
      if (variant / 2 % 2 == 0) return ChangeRegion(file, is_log, at, variant);
      if (variant % 2 == 0) {
        file.Write(sector, Garbage(kSectorBytes, draw));
        return {"sector of garbage"};
      }
      file.Write(sector, std::vector<std::byte>(kSectorBytes));
      return {"sector zeroed"};
    case 2: {
      const uint64_t other = random() % used / kSectorBytes * kSectorBytes;
      if (is_log && variant % 2 == 0) {
        const std::vector<std::byte> stale = StaleSector(file, sector);
        if (stale == SectorAt(file, sector)) return {};
        file.Write(sector, stale);
        return {"sector of an older run"};
      }
      file.Write(sector, SectorAt(file, other));
      return {"sector misplaced"};
    }
    default:
      if (variant % 3 == 0) return AppendGarbage(file, is_log, 1 + variant % (4 * kSectorBytes), draw);
      file.Resize(at);
      return {"file cut short"};
  }
}

// The records of `twin` from the n-th on, as if they had been written at `to`.
std::vector<std::byte> RecordsAt(const Twin& twin, size_t n, uint64_t to) {
  const uint64_t from = twin.records[n];
  std::vector<std::byte> bytes(twin.bytes.begin() + static_cast<ptrdiff_t>(from), twin.bytes.end());
  for (; n < twin.records.size(); ++n) {
    RecordHeader header;
    const std::span<std::byte> record = std::span(bytes).subspan(twin.records[n] - from);
    std::memcpy(&header, record.data(), sizeof header);
    header.lsn += to - from;
    Seal(header, record);
  }
  return bytes;
}

SparseBytes FileOf(std::span<const std::byte> bytes) {
  SparseBytes file;
  file.Write(0, bytes);
  return file;
}

// DIR/run-N/log-NN.log
std::string LogPath(const std::string& directory, uint32_t index) {
  return directory.substr(0, directory.rfind('/')) + "/" + LogFileName(index);
}

// Whether nothing beside this file says which run it belongs to. What was not renamed to its place yet says nothing.
bool StandsAlone(const FaultyFileSystem::Image& image, const std::string& path) {
  return std::count_if(image.files.begin(), image.files.end(), [&](const auto& file) {
           return RunOf(file.first) == RunOf(path) && !file.first.ends_with(".tmp");
         }) == 1;
}

}  // namespace

Damage AddForeignLog(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  const std::vector<std::string> paths = FilesOf(image, true);
  if (paths.empty()) return {};
  const std::string& path = paths[random() % paths.size()];
  const bool other_database = random() % 2 == 0;
  const std::optional<Twin> twin = TwinOf(image.files[path], other_database);
  if (!twin) return {};
  const std::string whose = other_database ? "another database" : "another run";
  switch (random() % 4) {
    case 0: {  // whole, as one log too many
      const bool own = random() % 2 == 0;
      image.files[LogPath(path, twin->header.log_count)] = own ? image.files[path] : FileOf(twin->bytes);
      return {own ? "log duplicated" : "log of " + whose + " added", false};
    }
    case 1: {  // under the same name in each directory of the run
      for (const std::string& directory : image.directories) {
        if (RunOf(directory) == RunOf(path)) image.files[directory + "/" + NameOf(path)] = image.files[path];
      }
      return {"log duplicated in another directory", false};
    }
    case 2:
      if (StandsAlone(image, path)) return {};  // it would be that run
      image.files[path] = FileOf(twin->bytes);
      return {"log replaced by one of " + whose, false};
    default: {
      if (twin->records.empty()) return {};
      const uint64_t draw = random();
      const size_t first = draw % twin->records.size();
      if ((draw >> 32) % 2 == 0) {
        const uint64_t end = EndOf(image.files[path], *twin);
        image.files[path].Write(end, RecordsAt(*twin, first, end));
        return {"records of " + whose + " behind a log", false, true};
      }
      const uint64_t from = twin->records[first];
      image.files[path].Write(from, std::span(twin->bytes).subspan(from));
      return {"records of " + whose + " in a log", !IsFrozen(image, RunOf(path))};
    }
  }
}

Damage LoseOrSwap(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  const bool in_log = random() % 4 != 0;
  const std::vector<std::string> paths = FilesOf(image, in_log);
  if (paths.empty()) return {};
  const std::string& path = paths[random() % paths.size()];
  const std::string kind = KindOf(path);
  const bool is_unused = IsOfUnusedCopy(image, path);
  if (random() % 2 == 0) {
    image.files.erase(path);
    return {kind + "missing", false, is_unused};
  }
  const std::vector<std::string> like = LikeFiles(paths, path);
  std::swap(image.files[path], image.files[like[random() % like.size()]]);
  return {kind + "swapped", false};
}

Damage DamageStart(FaultyFileSystem::Image& image, std::mt19937_64& random, uint32_t run) {
  constexpr uint64_t kPieceBytes = 4096;
  std::vector<std::string> paths = FilesOf(image, random() % 4 != 0);
  std::erase_if(paths, [run](const std::string& path) { return run != 0 && RunOf(path) != run; });
  if (paths.empty()) return {};
  const std::string& path = paths[random() % paths.size()];
  SparseBytes& file = image.files[path];
  const auto bytes = static_cast<size_t>(std::min(kPieceBytes * (1 + random() % 4), file.size()));
  const bool zeros = random() % 2 == 0, is_unused = IsOfUnusedCopy(image, path);
  file.Write(0, zeros ? std::vector<std::byte>(bytes) : Garbage(bytes, random()));
  return {"start of a " + KindOf(path) + (zeros ? "zeroed" : "overwritten"), false, is_unused};
}

Damage LoseRun(FaultyFileSystem::Image& image, std::mt19937_64& random, uint32_t but) {
  std::set<uint32_t> runs;
  for (const auto& [path, bytes] : image.files) runs.insert(RunOf(path));
  if (runs.size() < 2) return {};
  runs.erase(but);
  const uint32_t lost = *std::next(runs.begin(), static_cast<ptrdiff_t>(random() % runs.size()));
  std::erase_if(image.files, [lost](const auto& file) { return RunOf(file.first) == lost; });
  std::erase_if(image.directories, [lost](const std::string& directory) { return RunOf(directory) == lost; });
  return {"run lost"};
}

Damage LoseLogs(FaultyFileSystem::Image& image, uint32_t run) {
  std::erase_if(image.files, [run](const auto& file) {
    return RunOf(file.first) == run && LogIndexOf(BaseNameOf(file.first)).has_value();
  });
  return {"logs lost"};
}

uint32_t PutBeside(FaultyFileSystem::Image& fresh, const FaultyFileSystem::Image& others) {
  constexpr uint32_t kNumber = 900;
  const auto renumbered = [](std::string path) {
    if (RunOf(path) == 0) return path;
    const std::string old_name = RunDirectoryName(RunOf(path));
    return path.replace(path.find(old_name), old_name.size(), RunDirectoryName(kNumber));
  };
  FaultyFileSystem::Image both = others;
  for (const std::string& directory : fresh.directories) {
    if (RunOf(directory) != 0) both.directories.push_back(renumbered(directory));
  }
  for (const auto& [path, bytes] : fresh.files) both.files[renumbered(path)] = bytes;
  fresh = std::move(both);
  return kNumber;
}

Damage DamageOneFile(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  const bool in_log = random() % 2 == 0;
  const std::vector<std::string> paths = FilesOf(image, in_log);
  if (paths.empty()) return {};
  const std::string& path = paths[random() % paths.size()];
  // A frontier that lacks its last step may have been torn, too.
  const bool may_cut = (in_log || NameOf(path) == "frontier") && !IsFrozen(image, RunOf(path));
  const bool is_unused = IsOfUnusedCopy(image, path);
  Damage damage = Change(image.files[path], in_log, random);
  if (damage.what.empty()) return {};
  if (!in_log) damage.what = KindOf(path) + "file: " + damage.what;
  damage.must_not_matter |= is_unused;
  damage.may_cut = may_cut && !damage.must_not_matter;
  return damage;
}

}  // namespace dbx::sim
