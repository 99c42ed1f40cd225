#include "multi_master/log/replicated_device.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "logging/format.h"

namespace dbx::mm {

ReplicatedDevice::ReplicatedDevice(Network& network, const ReplicatedOptions& options)
    : network_(network),
      path_("log of master " + std::to_string(options.log.value())),
      options_(options),
      end_(options.start),
      complete_(options.start) {
  for (const uint8_t store : options.set.stores) stores_[store].acked = stores_[store].sent = options.start;
  CHECK(stores_.size() == kLogStores);
}

Lsn ReplicatedDevice::LsnOf(uint64_t offset) const {
  CHECK(offset >= format::kStreamOffset);
  return options_.start + (offset - format::kStreamOffset);
}

void ReplicatedDevice::Open() {
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [store, state] : stores_) OpenAt(store, out);
  }
  Post(out);
}

void ReplicatedDevice::Reopen(uint8_t store) {
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    if (stores_.contains(store)) OpenAt(store, out);
  }
  Post(out);
}

void ReplicatedDevice::OpenAt(uint8_t store, Outgoing& out) {
  stores_[store].is_open = false;
  LogMessage message = Message();
  message.at = options_.start;
  out.push_back({store, {kLogOpen, EncodeLog(message)}});
}

void ReplicatedDevice::Post(const Outgoing& out) {
  for (const auto& [store, message] : out) network_.Send({Role::kLogStore, store}, message.first, message.second);
}

void ReplicatedDevice::SetStores(const StoreSet& set) {
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    CHECK(set.number > options_.set.number);
    options_.set = set;
    std::erase_if(stores_, [&](const auto& store) { return !set.Has(store.first); });
    for (const uint8_t store : set.stores) {
      if (!stores_.contains(store)) stores_[store].acked = stores_[store].sent = options_.start;
      OpenAt(store, out);
    }
  }
  Post(out);
}

void ReplicatedDevice::StartWrite(uint64_t offset, std::span<const std::byte> data) {
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    CHECK(LsnOf(offset) == end_ && data.size() % format::kBlockBytes == 0);
    chunks_.push_back({end_, {data.begin(), data.end()}});
    end_ += data.size();
    for (const auto& [store, state] : stores_) SendRest(store, out);
    DropChunks();
  }
  Post(out);
}

// What the store was not sent yet.
void ReplicatedDevice::SendRest(uint8_t store, Outgoing& out) {
  Store& state = stores_[store];
  if (!state.is_open || state.sent >= end_ || error_) return;
  const auto has_sent = [&](const Chunk& chunk) { return chunk.at + chunk.bytes.size() <= state.sent; };
  const auto first = std::partition_point(chunks_.begin(), chunks_.end(), has_sent);
  if (first == chunks_.end() || first->at > state.sent) {
    state.is_open = false;
    if (!std::exchange(state.is_behind, true) && behind_) behind_(store);
    return;
  }
  for (auto chunk = first; chunk != chunks_.end(); ++chunk) {
    // What it copied from another store may end within a chunk.
    const size_t skipped = state.sent > chunk->at ? state.sent - chunk->at : 0;
    const std::span<const std::byte> rest = std::span(chunk->bytes).subspan(skipped);
    LogMessage message = Message();
    message.at = chunk->at + skipped;
    message.complete = complete_;
    message.length = static_cast<uint32_t>(rest.size());
    message.bytes = Trimmed(rest);
    out.push_back({store, {kLogAppend, EncodeLog(message)}});
  }
  state.sent = end_;
}

void ReplicatedDevice::DropChunks() {
  Lsn least = end_;
  for (const auto& [store, state] : stores_) least = std::min(least, state.acked);
  const auto is_kept_too_long = [&](const Chunk& chunk) {
    const Lsn chunk_end = chunk.at + chunk.bytes.size();
    return chunk_end <= complete_ && end_ - chunk.at > options_.kept_bytes_max;
  };
  while (!chunks_.empty() &&
         (chunks_.front().at + chunks_.front().bytes.size() <= least || is_kept_too_long(chunks_.front()))) {
    chunks_.pop_front();
  }
}

