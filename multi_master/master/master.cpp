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
      applier_(options.self, log, locks_, pages_, [this] { strict_.OnApplied(); }) {
  for (size_t i = 0; i < tables.table_count(); ++i) {
    const TableId table = Database::IdOf(i);
    trees_.push_back(std::make_unique<PagedTree>(pages_, TreeOf(table), RootOf(table), &splits_));
    CHECK(tables.table(table).tuple_bytes() <= trees_.back()->image_bytes_max());
  }
}

Master::~Master() { Stop(); }

void Master::Start() {
  threads_.emplace_back([this] { locks_.RunReleases(); });
  threads_.emplace_back([this] { applier_.Run(); });
  threads_.emplace_back([this] { KeepHouse(); });
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
  threads_.clear();
}

MmTransaction Master::NewTransaction(Isolation isolation) {
  if (isolation == Isolation::kSerializable) return MmTransaction(trees_, locks_, log_, nullptr);
  return MmTransaction(
      trees_, locks_, log_,
      std::make_unique<VersionedReader>(trees_, pages_, locks_, views_, options_.strict_reads ? &strict_ : nullptr));
}

bool Master::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (from.role == Role::kPageStore) return type == PageRead::kType && OnPageRead(body);
  if (from.role == Role::kMaster) return OnMaster(MasterId(from.index), type, body);
  if (from != kLocks || !locks_.On(type, body)) return false;
  if (type == LeastTv::kType) Send(FoldPages{DecodeBody<LeastTv>(body)->tv}, options_.store_of(PageId(1)));
  return true;
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

void Master::OnLinkDown(NodeId peer) {
  const std::lock_guard latch(latch_);
  for (const auto& [request, wanted] : wanted_) {
    if (wanted->store == peer && !wanted->answer) wanted->ask();
  }
}

template <class Request>
PageRead Master::Ask(Request request) {
  Wanted wanted{options_.store_of(request.page), {}, {}};
  std::unique_lock latch(latch_);
  request.request = RequestId(++last_request_);
  wanted.ask = [&] { Send(request, wanted.store); };
  wanted_.emplace(last_request_, &wanted);
  wanted.ask();
  changed_.wait(latch, [&] { return wanted.answer.has_value() || stopped_; });
  wanted_.erase(request.request.value());
  if (!wanted.answer) {
    throw Error(ExitStatus::kIo, "master " + std::to_string(options_.self.value()) + " has stopped");
  }
  return std::move(*wanted.answer);
}

PageVersion Master::Fetch(PageId page, const PageLsn& lsn) {
  PageRead read = Ask(ReadPageAt{{}, page, lsn});
  if (!read.page) {
    throw Error(ExitStatus::kCorrupt, NameOf(options_.store_of(page)) + " does not have the version of page " +
                                          std::to_string(page.value()) + " that was granted");
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
  while (!stopped_) {
    changed_.wait_for(latch, std::chrono::nanoseconds(options_.housekeeping_nanos), [&] { return stopped_; });
    latch.unlock();
    TellNews();
    latch.lock();
  }
}

}  // namespace dbx::mm
