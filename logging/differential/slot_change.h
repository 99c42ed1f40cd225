// A change of a slot (differential logging, Lee, Kim, Cha, ICDE 2001, section 2): the XOR of its images before and
// after.
//
// XOR is commutative and associative, so changes of one slot are redone and undone in any order; it is not idempotent,
// so each is applied exactly once. The image of a slot is its key and tuple, and zeros while it is absent
// (page_space.h): whatever is left in a free slot was applied once too often, or once too rarely.
//
// An image is logged whole, or as the runs of words that changed (format::ChangeRun), where that is shorter.
//
// The baseline PL2P logs both images, and puts one of them in the slot's place.
//
// Threads: ApplyChange and PutImage by the thread that holds the page's latch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "logging/differential_methods.h"
#include "logging/format.h"
#include "logging/records/differential_records.h"
#include "storage/database.h"
#include "storage/heap/page_space.h"
#include "storage/row.h"

namespace dbx {

// The bytes of a record with the whole image of a tuple, or with both; of a record with runs at most as many.
constexpr size_t ChangeBytes(uint32_t tuple_bytes, bool presence, DiffMethod method) {
  return sizeof(format::RecordHeader) + sizeof(format::ChangeBody) + (presence ? sizeof(Key) : 0) +
         RoundedUpToWords(tuple_bytes) * (method == DiffMethod::kPl2p ? 2 : 1);
}

// Writes the runs of `delta`, the XOR of two tuples, to `to`, which has room for the tuple in whole words of 8 bytes.
// Returns the bytes, 0 if nothing changed; nothing if runs, filled up to whole words, are not shorter than the tuple.
std::optional<size_t> EncodeRuns(std::span<const std::byte> delta, std::byte* to);

// Why the change does not fit a table of the paged database, whatever its page, as a constant string; or nullptr.
const char* FaultOf(const SlotChange& change, const Database& database);
// The same of its slot and image alone.
const char* FaultOf(const SlotChange& change, const PageSpace& pages);

// Combines the slot with the change by XOR: key, tuple, and the presence bit. `page` holds the latch of change.page;
// the change fits, and has no kChangeImages.
void ApplyChange(const SlotChange& change, const PageSpace& pages, PageSpace::Latched& page);
// The same of a change that has kChangeImages: the slot becomes as it was before the change, or after it.
enum class Image : uint8_t { kBefore, kAfter };
void PutImage(const SlotChange& change, Image image, const PageSpace& pages, PageSpace::Latched& page);

}  // namespace dbx
