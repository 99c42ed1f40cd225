#include "tests/simulation/damage.h"

#include <algorithm>
#include <vector>

#include "logging/format.h"
#include "tests/simulation/logs_on_disk.h"

namespace dbx::sim {
namespace {

constexpr size_t kSectorBytes = FaultyFileSystem::kSectorBytes;
constexpr uint64_t kStreamOffset = format::kStreamOffset;

// Where the bytes of a log end that are not zero; preallocated files go on with zeros.
uint64_t UsedBytes(const SparseBytes& file) {
  constexpr uint64_t kPieceBytes = 4096;
  std::vector<std::byte> piece(kPieceBytes);
  for (uint64_t at = (file.size() + kPieceBytes - 1) / kPieceBytes * kPieceBytes; at > 0;) {
    at -= kPieceBytes;
    for (size_t end = file.Read(at, piece); end > 0; --end) {
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

// Logs of one run are swapped with each other, other files with their like in another run.
std::vector<std::string> LikeFiles(const std::vector<std::string>& paths, const std::string& path) {
  std::vector<std::string> like;
  for (const std::string& other : paths) {
    if (path.ends_with(".log") ? RunOf(other) == RunOf(path) : NameOf(other) == NameOf(path)) like.push_back(other);
  }
  return like;
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

// Returns what was done.
std::string Change(SparseBytes& file, bool is_log, std::mt19937_64& random) {
  const uint64_t used = UsedBytes(file);
  uint64_t at = random() % used;
  const uint64_t sector = at / kSectorBytes * kSectorBytes;
  switch (random() % 4) {
    case 0: {
      if (is_log && random() % 2 == 0) at = SomeRecordField(file, at, random);
      std::vector<std::byte> byte(1);
      file.Read(at, byte);
      byte[0] ^= std::byte{1} << (random() % 8);
      file.Write(at, byte);
      return "bit flipped";
    }
    case 1:
      file.Write(sector, std::vector<std::byte>(kSectorBytes));
      return "sector zeroed";
    case 2:
      file.Write(sector, SectorAt(file, random() % used / kSectorBytes * kSectorBytes));
      return "sector misplaced";
    default:
      file.Resize(at);
      return "file cut short";
  }
}

}  // namespace

Damage DamageOneFile(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  const bool in_log = random() % 2 == 0;
  const std::vector<std::string> paths = FilesOf(image, in_log);
  if (paths.empty()) return {};
  const std::string& path = paths[random() % paths.size()];
  const std::string kind = in_log ? "" : NameOf(path).substr(0, NameOf(path).find_first_of("-.")) + " ";
  // A frontier that lacks its last step may have been torn, too.
  const bool may_cut = (in_log || NameOf(path) == "frontier") && !IsFrozen(image, RunOf(path));
  switch (random() % 6) {
    case 0:
      image.files.erase(path);
      return {(in_log ? "log " : kind) + "missing", may_cut};
    case 1: {
      const std::vector<std::string> like = LikeFiles(paths, path);
      std::swap(image.files[path], image.files[like[random() % like.size()]]);
      return {(in_log ? "logs " : kind) + "swapped", may_cut};
    }
    default: {
      const std::string what = Change(image.files[path], in_log, random);
      return {in_log ? what : kind + "file: " + what, may_cut};
    }
  }
}

}  // namespace dbx::sim
