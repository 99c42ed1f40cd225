// The second pass of recovery over one differential log, backward: changes of winners that the backup lacks are redone,
// and changes of others that it has are undone, by the same operation (Lee, Kim, Cha, ICDE 2001, section 3.4 and Alg.
// 3; transaction_table.h decides). It ends below the BEGIN of the backup's checkpoint once no transaction is left whose
// changes there are to be undone, and at `needed` at last.
//
// Passes over different logs run side by side, in any order, and beside the load of the backup: XOR commutes, and each
// change is applied under its page's latch.
//
// A record of the log may name a page behind those that the backup counts, which was added later. The page space grows
// up to it when a change is applied there, which is noted: pages between that nothing was applied to need not be
// touched.
//
// Threads: a pass belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/backward_reader.h"
#include "logging/differential/forward_pass.h"
#include "logging/differential/transaction_table.h"
#include "logging/records/differential_records.h"
#include "storage/database.h"

namespace dbx {

class BackwardPass {
 public:
  // `forward` has judged its log; what it has kept is used up.
  BackwardPass(ForwardPass& forward, const RestartPoint& point, const Database& database, bool read_ahead);

  // Throws Error.
  void Run();

  // After Run. Whether a change was applied to this page.
  bool Changed(TableId table, uint32_t page) const {
    const std::vector<bool>& changed = changed_[table.value()];
    return page < changed.size() && changed[page];
  }
  // Spent in waiting for the log.
  uint64_t read_ticks() const { return reader_.read_ticks(); }

 private:
  // Records ahead whose slots are prefetched.
  static constexpr size_t kAhead = 8;
  static constexpr size_t kPrefetchedBytesMax = 1024;

  bool IsInBackup(uint32_t number) const { return number < point_.number; }
  void Visit(const format::RecordHeader& header, std::span<const std::byte> body);
  void VisitEnd(std::span<const std::byte> body);
  void VisitChange(const format::RecordHeader& header, std::span<const std::byte> body);
  PageSpace& PagesOf(const SlotChange& change, Lsn at) const;
  void PrefetchAhead() const;
  [[noreturn]] void Refuse(Lsn at, const char* why) const { ThrowDamaged(source_, at, why); }

  const ForwardPass& forward_;
  const LogSource& source_;
  const RestartPoint point_;
  const Database& database_;
  BackwardReader reader_;
  TransactionTable transactions_;
  std::vector<std::vector<bool>> changed_;  // by table, by page
};

}  // namespace dbx
