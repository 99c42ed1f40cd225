// Plays the changes of one log into the pages of a database, each under its page's latch, so that passes over different
// logs and the load of the backup may run beside it.
//
// A record of the log may name a page behind those that the backup counts, which was added later. The page space grows
// up to it when a change is played there, which is noted: pages between that nothing was played to need not be touched.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/slot_change.h"
#include "logging/format.h"
#include "logging/log_reader.h"
#include "logging/records/differential_records.h"
#include "storage/database.h"

namespace dbx {

class ChangePlayer {
 public:
  // Records ahead whose slots are worth a prefetch.
  static constexpr size_t kAhead = 8;

  // The log is `source`.
  ChangePlayer(const LogSource& source, const Database& database);

  // The change of a record of the log. Throws Error: kCorrupt if it is none that fits a table, kNoSpace if there is no
  // memory for its page.
  SlotChange Decode(const format::RecordHeader& header, std::span<const std::byte> body) const;
  // Combines the slot with a change that Decode has returned, by XOR; or puts one of its images there.
  void Play(const SlotChange& change);
  void Play(const SlotChange& change, Image image);
  // Loads the slot into the caches, if the record is a change.
  void Prefetch(const format::RecordHeader& header, std::span<const std::byte> body) const;

  // Whether a change was played to this page.
  bool Changed(TableId table, uint32_t page) const {
    const std::vector<bool>& changed = changed_[table.value()];
    return page < changed.size() && changed[page];
  }

 private:
  // That of the change, which is there and noted afterwards.
  PageSpace& MakePage(const SlotChange& change);

  static constexpr size_t kPrefetchedBytesMax = 1024;

  const LogSource source_;
  const Database& database_;
  std::vector<std::vector<bool>> changed_;  // by table, by page
};

}  // namespace dbx
