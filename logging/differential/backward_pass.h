// The pass of recovery over one differential log that goes backward (Lee, Kim, Cha, ICDE 2001, section 3.4 and Alg. 3;
// transaction_table.h decides). With DL1P it is all: changes of winners that the backup lacks are redone, and changes
// of others that it has are undone, by the same operation. With DL2P it undoes what losers have left, once all is
// redone; with PL2P it puts the images back that were there before losers' changes that the backup has. It ends below
// the BEGIN of the backup's checkpoint once no transaction is left whose changes there are to be undone, and at
// `needed` at last; with DL2P and PL2P where the first loser begins.
//
// Passes over different logs run side by side, in any order, and beside the load of the backup: XOR commutes, and each
// change is applied under its page's latch. Images do not commute: with PL2P the backup is there before. No two losers
// have changes of the same slot in the backup, as the end of the first one is durable if the change of the second is.
//
// Threads: a pass belongs to one thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/types.h"
#include "logging/differential/backward_reader.h"
#include "logging/differential/change_player.h"
#include "logging/differential/forward_pass.h"
#include "logging/differential/transaction_table.h"
#include "storage/database.h"

namespace dbx {

class BackwardPass {
 public:
  // `forward` has judged its log; what it has kept is used up.
  BackwardPass(ForwardPass& forward, const RestartPoint& point, const Database& database, bool read_ahead);

  // Throws Error.
  void Run();

  const ChangePlayer& player() const { return player_; }
  // Spent in waiting for the log.
  uint64_t read_ticks() const { return reader_.read_ticks(); }

 private:
  static Lsn LowestOf(const ForwardPass& forward, const RestartPoint& point);
  bool IsInBackup(uint32_t number) const { return number < point_.number; }
  void Visit(const format::RecordHeader& header, std::span<const std::byte> body);
  void VisitEnd(std::span<const std::byte> body);
  void VisitChange(const format::RecordHeader& header, std::span<const std::byte> body);
  void PrefetchAhead() const;

  const ForwardPass& forward_;
  const RestartPoint point_;
  const Lsn low_;  // nothing below is to be applied
  BackwardReader reader_;
  TransactionTable transactions_;
  ChangePlayer player_;
};

}  // namespace dbx
