#include "multi_master/master/master.h"

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "multi_master/master/initial_pages.h"

namespace dbx::mm {

Master::Master(const MasterOptions& options, const Database& tables, Network& network, MasterLog& log)
    : options_(options),
      network_(network),
      log_(log),
      locks_(options.self, options.epoch, *this),
      pages_(options.self, options.epoch, options.frames_max, locks_, log, *this),
      splits_(locks_),
      views_(log),
      strict_(options.self, options.masters, log,
              [this](MasterId to, const StrictQuestion& question) {
                Send(question, {Role::kMaster, to.value()});
              }),
      applier_(options.self, log, locks_, pages_, [this] { OnApplied(); }),
      undo_(options.self, trees_, pages_, log, [this](const EndedTxns& news) { OnUndone(news); }),
      lease_(options.lease),
      page_store_(static_cast<uint8_t>(options.self.value() % options.page_stores)) {
  for (size_t i = 0; i < tables.table_count(); ++i) {
    const TableId table = Database::IdOf(i);
    trees_.push_back(std::make_unique<PagedTree>(pages_, TreeOf(table), RootOf(table), &splits_,
                                                 PagedTree::Options{options.page_bytes_max}));
    CHECK(tables.table(table).tuple_bytes() <= trees_.back()->image_bytes_max());
  }
}

Master::~Master() { Stop(); }

void Master::Start() {
  // Before any request for a page.
  AskForLease();
  RunThread([this] { locks_.RunReleases(); });
  RunThread([this] { applier_.Run(); });
  RunThread([this] { KeepHouse(); });
  RunThread([this] { undo_.Run(); });
}

void Master::RunThread(std::function<void()> body) {
  threads_.emplace_back([this, body = std::move(body)] {
    try {
      body();
    } catch (...) {
      Fail(std::current_exception());
    }
  });
}

void Master::Fail(std::exception_ptr error) {
  {
    const std::lock_guard latch(latch_);
    if (stopped_ || std::exchange(failed_, true)) return;
    changed_.notify_all();
  }
  locks_.Stop();
  strict_.Stop();
  options_.failed(std::move(error));
}

void Master::Stop() {
  {
    const std::lock_guard latch(latch_);
    if (std::exchange(stopped_, true)) return;
    changed_.notify_all();
  }
  locks_.Stop();
  strict_.Stop();
  applier_.Stop();
  undo_.Stop();
  threads_.clear();
}

void Master::Leave() {
  constexpr std::chrono::seconds kAnswer{1};
  std::unique_lock latch(latch_);
  if (failed_ || locks_.txns().active() > 0) return;
  Send(lease_.Leave(host::MonotonicNanos()));
  changed_.wait_for(latch, kAnswer, [this] { return lease_.HasLeft() || failed_; });
}

MmTransaction Master::NewTransaction(Isolation isolation) {
  std::unique_ptr<VersionedReader> versions;
  if (isolation == Isolation::kReadCommitted) {
    versions =
        std::make_unique<VersionedReader>(trees_, pages_, locks_, views_, options_.strict_reads ? &strict_ : nullptr);
  }
  return MmTransaction(trees_, locks_, log_, std::move(versions), options_.kept_row_locks);
}

bool Master::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (from.role == Role::kPageStore) return type == PageRead::kType && OnPageRead(body);
  if (from.role == Role::kMaster) return OnMaster(MasterId(from.index), type, body);
  if (from != kLocks) return false;
  if (type == LeaseGrant::kType) return OnLeaseGrant(body);
  if (type == UndoLoser::kType) return OnUndoLoser(body);
  if (!locks_.On(type, body)) return false;
  if (type == EndedTxns::kType) TellStrictReads(*DecodeBody<EndedTxns>(body));
  if (type == LeastTv::kType) {
    for (uint8_t i = 0; i < options_.page_stores; ++i) {
      Send(FoldPages{DecodeBody<LeastTv>(body)->tv}, {Role::kPageStore, i});
    }
  }
  return true;
}

void Master::TellStrictReads(const EndedTxns& news) {
  if (news.low != EndedTxns::kAll) return;
  strict_.OnMasterDead(news.master, news.low_after.of(news.master));
}

bool Master::OnMaster(MasterId from, MessageType type, std::span<const std::byte> body) {
  if (type == StrictQuestion::kType) {
    const auto question = DecodeBody<StrictQuestion>(body);
    if (question) Send(StrictAnswer{question->round, log_.durable_until()}, {Role::kMaster, from.value()});
    return question.has_value();
  }
  const auto answer = type == StrictAnswer::kType ? DecodeBody<StrictAnswer>(body) : std::nullopt;
  return answer && strict_.OnAnswer(from, *answer);
}

