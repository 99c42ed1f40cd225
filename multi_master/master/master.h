// A master: transactions over the pages that it has locked, with a log of its own (Taurus MM, section 5).
//
//   workers      MmTransaction over its trees
//   network      grants and reclaims from the lock process, pages from Page Stores
//   releases     page locks that must go: flush, then send
//   applier      the other masters' logs, flush by flush, into pages of the buffer too
//   housekeeping tells the lock process of ended transactions, once their ENDs are durable, and of its least TV; asks
//                for its lease, and ends the use of all locks when that is over
//   undo         the losers of a dead master that the lock process gives to this one
//
// The first error of its threads ends all use of its locks: threads that wait return with an Error.
//
// Threads: its own five, and the workers.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/host.h"
#include "multi_master/lock/kept_row_locks.h"
#include "multi_master/lock/lease.h"
#include "multi_master/lock/local_locks.h"
#include "multi_master/master/applier.h"
#include "multi_master/master/master_log.h"
#include "multi_master/master/master_pages.h"
#include "multi_master/master/mm_transaction.h"
#include "multi_master/master/read_views.h"
#include "multi_master/master/strict_reads.h"
#include "multi_master/network.h"
#include "multi_master/recovery/loser_undo.h"
#include "multi_master/store/store_messages.h"
#include "storage/database.h"

namespace dbx::mm {

struct MasterOptions {
  MasterId self;
  ClusterEpoch epoch;
  uint32_t masters = 1;  // of the cluster
  size_t frames_max = 4096;
  size_t page_bytes_max = kPageBytes;                  // a page is not filled further
  uint32_t page_stores = 1;                            // each has all pages
  uint64_t page_store_patience_nanos = 1'000'000'000;  // without an answer; then another one is asked
  Isolation isolation = Isolation::kSerializable;
  bool strict_reads = false;  // of kReadCommitted
  uint64_t housekeeping_nanos = 10'000'000;
  LeaseTerms lease;
  // Called with the first error of its threads, by the one that met it.
  std::function<void(std::exception_ptr)> failed = [](std::exception_ptr) {};
  KeptRowLocks* kept_row_locks = nullptr;  // counts the row locks of transactions, if given
};

class Master final : private LocalLocks::Owner, private PageFetcher, public Network::Receiver {
 public:
  // `tables` names the database's tables; their rows are not used. All outlive this.
  Master(const MasterOptions& options, const Database& tables, Network& network, MasterLog& log);
  ~Master() override;

  // Its threads run. It receives what its process gets from other processes than Log Stores.
  void Start();
  // No worker runs any more, or those that wait end with an Error.
  void Stop();
  // As after an error of its threads.
  void Fail(std::exception_ptr error);
  // Tells the lock process that it ends in order: its log is durable, and no thread uses it any more. Waits for the
  // answer, a second at most. With an active transaction, or after an error, it does not: it is to be recovered.
  void Leave();

  MmTransaction NewTransaction() { return NewTransaction(options_.isolation); }
  MmTransaction NewTransaction(Isolation isolation);
  Trees& trees() { return trees_; }
  LocalLocks& locks() { return locks_; }
  MasterLog& log() { return log_; }
  Applier& applier() { return applier_; }
  MasterPages& pages() { return pages_; }
  const MasterPages& pages() const { return pages_; }
  const LoserUndo& undo() const { return undo_; }
  const ReadViews& views() const { return views_; }
  ReadViews& views() { return views_; }
  StrictReads& strict_reads() { return strict_; }

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;

 private:
  static constexpr NodeId kLocks{Role::kLocks, 0};

  class Splits final : public SplitListener {
   public:
    explicit Splits(LocalLocks& locks) : locks_(locks) {}
    void OnSplit(PageId left, PageId right, Key separator) override { locks_.SplitLocks(left, separator, right); }

   private:
    LocalLocks& locks_;
  };
  // A page that a thread waits for.
  struct Wanted {
    NodeId store;
    std::function<void()> ask;  // `store`
    std::optional<PageRead> answer;
  };

  void SendRequest(const PageRequest& request) override { Send(request); }
  void SendRelease(const PageRelease& release) override { Send(release); }
  void SendWaitReport(const WaitReport& report) override { Send(report); }
  void OnGrant(const PageLsn& lsn, const AfterList& after) override { log_.OnGrant(lsn, after); }
  void OnEndsTold(const AfterList& ends) override { log_.OnGrant({}, ends); }
  void FlushUntilDurable(VsTime time) override { log_.AwaitDurable(time); }
  void FetchPage(PageId page, const PageLsn& lsn) override { pages_.FetchPage(page, lsn); }
  void RequireLease() override;
  PageVersion Fetch(PageId page, const PageLsn& lsn) override;
  PageVersion FetchBelow(PageId page, const VsVector& tv) override;

  template <class Message>
  void Send(const Message& message, NodeId to = kLocks) {
    network_.Send(to, Message::kType, EncodeBody(message));
  }
  // Of the Page Store that this master reads from, or the next one where it is lost, or does not answer in time.
  template <class Request>
  PageRead Ask(Request request);
  NodeId PageStoreInUse() const { return {Role::kPageStore, page_store_}; }
  void LeavePageStore(NodeId store);
  bool OnPageRead(std::span<const std::byte> body);
  bool OnLeaseGrant(std::span<const std::byte> body);
  bool OnUndoLoser(std::span<const std::byte> body);
  void OnUndone(const EndedTxns& news);
  // A flush was applied.
  void OnApplied();
  void TellStrictReads(const EndedTxns& news);
  void AskForLease();
  bool OnMaster(MasterId from, MessageType type, std::span<const std::byte> body);
  void KeepHouse();
  void RunThread(std::function<void()> body);
  void TellNews();

  const MasterOptions options_;
  Network& network_;
  MasterLog& log_;
  LocalLocks locks_;
  MasterPages pages_;
  Splits splits_;
  Trees trees_;
  ReadViews views_;
  StrictReads strict_;
  Applier applier_;
  LoserUndo undo_;
  Lease lease_;

  Mutex latch_;  // of the following
  ConditionVariable changed_;
  std::unordered_map<uint64_t, Wanted*> wanted_;  // by request
  uint64_t last_request_ = 0;
  uint8_t page_store_;  // in use
  bool stopped_ = false;
  bool failed_ = false;

  // Of the housekeeping thread.
  static constexpr uint64_t kIntervalsOfAll = 50;
  uint64_t intervals_ = 0;
  VsVector told_least_;

  std::vector<Thread> threads_;
};

}  // namespace dbx::mm
