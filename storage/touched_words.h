// Which words of a tuple, of 8 bytes, a procedure may have changed: the sink of a TupleWriter over a copy of the tuple
// (tuple.h). To compare or combine the copy with the row, these words are enough. Owned by one worker.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace dbx {

class TouchedWords {
 public:
  // All words of a longer tuple count as touched.
  static constexpr size_t kTupleBytesMax = 4096;

  // None of the words of the tuple at `tuple`.
  void Start(const std::byte* tuple, size_t bytes) {
    tuple_ = tuple;
    bytes_ = bytes;
    if (CountsAll()) return;
    std::memset(bits_, 0, (bytes + kBlockBytes - 1) / kBlockBytes * sizeof(uint64_t));
  }
  void BeforeChange(const std::byte* at, size_t bytes) {
    const auto offset = static_cast<size_t>(at - tuple_);
    ASSERT(bytes > 0 && offset + bytes <= bytes_);
    if (CountsAll()) return;
    for (size_t word = offset / kWordBytes; word <= (offset + bytes - 1) / kWordBytes; ++word) {
      bits_[word / kBlockWords] |= uint64_t{1} << word % kBlockWords;
    }
  }

  // Calls visit(offset, bytes) for each word touched, of which the tuple's end may cut off the last; for a long tuple,
  // once for all of its bytes.
  void ForEach(auto&& visit) const {
    if (CountsAll()) return visit(size_t{0}, bytes_);
    for (size_t block = 0; block * kBlockBytes < bytes_; ++block) {
      for (uint64_t bits = bits_[block]; bits != 0; bits &= bits - 1) {
        const size_t offset = block * kBlockBytes + static_cast<size_t>(std::countr_zero(bits)) * kWordBytes;
        if (offset + kWordBytes <= bytes_) {
          visit(offset, kWordBytes);
        } else {
          visit(offset, bytes_ - offset);
        }
      }
    }
  }

 private:
  static constexpr size_t kWordBytes = 8;
  static constexpr size_t kBlockWords = 64;
  static constexpr size_t kBlockBytes = kBlockWords * kWordBytes;

  bool CountsAll() const { return bytes_ > kTupleBytesMax; }

  const std::byte* tuple_ = nullptr;
  size_t bytes_ = 0;
  uint64_t bits_[kTupleBytesMax / kBlockBytes];
};

}  // namespace dbx
