// Memory for writes and reads that bypass the page cache: whole blocks of 4096 bytes, aligned to them. Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "base/bytes.h"
#include "logging/format.h"

namespace dbx {

struct FreeAligned {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using AlignedBuffer = std::unique_ptr<std::byte[], FreeAligned>;

// Its contents are whatever they are. `bytes` is a number of whole blocks. Throws std::bad_alloc.
inline AlignedBuffer AllocateBlocks(size_t bytes) {
  AlignedBuffer blocks(static_cast<std::byte*>(std::aligned_alloc(format::kBlockBytes, bytes)));
  if (blocks == nullptr) throw std::bad_alloc();
  return blocks;
}

// A copy, and zeros to the end of its last block. Throws std::bad_alloc.
inline AlignedBuffer CopyToBlocks(std::span<const std::byte> bytes) {
  const size_t padded = RoundUp(bytes.size(), format::kBlockBytes);
  AlignedBuffer blocks = AllocateBlocks(padded);
  std::byte* const end = std::copy(bytes.begin(), bytes.end(), blocks.get());
  std::fill(end, blocks.get() + padded, std::byte{0});
  return blocks;
}

}  // namespace dbx
