// Records of a differential log (Lee, Kim, Cha, ICDE 2001, section 3): changes of slots, the ends of the transactions
// that made them, and the begins and ends of fuzzy checkpoints.
//
// Only a COMMIT is a transaction to readers that do not know the scheme; changes and ABORTs name transactions whose ids
// must not be used again.
//
// Nothing that is decoded here is trusted: the bytes come from a file. What only the database knows, which tables there
// are and how large their pages and tuples, is checked where a change is applied (differential/slot_change.h).
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"
#include "logging/format.h"
#include "logging/records/record_type.h"

namespace dbx {

// A change of one slot: the XOR of its images before and after, or both of them.
struct SlotChange {
  TxnId txn{};
  TableId table{};
  uint32_t page = 0;
  uint32_t slot = 0;
  uint32_t number = 0;  // the change is in backup g if and only if number < g
  uint16_t flags = 0;   // format::kChange...
  Key key = 0;          // XOR; 0 unless kChangePresence
  // XOR of the tuples, or its runs if kChangeRuns, or both tuples if kChangeImages, with the padding that follows; it
  // points into the record.
  std::span<const std::byte> image{};

  bool Has(uint16_t flag) const { return (flags & flag) != 0; }
  // If kChangeImages.
  std::span<const std::byte> before() const { return image.first(image.size() / 2); }
  std::span<const std::byte> after() const { return image.subspan(image.size() / 2); }
};

// Why the record is no well-formed change, as a constant string; nullptr: it is, and `to` is filled in.
const char* DecodeChange(const format::RecordHeader& header, std::span<const std::byte> body, SlotChange& to);

// Of a COMMIT or an ABORT that has kEndStamped, whose shape was checked.
uint64_t StampOfEnd(std::span<const std::byte> body);

// Goes through the runs of an image, checking every bound.
class ChangeRuns {
 public:
  static constexpr size_t kWordBytes = 4;

  explicit ChangeRuns(std::span<const std::byte> image) : left_(image) {}

  // The next run, which changes the tuple from `offset` on; false at the end, or at a fault.
  bool Next();
  size_t offset() const { return offset_; }
  // Whole words: those behind the end of the tuple are the padding of its last word.
  std::span<const std::byte> bytes() const { return bytes_; }
  // A constant string, or nullptr.
  const char* fault() const { return fault_; }

 private:
  bool End(const char* fault);

  std::span<const std::byte> left_;
  uint32_t least_word_ = 0;  // at which the next run may begin
  size_t offset_ = 0;
  std::span<const std::byte> bytes_;
  const char* fault_ = nullptr;
};

namespace records {

extern const RecordType kChange;
extern const RecordType kCommit;
extern const RecordType kAbort;
extern const RecordType kCheckpointBegin;
extern const RecordType kCheckpointEnd;

}  // namespace records
}  // namespace dbx