bool Master::OnPageRead(std::span<const std::byte> body) {
  auto read = DecodeBody<PageRead>(body);
  if (!read) return false;
  const std::lock_guard latch(latch_);
  const auto found = wanted_.find(read->request.value());
  // A request that was sent again after a broken link may have two answers.
  if (found == wanted_.end()) return true;
  found->second->answer = std::move(*read);
  changed_.notify_all();
  return true;
}

bool Master::OnLeaseGrant(std::span<const std::byte> body) {
  const auto grant = DecodeBody<LeaseGrant>(body);
  if (!grant) return false;
  lease_.OnGrant(*grant);
  if (!lease_.HasLeft()) return true;
  const std::lock_guard latch(latch_);
  changed_.notify_all();
  return true;
}

bool Master::OnUndoLoser(std::span<const std::byte> body) {
  auto undo = DecodeBody<UndoLoser>(body);
  if (undo) undo_.Offer(std::move(*undo));
  return undo.has_value();
}

void Master::OnUndone(const EndedTxns& news) {
  locks_.Learn(news);
  Send(news);
}

void Master::OnApplied() {
  strict_.OnApplied();
  undo_.OnApplied();
}

void Master::RequireLease() {
  if (!lease_.IsOver(host::MonotonicNanos())) return;
  throw Error(ExitStatus::kIo, "the lease of master " + std::to_string(options_.self.value()) + " is over");
}

void Master::AskForLease() {
  if (const auto request = lease_.NextRequest(host::MonotonicNanos())) Send(*request);
}

void Master::OnLinkDown(NodeId peer) {
  if (peer.role != Role::kPageStore) return;
  const std::lock_guard latch(latch_);
  LeavePageStore(peer);
  for (const auto& [request, wanted] : wanted_) {
    if (wanted->store != peer || wanted->answer) continue;
    wanted->store = PageStoreInUse();
    wanted->ask();
  }
}

// Another thread may have left it before.
void Master::LeavePageStore(NodeId store) {
  if (store == PageStoreInUse()) page_store_ = static_cast<uint8_t>((page_store_ + 1) % options_.page_stores);
}

template <class Request>
PageRead Master::Ask(Request request) {
  std::unique_lock latch(latch_);
  Wanted wanted{PageStoreInUse(), {}, {}};
  request.request = RequestId(++last_request_);
  wanted.ask = [&] { Send(request, wanted.store); };
  wanted_.emplace(last_request_, &wanted);
  wanted.ask();
  const auto is_over = [&] { return wanted.answer.has_value() || stopped_ || failed_; };
  const std::chrono::nanoseconds patience(options_.page_store_patience_nanos);
  while (!changed_.wait_for(latch, patience, is_over)) {
    if (options_.page_stores == 1) continue;
    LeavePageStore(wanted.store);
    wanted.store = PageStoreInUse();
    wanted.ask();
  }
  wanted_.erase(request.request.value());
  if (!wanted.answer) {
    throw Error(ExitStatus::kIo, "master " + std::to_string(options_.self.value()) + " has stopped");
  }
  return std::move(*wanted.answer);
}

PageVersion Master::Fetch(PageId page, const PageLsn& lsn) {
  PageRead read = Ask(ReadPageAt{{}, page, lsn});
  if (!read.page) {
    throw Error(ExitStatus::kCorrupt,
                "no Page Store has the version of page " + std::to_string(page.value()) + " that was granted");
  }
  return {std::move(read.page), read.newest};
}

PageVersion Master::FetchBelow(PageId page, const VsVector& tv) {
  PageRead read = Ask(ReadPageBelow{{}, page, tv});
  return {std::move(read.page), read.newest};
}

void Master::TellNews() {
  // Others may wait for ENDs of transactions whose locks have left this master; all else is told to be forgotten.
  const bool all = ++intervals_ % kIntervalsOfAll == 0;
  if (const auto news = locks_.txns().TakeNews(log_.durable_until(), /*only_if_left=*/!all)) {
    Send(*news);
    if (all) locks_.Learn(*news);
  }
  const VsVector least = views_.Least();
  if (!all || least == told_least_) return;
  told_least_ = least;
  Send(LeastTv{least});
}

void Master::KeepHouse() {
  std::unique_lock latch(latch_);
  while (!stopped_ && !failed_) {
    changed_.wait_for(latch, std::chrono::nanoseconds(options_.housekeeping_nanos),
                      [&] { return stopped_ || failed_; });
    latch.unlock();
    // First: what it sends below is still its to say.
    RequireLease();
    AskForLease();
    TellNews();
    latch.lock();
  }
}

}  // namespace dbx::mm
