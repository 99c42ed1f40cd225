// The reference recovery of a run that began with a backup of its own (differential logging): the state that its
// anchored backup and the changes in its logs give. Its own parsers, written from logging/README.md; forward and by
// attempts, where the engine goes backward and keeps tables of transactions.
//
// Each log is cut into attempts to run a transaction: a change that is the FIRST begins one, its COMMIT or ABORT ends
// it, and so does the end of the log. All records of an attempt are in one log; a later attempt may have the same id.
// A winner is an attempt with a COMMIT whose LSN vector lies within the logs (Recover finds these), anything else is a
// loser. For the anchored backup of number g, the final image of a slot is its image in the backup, XOR
//
//   every change of a winner with a number >= g, and
//   every change and every compensation of a loser with a number < g, unless the loser ended with an ABORT that has its
//   place below BEGIN(g).
//
// Why that is exact. A page has number g from the moment at which checkpoint g, under the page's latch, copies it or
// finds it clean, and a change reads the number under the latch under which it is made. So a change or a compensation
// is in the backup if and only if its number is below g, whatever its place in the log. Everything in the backup is in
// the logs: a place is reserved before its change is made, hence below END(g), and the anchor names only what followed
// durable ENDs. What is left are the undos that leave no record, of aborts that found no checkpoint running:
//
//   - Such an abort reserves its ABORT before it looks at the checkpoint's flag, and the flag is set before BEGIN(g) is
//     reserved. If ABORT lies below BEGIN(g), the checkpointer waited for that place to be filled before it touched a
//     page, and it is filled when all is undone: changes and undos are in the backup, and cancel out. Nothing is to do.
//   - If ABORT lies above BEGIN(g), or is not there at all, the flag was found reset after BEGIN(g), so all pages had
//     been copied: no undo is in the backup, and the changes with a number < g are still to be undone.
//   - An abort that found the flag set has a compensation for each change, which is in the backup or not by its own
//     number: XOR of those below g undoes exactly what the backup has. That holds if the crash cut the compensations
//     off after any of them, as the others were not made before they had places. If ABORT lies below BEGIN(g), so do
//     all the compensations, and the rule and its exception agree: all numbers are below g.
//   - A transaction with a COMMIT that is not a winner, as another log lost what it depends on, never undid anything.
//   - In a log that was truncated below what g needs, attempts may lack their first records. All of them ended below
//     BEGIN(g), committed or undone: nothing of them is to do.
//   - With g = 0 the backup is the initial state: no number is below 0, and only winners count.
//
// The baselines always log compensations, as an abort that found the flag set does: the same rule holds. The records of
// the physical one hold both images, whose XOR is the difference that the rule combines: no order of transactions, no
// stamp and no undo is needed here, while the engine puts images in the order of stamps.
//
// What a winner's changes stood on is there: its LSN vector covers every COMMIT whose changes it overwrote, a loser's
// changes are undone before another attempt may change the slot, and a slot is reused only when its deleter is durable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "system/reference/reference_run.h"

namespace dbx::reference {

// The pages of a table: packed images (presence bits in whole words of 8 bytes; then for each slot its key and its
// tuple, padded with zeros to whole words), as they are in a backup.
struct TablePages {
  uint32_t backup_pages = 0;  // pages from here on are not in the backup
  uint32_t rows_per_page = 0;
  uint32_t tuple_bytes = 0;
  std::map<uint32_t, std::vector<std::byte>> images;

  size_t BitsBytes() const { return (rows_per_page + 63) / 64 * 8; }
  size_t SlotBytes() const { return 8 + (tuple_bytes + 7) / 8 * 8; }
  size_t ImageBytes() const { return BitsBytes() + rows_per_page * SlotBytes(); }
  bool IsPresent(uint32_t page, uint32_t slot) const {
    return (std::to_integer<unsigned>(images.at(page)[slot / 8]) >> slot % 8 & 1) != 0;
  }
  // The key of a slot, and behind it its tuple.
  Bytes Slot(uint32_t page, uint32_t slot) const {
    return Bytes(images.at(page)).subspan(BitsBytes() + slot * SlotBytes(), SlotBytes());
  }
};

// The final images of all pages, those of `set.order` redone and all others undone. Throws Error (kCorrupt, kMismatch):
// for files that are not as they were written; and for records that no engine writes, at the change, COMMIT, ABORT,
// BEGIN or END that makes no sense.
std::vector<TablePages> ReadPages(const RunImage& run, const ReferenceLogs& logs, const RecoveredSet& set);

// The same, and puts the rows that are present into a database without rows. Throws Error for slots that are free and
// not zero, and for a key that is there twice.
void ReplayPages(const RunImage& run, const ReferenceLogs& logs, const RecoveredSet& set, Database& database);

}  // namespace dbx::reference
