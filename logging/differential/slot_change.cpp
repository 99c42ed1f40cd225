#include "logging/differential/slot_change.h"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/bytes.h"
#include "base/check.h"
#include "base/xor_bytes.h"

namespace dbx {
namespace {

constexpr size_t kWordBytes = ChangeRuns::kWordBytes;
constexpr size_t kBlockWords = 64;

// Bit i: word i of 16 is not zero.
uint64_t NonZeroOf16(const std::byte* words) {
  const auto zeros = [words](int i) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words) + i);
    return _mm_cmpeq_epi32(four, _mm_setzero_si128());
  };
  const __m128i low = _mm_packs_epi32(zeros(0), zeros(1)), high = _mm_packs_epi32(zeros(2), zeros(3));
  return static_cast<uint16_t>(~_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

// The words of a tuple, the last of which may be cut off, as a bit each: those that are in runs. A gap of one word
// costs no more than a second run, and is in the run around it.
class RunBits {
 public:
  explicit RunBits(std::span<const std::byte> tuple)
      : blocks_((tuple.size() / kWordBytes + kBlockWords) / kBlockWords) {
    ASSERT(blocks_ < std::size(bits_));
    for (size_t block = 0; block < blocks_; ++block) {
      bits_[block] = NonZeroOf64(tuple, block * kBlockWords * kWordBytes);
    }
    bits_[blocks_] = 0;
    uint64_t before = 0;  // the last word of the block before
    for (size_t block = 0; block < blocks_; ++block) {
      const uint64_t bits = bits_[block];
      bits_[block] |= (bits << 1 | before) & (bits >> 1 | bits_[block + 1] << (kBlockWords - 1));
      before = bits >> (kBlockWords - 1);
    }
  }

  // The first word from `word` on that is in a run, or in none; nothing behind the tuple is in one.
  size_t NextIn(size_t word) const { return Next(word, 0); }
  size_t NextOut(size_t word) const { return Next(word, ~uint64_t{0}); }

 private:
  static uint64_t NonZeroOf64(std::span<const std::byte> tuple, size_t at) {
    constexpr size_t kQuarterBytes = kBlockWords / 4 * kWordBytes;
    uint64_t bits = 0;
    for (size_t quarter = 0; quarter < 4 && at < tuple.size(); ++quarter, at += kQuarterBytes) {
      const std::byte* from = tuple.data() + at;
      std::byte last[kQuarterBytes];
      if (tuple.size() - at < kQuarterBytes) {
        std::memset(last, 0, sizeof last);
        from = static_cast<const std::byte*>(std::memcpy(last, from, tuple.size() - at));
      }
      bits |= NonZeroOf16(from) << (quarter * kBlockWords / 4);
    }
    return bits;
  }
  size_t Next(size_t word, uint64_t inverted) const {
    size_t block = word / kBlockWords;
    if (block >= blocks_) return blocks_ * kBlockWords;
    uint64_t bits = (bits_[block] ^ inverted) & ~uint64_t{0} << word % kBlockWords;
    while (bits == 0 && ++block < blocks_) bits = bits_[block] ^ inverted;
    return block * kBlockWords + (bits == 0 ? 0 : static_cast<size_t>(std::countr_zero(bits)));
  }

  size_t blocks_;
  // One more than there are words for, and one behind.
  uint64_t bits_[(size_t{UINT16_MAX} + 1) / kBlockWords + 2];
};

// What of a run lies within the tuple; the rest is padding.
std::span<const std::byte> Clipped(const ChangeRuns& runs, size_t tuple_bytes) {
  return runs.bytes().first(std::min(runs.bytes().size(), tuple_bytes - runs.offset()));
}

const char* ImagesFault(const SlotChange& change, size_t tuple_bytes) {
  if (change.image.size() != 2 * RoundedUpToWords(tuple_bytes)) {
    return "images of another length than its table's tuples";
  }
  for (const auto image : {change.before(), change.after()}) {
    if (!AllZero(image.subspan(tuple_bytes))) return "padding of an image that is not zero";
  }
  if (!change.Has(format::kChangePresence)) return nullptr;
  const auto absent = change.Has(format::kChangeErases) ? change.after() : change.before();
  return AllZero(absent) ? nullptr : "image of an absent tuple that is not zero";
}

}  // namespace

