#include "logging/eleda/fill_bitmap.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace dbx {
namespace {

// Bits [from, to) of a word.
constexpr uint64_t Bits(uint64_t from, uint64_t to) {
  const uint64_t below_to = to == 64 ? ~uint64_t{0} : (uint64_t{1} << to) - 1;
  return below_to & ~((uint64_t{1} << from) - 1);
}

}  // namespace

FillBitmap::FillBitmap(uint64_t ring_bytes, Lsn start_lsn)
    : words_(ring_bytes / kUnitBytes / kWordBits), scanned_until_(start_lsn.value() / kUnitBytes) {
  CHECK(std::has_single_bit(words_.size()));
}

// From the last word to the first: the scan enters a record only when all of it is marked.
void FillBitmap::Filled(const LogPlace& place) {
  const uint64_t begin = place.lsn.value() / kUnitBytes;
  for (uint64_t end = place.end().value() / kUnitBytes; end > begin;) {
    const uint64_t word_begin = (end - 1) / kWordBits * kWordBits;
    const uint64_t from = std::max(begin, word_begin);
    const uint64_t bits = Bits(from - word_begin, end - word_begin);
    // Release: the scan that sees a bit sees the bytes. A word that this record alone covers needs no
    // read-modify-write.
    if (bits == ~uint64_t{0}) {
      WordOf(from).store(bits, std::memory_order_release);
    } else {
      WordOf(from).fetch_or(bits, std::memory_order_release);
    }
    end = from;
  }
}

void FillBitmap::CatchUp() {
  for (;;) {
    const uint64_t from = scanned_until_ % kWordBits;
    Atomic<uint64_t>& word = WordOf(scanned_until_);
    const uint64_t set = std::countr_one(word.load(std::memory_order_acquire) >> from);
    const uint64_t to = std::min(from + set, kWordBits);
    if (to == from) return;
    word.fetch_and(~Bits(from, to), std::memory_order_relaxed);
    scanned_until_ += to - from;
    if (to < kWordBits) return;
  }
}

}  // namespace dbx
