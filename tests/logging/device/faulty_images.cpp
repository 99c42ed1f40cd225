// The images that crashes of a FaultyFileSystem leave: each policy over pending state, by file and by entry.
#include <algorithm>

#include "tests/logging/device/faulty_file_system.h"

namespace dbx {

void FaultyFileSystem::Collect(const Inode& directory, const std::string& path, Crash crash, std::mt19937_64& random,
                               Image& image) {
  Entries entries = directory.durable_entries;
  for (const EntryChange& change : directory.pending_entries) {
    const bool all = crash == Crash::kAllPending || crash == Crash::kTruncated;
    if (all || (crash != Crash::kDurableOnly && random() % 2 == 0)) Apply(change, entries);
  }
  for (const auto& [name, inode] : entries) {
    const std::string child = path.empty() ? name : path + "/" + name;
    if (!inode->is_directory) {
      image.files[child] = CrashedBytes(*inode, crash, random);
      continue;
    }
    image.directories.push_back(child);
    Collect(*inode, child, crash, random, image);
  }
}

void FaultyFileSystem::CollectVisible(const Inode& directory, const std::string& path, Image& image) {
  for (const auto& [name, inode] : directory.entries) {
    const std::string child = path.empty() ? name : path + "/" + name;
    if (!inode->is_directory) {
      TakeStores(*inode);
      image.files[child] = inode->current;
      continue;
    }
    image.directories.push_back(child);
    CollectVisible(*inode, child, image);
  }
}

SparseBytes FaultyFileSystem::CrashedBytes(const Inode& file, Crash crash, std::mt19937_64& random) {
  SparseBytes bytes = file.durable;
  if (crash == Crash::kDurableOnly) return bytes;
  if (file.live) ApplyWords(*file.live, crash, random, bytes);
  for (const Write& write : file.pending) {
    const bool whole = crash == Crash::kAllPending || crash == Crash::kTruncated;
    if (!write.data) {
      if (whole || random() % 2 == 0) Apply(write, bytes);
    } else if (whole || (crash == Crash::kReordered && random() % 2 == 0)) {
      Apply(write, bytes);
    } else if (crash == Crash::kSubset || crash == Crash::kTorn) {
      ApplySectors(write, crash, random, bytes);
    }
  }
  if (crash == Crash::kTruncated && bytes.size() > file.durable.size()) {
    bytes.Resize(file.durable.size() + random() % (bytes.size() - file.durable.size() + 1));
  }
  return bytes;
}

// `copies` are those made so far: an inode with several names, or with a pending one, stays one.
FaultyFileSystem::InodePtr FaultyFileSystem::KilledCopy(const InodePtr& inode, std::mt19937_64& random,
                                                        std::map<InodePtr, InodePtr>& copies) {
  if (!inode) return nullptr;
  InodePtr& copy = copies[inode];
  if (copy) return copy;
  TakeStores(*inode);
  copy = std::make_shared<Inode>(*inode);
  copy->live = CopyOf(inode->live);
  std::erase_if(copy->pending, [&](const Write& write) { return !write.complete && random() % 2 == 0; });
  for (Write& write : copy->pending) write.complete = write.visible = true;
  copy->current = ViewOf(*copy);
  const auto copy_all = [&](auto& entries) {
    for (auto& [name, entry] : entries) entry = KilledCopy(entry, random, copies);
  };
  copy_all(copy->entries);
  copy_all(copy->durable_entries);
  for (EntryChange& change : copy->pending_entries) copy_all(change);
  return copy;
}

void FaultyFileSystem::ApplySectors(const Write& write, Crash crash, std::mt19937_64& random, SparseBytes& bytes) {
  enum { kOld, kNew, kZero, kGarbage };
  for (size_t at = 0; at < write.data->size(); at += kSectorBytes) {
    const size_t part = std::min(kSectorBytes, write.data->size() - at);
    const uint64_t fate = random() % (crash == Crash::kSubset || write.in_place ? 2 : 4);
    std::vector<std::byte> sector(part);
    if (fate == kOld) continue;
    if (fate == kNew) std::copy_n(write.data->begin() + static_cast<ptrdiff_t>(at), part, sector.begin());
    if (fate == kGarbage) std::generate(sector.begin(), sector.end(), [&] { return static_cast<std::byte>(random()); });
    bytes.Write(write.offset + at, sector);
  }
}

}  // namespace dbx
