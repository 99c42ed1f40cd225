// The second pass of DL2P over one differential log, the baseline with two (Lee, Kim, Cha, ICDE 2001, section 5):
// forward from the BEGIN of the backup's checkpoint on, where the backup has all changes below, it redoes each change
// and each compensation that the backup lacks, also those of losers, which the pass backward has undone
// (backward_pass.h).
//
// Passes over different logs run side by side, and beside the load of the backup, as XOR commutes.
//
// Threads: a pass belongs to one thread.
#pragma once

#include <cstdint>

#include "logging/differential/backward_pass.h"
#include "logging/differential/change_player.h"
#include "logging/differential/forward_reader.h"
#include "storage/database.h"

namespace dbx {

class TwoPassRedo {
 public:
  // `backward` has passed over the log.
  TwoPassRedo(const BackwardPass& backward, const Database& database, bool read_ahead)
      : point_(backward.point()),
        reader_(backward.source(), backward.Starts(), {point_.begin, backward.end()}, read_ahead),
        player_(backward.source(), database) {}

  // Throws Error.
  void Run();

  const ChangePlayer& player() const { return player_; }
  // Spent in waiting for the log.
  uint64_t read_ticks() const { return reader_.read_ticks(); }

 private:
  const RestartPoint point_;
  ForwardReader reader_;
  ChangePlayer player_;
};

}  // namespace dbx
