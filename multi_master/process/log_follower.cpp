#include "multi_master/process/log_follower.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "multi_master/log/flush_buffer.h"

namespace dbx::mm {
namespace {

constexpr std::chrono::milliseconds kLook{20};

[[noreturn]] void Damaged(MasterId log, const LogRecord& record, const char* what) {
  throw Error(ExitStatus::kCorrupt, "the log of master " + std::to_string(log.value()) + " at " +
                                        std::to_string(record.lsn.value()) + ": " + what);
}

}  // namespace

FollowedFlush DecodeFlush(MasterId log, std::shared_ptr<const LfbGroup> group) {
  FollowedFlush flush{group->lfb, {}, {}, group};
  for (const LogRecord& record : group->records) {
    const std::span<const std::byte> body = group->BodyOf(record);
    if (record.kind == kEndKind) {
      const std::optional<EndRecord> end = DecodeEnd(body);
      if (!end) Damaged(log, record, "not the body of an END");
      flush.ends.push_back({end->txn, end->time, end->outcome, end->id});
    } else {
      const std::optional<PagesRecord> pages = DecodePagesRecord(body);
      if (!pages) Damaged(log, record, "not the body of a PAGES record");
      const size_t before = flush.changes.size();
      const bool is_whole = DecodePages(WireReader(pages->body).GetList(), flush.changes);
      if (!is_whole || flush.changes[before].lsn != PageLsn{log, pages->first}) {
        Damaged(log, record, "not the changes of a mini-transaction");
      }
    }
  }
  return flush;
}

LogFollower::LogFollower(Network& network, ClusterId cluster, const StoreSet& stores, uint32_t masters, Take take,
                         Fail fail, std::optional<MasterId> except)
    : take_(std::move(take)), fail_(std::move(fail)) {
  for (uint8_t i = 0; i < masters; ++i) {
    LfbReaderOptions options;
    options.log = MasterId(i);
    options.salt = SaltOf(cluster.value(), MasterId(i));
    options.set = stores;
    // All readers of one store would share the bandwidth of its line.
    options.first_store = i + network.self().index;
    readers_.push_back(options.log == except ? nullptr : std::make_unique<LfbReader>(network, options));
  }
}

void LogFollower::Start() {
  for (uint8_t i = 0; i < readers_.size(); ++i) {
    if (readers_[i] != nullptr) threads_.emplace_back([this, i] { Follow(MasterId(i)); });
  }
}

void LogFollower::Stop() {
  stopped_ = true;
  threads_.clear();
}

void LogFollower::Follow(MasterId log) {
  try {
    while (!stopped_.load()) {
      std::optional<LfbGroup> group = readers_[log.value()]->Next(kLook);
      if (group) take_(DecodeFlush(log, std::make_shared<const LfbGroup>(std::move(*group))));
    }
  } catch (...) {
    fail_(std::current_exception());
  }
}

bool LogFollower::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  const std::optional<LogMessage> message = DecodeLog(body);
  if (!message || message->log.value() >= readers_.size() || readers_[message->log.value()] == nullptr) return false;
  return readers_[message->log.value()]->OnMessage(from, type, body);
}

void LogFollower::OnLinkDown(NodeId peer) {
  for (auto& reader : readers_) {
    if (reader != nullptr) reader->OnLinkDown(peer);
  }
}

}  // namespace dbx::mm
