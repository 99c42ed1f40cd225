// Damage to a persistent heap and to its log of gaps; damage.h declares it.
#include <algorithm>
#include <string>
#include <vector>

#include "storage/heap/heap_format.h"
#include "system/runs/log_directory.h"
#include "tests/simulation/damage.h"

namespace dbx::sim {
namespace {

constexpr uint64_t kBlockBytes = heap_format::kBlockBytes, kDirectoryOffset = 2 * kBlockBytes;

SparseBytes& FileNamed(FaultyFileSystem::Image& image, const char* name) {
  return std::find_if(image.files.begin(), image.files.end(),
                      [name](const auto& file) { return file.first.ends_with(std::string("/") + name); })
      ->second;
}

std::vector<std::byte> Noise(size_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> noise(bytes);
  for (std::byte& byte : noise) byte = std::byte(random() % 256);
  return noise;
}

void Lose(FaultyFileSystem::Image& image, const char* name) {
  std::erase_if(image.files, [name](const auto& file) { return file.first.ends_with(std::string("/") + name); });
}

// The first extent belongs to a partition once rows were loaded.
void ChangeOwner(SparseBytes& heap, uint64_t word) { heap.Write(kDirectoryOffset, std::as_bytes(std::span(&word, 1))); }

}  // namespace

Damage DamageHeap(FaultyFileSystem::Image& image, std::mt19937_64& random) {
  SparseBytes& heap = FileNamed(image, kHeapFileName);
  SparseBytes& gaps = FileNamed(image, kGapsFileName);
  const uint64_t draw = random();
  switch (random() % 8) {
    case 0:
      Lose(image, kHeapFileName);
      return {"heap missing"};
    case 1:
      Lose(image, kGapsFileName);
      return {"gaps missing"};
    case 2:
      heap.Resize(draw % heap.size());
      return {"heap cut short"};
    case 3:
      heap.Write(0, Noise(2 * kBlockBytes, draw));
      return {"both superblocks overwritten"};
    case 4:
      // The other one says the same since the load was complete.
      heap.Write(draw % 2 * kBlockBytes, Noise(kBlockBytes, draw));
      return {"a superblock overwritten", false, /*must_not_matter=*/true};
    case 5:
      gaps.Write(0, std::vector<std::byte>(gaps.size()));
      return {"gaps zeroed"};
    case 6:
      ChangeOwner(heap, heap_format::OwnerWord(TableId(0), uint64_t{1} << 40 | draw % 1000));
      return {"an extent of a partition that is not there"};
    default:
      ChangeOwner(heap, heap_format::OwnerWord(TableId(60'000), draw % 4));
      return {"an extent of a table that is not there"};
  }
}

}  // namespace dbx::sim
