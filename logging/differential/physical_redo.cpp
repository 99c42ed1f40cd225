#include "logging/differential/physical_redo.h"

#include <algorithm>
#include <utility>

#include "logging/records/differential_records.h"

namespace dbx {

using format::RecordHeader;
using format::RecordKind;

// ---- The attempts of a log ----

EndedAttempts::EndedAttempts(const BackwardPass& backward, bool read_ahead)
    : backward_(backward),
      reader_(backward.source(), backward.Starts(), {backward.point().begin, backward.end()}, read_ahead) {}

bool EndedAttempts::Next() {
  RecordHeader header;
  std::span<const std::byte> body;
  while (reader_.Next(header, body)) {
    const auto kind = static_cast<RecordKind>(header.kind);
    if (kind == RecordKind::kChange) Keep(header, body);
    if (kind != RecordKind::kCommit && kind != RecordKind::kAbort) continue;
    // An end that does not count ends its attempt all the same: the next one under the id has changes of its own.
    TakeOut(*FieldOf<TxnId>(body));
    if (!backward_.Counts({header, body, backward_.source().log_count})) continue;
    stamp_ = StampOfEnd(body);
    return true;
  }
  return false;
}

void EndedAttempts::Keep(const RecordHeader& header, std::span<const std::byte> body) {
  const auto change = *FieldOf<format::ChangeBody>(body);
  if (change.number < backward_.point().number) return;
  std::vector<std::byte>& records = BufferOf(TxnId{change.txn_id});
  const size_t at = records.size();
  records.resize(at + header.length);
  std::memcpy(records.data() + at, &header, sizeof header);
  std::memcpy(records.data() + at + sizeof header, body.data(), body.size());
}

std::vector<std::byte>& EndedAttempts::BufferOf(TxnId txn) {
  Buffer buffer = pending_.Find(txn);
  if (buffer.IsEmpty()) {
    if (free_.empty()) {
      buffers_.emplace_back();
      free_.push_back(static_cast<uint32_t>(buffers_.size()));
    }
    buffer.number = free_.back();
    free_.pop_back();
    pending_.Set(txn, buffer);
  }
  return buffers_[buffer.number - 1];
}

void EndedAttempts::TakeOut(TxnId txn) {
  ended_.clear();
  const Buffer buffer = pending_.Find(txn);
  if (buffer.IsEmpty()) return;
  std::swap(ended_, buffers_[buffer.number - 1]);
  pending_.Set(txn, {});
  free_.push_back(buffer.number);
}

// ---- All logs ----

PhysicalRedo::PhysicalRedo(std::span<const std::unique_ptr<BackwardPass>> backward, const Database& database,
                           bool read_ahead) {
  for (const auto& pass : backward) {
    logs_.push_back(std::make_unique<EndedAttempts>(*pass, read_ahead));
    players_.emplace_back(pass->source(), database);
  }
}

void PhysicalRedo::Run() {
  // Logs whose next end is known.
  std::vector<size_t> open;
  for (size_t log = 0; log < logs_.size(); ++log) {
    if (logs_[log]->Next()) open.push_back(log);
  }
  while (!open.empty()) {
    const auto first = std::ranges::min_element(open, {}, [this](size_t log) { return logs_[log]->stamp(); });
    ChangePlayer& player = players_[*first];
    logs_[*first]->ForEachChange([&player](const RecordHeader& header, std::span<const std::byte> body) {
      player.Play(player.Decode(header, body), Image::kAfter);
    });
    if (!logs_[*first]->Next()) open.erase(first);
  }
}

bool PhysicalRedo::Changed(TableId table, uint32_t page) const {
  return std::ranges::any_of(players_, [&](const ChangePlayer& player) { return player.Changed(table, page); });
}

uint64_t PhysicalRedo::read_ticks() const {
  uint64_t ticks = 0;
  for (const auto& log : logs_) ticks += log->read_ticks();
  return ticks;
}

}  // namespace dbx
