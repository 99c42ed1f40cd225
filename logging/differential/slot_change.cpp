#include "logging/differential/slot_change.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/xor_bytes.h"

namespace dbx {
namespace {

constexpr size_t kWordBytes = ChangeRuns::kWordBytes;

// The words of a tuple, the last of which may be cut off.
class Words {
 public:
  explicit Words(std::span<const std::byte> tuple) : tuple_(tuple) {}

  size_t count() const { return (tuple_.size() + kWordBytes - 1) / kWordBytes; }
  bool IsZero(size_t word) const {
    uint32_t value = 0;
    std::memcpy(&value, tuple_.data() + word * kWordBytes, BytesOf(word, 1));
    return value == 0;
  }
  // The first word from `word` on that is not zero; count() if there is none.
  size_t SkipZeros(size_t word) const {
    uint64_t pair;
    for (; (word + 2) * kWordBytes <= tuple_.size(); word += 2) {
      std::memcpy(&pair, tuple_.data() + word * kWordBytes, sizeof pair);
      if (pair != 0) break;
    }
    while (word < count() && IsZero(word)) ++word;
    return word;
  }
  // Up to where a run goes that begins at `word`: a gap of one word costs no more than a second run.
  size_t EndOfRun(size_t word) const {
    for (size_t end = word + 1;; ++end) {
      if (end >= count()) return end;
      if (!IsZero(end)) continue;
      if (end + 1 >= count() || IsZero(end + 1)) return end;
    }
  }
  // Fills up the last word with zeros.
  void Copy(size_t word, size_t words, std::byte* to) const {
    const size_t bytes = BytesOf(word, words);
    std::memcpy(to, tuple_.data() + word * kWordBytes, bytes);
    std::memset(to + bytes, 0, words * kWordBytes - bytes);
  }

 private:
  size_t BytesOf(size_t word, size_t words) const {
    return std::min(words * kWordBytes, tuple_.size() - word * kWordBytes);
  }

  std::span<const std::byte> tuple_;
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
  const Words words(delta);
  if (words.count() > size_t{UINT16_MAX} + 1) return std::nullopt;
  const size_t limit = RoundedUpToWords(delta.size());
  size_t used = 0;
  for (size_t word = words.SkipZeros(0); word < words.count();) {
    const size_t end = words.EndOfRun(word);
    const size_t bytes = sizeof(format::ChangeRun) + (end - word) * kWordBytes;
    if (RoundedUpToWords(used + bytes) >= limit) return std::nullopt;
    const format::ChangeRun run{static_cast<uint16_t>(word), static_cast<uint16_t>(end - word)};
    std::memcpy(to + used, &run, sizeof run);
    words.Copy(word, end - word, to + used + sizeof run);
    used += bytes;
    word = words.SkipZeros(end);
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
