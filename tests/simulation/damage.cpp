#include "tests/simulation/damage.h"

#include <vector>

namespace dbx::sim {
namespace {

constexpr size_t kSectorBytes = FaultyFileSystem::kSectorBytes;

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

}  // namespace

std::string Damage(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  std::vector<std::string> logs;
  for (const auto& [path, bytes] : image.files) {
    if (path.ends_with(".log") && UsedBytes(bytes) > 0) logs.push_back(path);
  }
  if (logs.empty()) return "";
  const std::string& path = logs[random() % logs.size()];
  SparseBytes& file = image.files[path];
  const uint64_t used = UsedBytes(file);
  const uint64_t at = random() % used;
  const uint64_t sector = at / kSectorBytes * kSectorBytes;
  switch (random() % 6) {
    case 0: {
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
    case 3:
      file.Resize(at);
      return "file cut short";
    case 4:
      image.files.erase(path);
      return "log missing";
    default:
      std::swap(image.files[path], image.files[logs[random() % logs.size()]]);
      return "logs swapped";
  }
}

}  // namespace dbx::sim