// The second largest of the stores' contiguous prefixes.
void ReplicatedDevice::MoveComplete(Outgoing& out) {
  std::vector<Lsn> acked;
  for (const auto& [store, state] : stores_) acked.push_back(state.acked);
  std::sort(acked.begin(), acked.end());
  const Lsn second = acked[acked.size() - 2];
  if (second <= complete_) return;
  complete_ = second;
  LogMessage message = Message();
  message.complete = complete_;
  for (const auto& [store, state] : stores_) {
    if (state.is_open) out.push_back({store, {kLogComplete, EncodeLog(message)}});
  }
  moved_.notify_all();
}

void ReplicatedDevice::Fail(const std::string& why) {
  if (!error_) error_ = std::make_exception_ptr(Error(ExitStatus::kIo, "cannot write the " + path_ + ": " + why));
  moved_.notify_all();
}

void ReplicatedDevice::Abandon(const std::string& why) {
  const std::lock_guard lock(mutex_);
  Fail(why);
}

bool ReplicatedDevice::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  const std::optional<LogMessage> message = DecodeLog(body);
  if (!message || from.role != Role::kLogStore) return false;
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    // Of an earlier epoch of this master, or of a store that has left the set.
    if (message->log != options_.log || !stores_.contains(from.index)) return true;
    Store& state = stores_[from.index];
    if (type == kLogStale || type == kLogState) {
      if (message->epoch > options_.epoch) Fail("a later epoch has taken it over");
      // SetStores will tell which they are.
      if (message->set.number > options_.set.number) state.is_open = false;
    }
    if (type == kLogStale) {
      // Nothing else to do.
    } else if (type == kLogState) {
      OnState(from.index, *message, out);
    } else if (type == kLogAppended) {
      if (message->epoch != options_.epoch || !state.is_open) return true;
      if (message->at > state.sent) return false;
      state.acked = std::max(state.acked, message->at);
    } else {
      return false;
    }
    MoveComplete(out);
    DropChunks();
  }
  Post(out);
  return true;
}

// The store's answer to kOpen, or to an append that does not follow what it has.
void ReplicatedDevice::OnState(uint8_t store, const LogMessage& message, Outgoing& out) {
  Store& state = stores_[store];
  if (message.epoch != options_.epoch || message.set.number != options_.set.number) return;
  if (message.at > end_) return Fail("log store " + std::to_string(store) + " has more of it than was written");
  if (message.at < options_.start) {
    // It lacks what was written before this epoch.
    if (!std::exchange(state.is_behind, true) && behind_) behind_(store);
    return;
  }
  state.is_open = true;
  state.is_behind = false;
  state.acked = state.sent = message.at;
  SendRest(store, out);
  if (!out.empty() || complete_ == options_.start) return;
  // Appends tell it. One that was started anew, and lacks nothing, would serve no reader until the next one.
  LogMessage told = Message();
  told.complete = complete_;
  out.push_back({store, {kLogComplete, EncodeLog(told)}});
}

void ReplicatedDevice::OnLinkDown(NodeId peer) {
  if (peer.role != Role::kLogStore) return;
  const std::lock_guard order(sending_);
  Outgoing out;
  {
    const std::lock_guard lock(mutex_);
    if (!stores_.contains(peer.index)) return;
    OpenAt(peer.index, out);
  }
  Post(out);
}

uint64_t ReplicatedDevice::Complete(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) moved_.wait(lock, [&] { return complete_ >= end_ || error_; });
  if (error_) std::rethrow_exception(error_);
  return format::kStreamOffset + (complete_ - options_.start);
}

Lsn ReplicatedDevice::complete() {
  const std::lock_guard lock(mutex_);
  return complete_;
}

size_t ReplicatedDevice::Read(uint64_t, std::span<std::byte>) {
  throw Error(ExitStatus::kIo, "cannot read the " + path_ + ": it is read from its stores");
}

uint64_t ReplicatedDevice::SizeBytes() {
  const std::lock_guard lock(mutex_);
  return format::kStreamOffset + (end_ - options_.start);
}

}  // namespace dbx::mm
