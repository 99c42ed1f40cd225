// The bytes of a file in memory, cheap to copy: blocks are shared until one of the copies writes to them, and blocks
// of zeros take no memory, so that a preallocated file costs nothing.
// Threads: none; copies may be used by other threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace dbx {

class SparseBytes {
 public:
  uint64_t size() const { return size_; }

  // Longer: the new bytes are zeros. Shorter: the bytes behind the end are lost.
  void Resize(uint64_t size) {
    if (size < size_) {
      if (BlocksFor(size) < blocks_.size()) blocks_.resize(BlocksFor(size));
      const uint64_t part = size % kBlockBytes;
      if (part != 0 && size / kBlockBytes < blocks_.size() && blocks_[size / kBlockBytes]) {
        Block& last = Writable(size / kBlockBytes);
        std::fill(last.begin() + static_cast<ptrdiff_t>(part), last.end(), std::byte{0});
      }
    }
    size_ = size;
  }

  // Extends the bytes if need be.
  void Write(uint64_t offset, std::span<const std::byte> data) {
    size_ = std::max(size_, offset + data.size());
    while (!data.empty()) {
      const auto in_block = static_cast<size_t>(offset % kBlockBytes);
      const size_t part = std::min(data.size(), kBlockBytes - in_block);
      std::memcpy(Writable(offset / kBlockBytes).data() + in_block, data.data(), part);
      offset += part;
      data = data.subspan(part);
    }
  }

  // How many there were; less than asked for only at the end.
  size_t Read(uint64_t offset, std::span<std::byte> to) const {
    if (offset >= size_) return 0;
    to = to.first(static_cast<size_t>(std::min<uint64_t>(to.size(), size_ - offset)));
    for (size_t done = 0; done < to.size();) {
      const uint64_t block = (offset + done) / kBlockBytes;
      const auto in_block = static_cast<size_t>((offset + done) % kBlockBytes);
      const size_t part = std::min(to.size() - done, kBlockBytes - in_block);
      if (block < blocks_.size() && blocks_[block]) {
        std::memcpy(to.data() + done, blocks_[block]->data() + in_block, part);
      } else {
        std::memset(to.data() + done, 0, part);
      }
      done += part;
    }
    return to.size();
  }

  std::vector<std::byte> All() const {
    std::vector<std::byte> all(static_cast<size_t>(size_));
    Read(0, all);
    return all;
  }

 private:
  static constexpr size_t kBlockBytes = 4096;
  using Block = std::array<std::byte, kBlockBytes>;

  static size_t BlocksFor(uint64_t bytes) { return static_cast<size_t>((bytes + kBlockBytes - 1) / kBlockBytes); }

  Block& Writable(uint64_t index) {
    if (index >= blocks_.size()) blocks_.resize(static_cast<size_t>(index) + 1);
    std::shared_ptr<Block>& block = blocks_[index];
    if (!block) {
      block = std::make_shared<Block>();
      block->fill(std::byte{0});
    } else if (block.use_count() > 1) {
      block = std::make_shared<Block>(*block);
    }
    return *block;
  }

  std::vector<std::shared_ptr<Block>> blocks_;  // null: zeros, as are those behind the last
  uint64_t size_ = 0;
};

}  // namespace dbx
