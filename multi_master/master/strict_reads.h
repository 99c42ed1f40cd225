// Strict reads: a transaction that begins after another one was acknowledged, on whichever master, sees it (Taurus MM,
// section 5.1.4).
//
// A master asks all others how far their logs are durable, one round at a time. A transaction that comes while a round
// is under way waits for the next one's answers, as those under way may be older than what it must see; the next round
// begins when all answers of the last one are there, and only if some transaction waits for it. Then the transaction
// waits until this master has applied all logs up to the answers. What was acknowledged lies below them: it is durable,
// and an applied flush is at the end of what was durable.
//
// The answers move neither the clock nor `applied`: they say how far logs go, not that they have been applied here.
//
// A question or an answer may be lost with a link. Questions without an answer are sent again while a transaction
// waits.
//
// Threads: any.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/host.h"
#include "multi_master/master/master_log.h"
#include "multi_master/network.h"
#include "multi_master/vs_clock.h"
#include "multi_master/wire.h"

namespace dbx::mm {

// Messages between masters, numbers 400-499.

// How far is your log durable?
struct StrictQuestion {
  static constexpr MessageType kType{400};
  uint64_t round = 0;

  void Encode(WireWriter& to) const { to.Put(round); }
  static StrictQuestion Decode(WireReader& from) { return {from.Get<uint64_t>()}; }
};

// The time of the last LFB of the sender's log that is durable.
struct StrictAnswer {
  static constexpr MessageType kType{401};
  uint64_t round = 0;
  VsTime durable;

  void Encode(WireWriter& to) const {
    to.Put(round);
    to.Put(durable);
  }
  static StrictAnswer Decode(WireReader& from) {
    StrictAnswer answer;
    answer.round = from.Get<uint64_t>();
    answer.durable = from.GetTime();
    return answer;
  }
};

class StrictReads {
 public:
  static constexpr std::chrono::milliseconds kAskAgain{100};

  // Of a cluster with masters 0 to masters - 1. `ask` sends; it never waits for a peer.
  using Ask = std::function<void(MasterId to, const StrictQuestion& question)>;
  StrictReads(MasterId self, uint32_t masters, const MasterLog& log, Ask ask);

  // Until this master has applied what was durable anywhere when it was called. Throws Error once stopped.
  void Await();

  // Of another master. False: it is not one of the cluster; nothing has changed.
  bool OnAnswer(MasterId from, const StrictAnswer& answer);
  // A flush was applied here.
  void OnApplied();
  // It is dead, and its log ends with the LFB of this time: it is asked no more.
  void OnMasterDead(MasterId master, VsTime log_end);
  void Stop();

  uint64_t rounds() const;

 private:
  // Under the latch.
  void BeginRound();
  void AskRest();
  // Rounds that all have answered end, and the next one begins if a transaction waits for it.
  void EndRounds();

  const MasterId self_;
  const uint32_t masters_;
  const MasterLog& log_;
  const Ask ask_;
  mutable Mutex latch_;
  ConditionVariable changed_;
  uint64_t begun_ = 0;                          // rounds
  uint64_t completed_ = 0;                      // rounds; begun_ or begun_ - 1
  uint64_t wanted_ = 0;                         // the last round that a transaction waits for
  std::array<bool, kMastersMax> is_member_{};   // other masters that are not dead
  std::array<bool, kMastersMax> is_awaited_{};  // have not answered in the round under way
  VsVector answers_;                            // the largest, of all rounds
  VsVector bound_;                              // of the rounds that are complete
  bool stopped_ = false;
};

}  // namespace dbx::mm
