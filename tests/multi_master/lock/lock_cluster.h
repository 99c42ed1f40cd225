// Masters' page locks and the lock process, joined by queues, in one thread: a seed decides every step. Transactions
// lock rows, change pages, split them; messages wait in their links; logs are flushed now and then; masters die.
//
// Beside it an oracle that knows all. It reports two conflicting holders of a page or of a row, a page fetched at
// another version than the newest or before that is durable, a row lock that followed on another one whose END is not
// durable or that the clock of the next owner's master has not been told of, and runs that do not end.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "multi_master/lock/global_locks.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/vs_clock.h"

namespace dbx::mm {

struct ClusterOptions {
  uint32_t masters = 3;
  uint32_t pages = 2;
  uint32_t slots = 3;  // transactions of a master at a time
  uint32_t steps = 3000;
  bool overtakes = false;  // messages of one link do
  bool splits = true;
  bool dies = false;  // a master does
};

class LockCluster : public GlobalLocks::Link {
 public:
  static constexpr uint32_t kKeysOfPage = 4;
  static constexpr uint32_t kPagesMax = 10;

  LockCluster(uint64_t seed, const ClusterOptions& options);
  ~LockCluster() override;

  void Run();
  // Lets all transactions end, tells all ends, takes all pages back, and looks for what is left.
  void Finish();

  void Send(MasterId to, MessageType type, std::vector<std::byte> body) override;

  uint64_t commits = 0;
  uint64_t aborts = 0;
  uint64_t row_waits = 0;
  uint64_t remote_handovers = 0;  // of rows between masters
  uint64_t victims = 0;
  uint64_t undone = 0;
  uint64_t splits = 0;

 private:
  struct Message {
    MessageType type;
    std::vector<std::byte> body;
  };
  struct Record {
    enum class Kind { kWrite, kSplit, kEnd };
    Kind kind;
    VsTime time;
    PageId page;
    Key key;
    PageId right;
    TxnName txn;
  };
  struct Node;
  struct Actor;
  struct PageTruth {
    Key low;
    Key end;  // behind its last key
    std::vector<PageLsn> versions;
  };
  struct PastLock {
    RowLock lock;
    EndPlace end;
  };

  // ---- steps ----
  bool StepAny();
  void Step(Actor& actor);
  void Begin(Actor& actor);
  void LockNextRow(Actor& actor);
  void OnPinned(Actor& actor);
  void Split(Actor& actor);
  void End(Actor& actor, bool commit);
  bool Deliver(std::deque<Message>& link, auto&& receive);
  void Tell(Node& node);
  void UndoOne();
  void Kill(Node& node);
  void RecoverDead();

  // ---- the oracle ----
  void Write(Actor& actor, Key key);
  void OnGranted(const Actor& actor, const RowLock& lock);
  void OnEnded(const TxnName& txn, EndPlace end);
  void CheckHolders();
  PageId PageOfKey(Key key) const;
  Node& RandomLiveNode();

  Random random_;
  const ClusterOptions options_;
  GlobalLocks global_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::map<PageId, PageTruth> pages_;
  std::vector<RowLock> held_;
  std::vector<PastLock> past_;
  std::optional<DeadMaster> dead_;  // its lease is over
  std::vector<TxnName> to_undo_;
  bool has_died_ = false;
  bool begins_ = true;
  uint64_t now_ = 0;
  uint64_t last_page_;
};

}  // namespace dbx::mm