std::optional<size_t> EncodeRuns(std::span<const std::byte> delta, std::byte* to) {
  const size_t words = (delta.size() + kWordBytes - 1) / kWordBytes;
  if (words > size_t{UINT16_MAX} + 1) return std::nullopt;
  const size_t limit = RoundedUpToWords(delta.size());
  const RunBits runs(delta);
  size_t used = 0;
  for (size_t word = runs.NextIn(0); word < words;) {
    const size_t end = runs.NextOut(word);
    const size_t run_bytes = (end - word) * kWordBytes;
    const size_t bytes = sizeof(format::ChangeRun) + run_bytes;
    if (RoundedUpToWords(used + bytes) >= limit) return std::nullopt;
    const format::ChangeRun run{static_cast<uint16_t>(word), static_cast<uint16_t>(end - word)};
    std::memcpy(to + used, &run, sizeof run);
    // The last word may be cut off.
    const size_t copied = std::min(run_bytes, delta.size() - word * kWordBytes);
    std::memcpy(to + used + sizeof run, delta.data() + word * kWordBytes, copied);
    std::memset(to + used + sizeof run + copied, 0, run_bytes - copied);
    used += bytes;
    word = runs.NextIn(end);
  }
  if (used == 0 && limit == 0) return std::nullopt;
  return used;
}

const char* FaultOf(const SlotChange& change, const Database& database) {
  if (change.table.value() >= database.table_count()) return "change of an unknown table";
  return FaultOf(change, *database.table(change.table).pages());
}

const char* FaultOf(const SlotChange& change, const PageSpace& pages) {
  const size_t tuple_bytes = pages.tuple_bytes();
  if (change.slot >= pages.rows_per_page()) return "slot beyond the end of its page";
  if (change.Has(format::kChangeImages)) return ImagesFault(change, tuple_bytes);
  if (!change.Has(format::kChangeRuns)) {
    if (change.image.size() != RoundedUpToWords(tuple_bytes)) return "image of another length than its table's tuples";
    return AllZero(change.image.subspan(tuple_bytes)) ? nullptr : "padding of an image that is not zero";
  }
  ChangeRuns runs(change.image);
  while (runs.Next()) {
    const size_t end = runs.offset() + runs.bytes().size();
    if (runs.offset() >= tuple_bytes || end - std::min(end, tuple_bytes) >= kWordBytes) {
      return "run beyond the end of its tuple";
    }
    if (!AllZero(runs.bytes().subspan(Clipped(runs, tuple_bytes).size()))) return "padding of a run that is not zero";
  }
  return runs.fault();
}

void ApplyChange(const SlotChange& change, const PageSpace& pages, PageSpace::Latched& page) {
  ASSERT(FaultOf(change, pages) == nullptr && !change.Has(format::kChangeImages));
  const PageSpace::Place at{change.page, change.slot};
  Row* const row = pages.RowAt(at);
  std::byte* const tuple = pages.TupleOf(row);
  if (change.Has(format::kChangePresence)) {
    page.SetPresent(at.slot, !pages.IsPresent(at));
    row->key ^= change.key;
  }
  if (!change.Has(format::kChangeRuns)) return XorBytes(tuple, change.image.data(), pages.tuple_bytes());
  for (ChangeRuns runs(change.image); runs.Next();) {
    const auto bytes = Clipped(runs, pages.tuple_bytes());
    XorBytes(tuple + runs.offset(), bytes.data(), bytes.size());
  }
}

void PutImage(const SlotChange& change, Image image, const PageSpace& pages, PageSpace::Latched& page) {
  ASSERT(FaultOf(change, pages) == nullptr && change.Has(format::kChangeImages));
  const bool is_after = image == Image::kAfter;
  const PageSpace::Place at{change.page, change.slot};
  Row* const row = pages.RowAt(at);
  if (change.Has(format::kChangePresence)) {
    const bool present = is_after != change.Has(format::kChangeErases);
    page.SetPresent(at.slot, present);
    row->key = present ? change.key : 0;
  }
  std::memcpy(pages.TupleOf(row), (is_after ? change.after() : change.before()).data(), pages.tuple_bytes());
}

}  // namespace dbx
