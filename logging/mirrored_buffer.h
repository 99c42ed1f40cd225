// A ring buffer's memory, mapped twice back to back, so that a record or a write that crosses the ring's end is still
// contiguous: at(p) gives `size_bytes()` contiguous bytes for any stream position p.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace dbx {

class MirroredBuffer {
 public:
  // `bytes` is rounded up to a power of two of at least a page. Throws Error(kNoSpace) when memory is short.
  explicit MirroredBuffer(size_t bytes);
  ~MirroredBuffer();
  MirroredBuffer(const MirroredBuffer&) = delete;
  MirroredBuffer& operator=(const MirroredBuffer&) = delete;

  // The real size of a buffer of at least `bytes`.
  static size_t RoundedBytes(size_t bytes) { return std::bit_ceil(std::max<size_t>(bytes, 4096)); }

  size_t size_bytes() const { return bytes_; }
  std::byte* at(uint64_t position) const { return base_ + (position & (bytes_ - 1)); }

 private:
  size_t bytes_;
  std::byte* base_;
};

}  // namespace dbx
