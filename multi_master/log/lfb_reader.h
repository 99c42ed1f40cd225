// Reads a master's log from the Log Stores while it is written, LFB by LFB: what an applier takes, and recovery.
//
//   kLogRead --> a store --kLogData--> buffer -> check each record, in order -> records up to an LFB -> Next
//
// A store serves what two have, so what has come is durable, and every byte of it must be right: a record that is not
// ends reading with an Error (kCorrupt) that names its place. Only the end moves: a record, or the records behind the
// last LFB, may not be there in whole yet. Where the log of an epoch was sealed, what stands between its last LFB and
// the seal was never durable, and is discarded; the next epoch's first record follows.
//
// One read is under way. A store whose link breaks, or that has nothing for `patience`, may be cut off from the writer:
// the next one is asked. One whose link has broken is passed over for a while.
//
// Threads: Next by one; OnMessage and OnLinkDown by the network's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "logging/format.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/log/records.h"
#include "multi_master/network.h"

namespace dbx::mm {

struct LogRecord {
  format::RecordKind kind{};  // kPagesKind, kEndKind
  Lsn lsn;
  size_t offset = 0, length = 0;  // of the body, in LfbGroup::bytes
};

// What one flush has made durable.
struct LfbGroup {
  LfbStamp lfb;
  Lsn end;  // behind the LFB: where a reader may begin
  std::vector<std::byte> bytes;
  std::vector<LogRecord> records;

  std::span<const std::byte> BodyOf(const LogRecord& record) const {
    return std::span(bytes).subspan(record.offset, record.length);
  }
};

struct LfbReaderOptions {
  MasterId log;
  uint32_t salt = 0;  // SaltOf
  StoreSet set;
  uint32_t first_store = 0;  // of the set: the one that is asked first
  Lsn start{};               // behind an LFB, or the start of a part
  VsTime predecessor;        // the time of that LFB
  uint32_t read_bytes = 256 << 10;
  std::chrono::milliseconds patience{50};
  std::chrono::milliseconds shunned{1000};  // a store whose link has broken
};

class LfbReader {
 public:
  LfbReader(Network& network, const LfbReaderOptions& options);

  // Waits for the next LFB, `time` at most. Throws Error (kCorrupt).
  std::optional<LfbGroup> Next(std::chrono::nanoseconds time);
  // Where the next LFB's records begin.
  Lsn position();
  // Up to where bytes have come.
  Lsn received();
  void SetStores(const StoreSet& set);

  // kLogData of this log. False: it is malformed.
  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body);
  void OnLinkDown(NodeId peer);

 private:
  enum class Look : uint8_t { kRecord, kIncomplete, kLfb };

  // Asks for what follows the buffer; with `turn` another store.
  void Ask(bool turn);
  void Turn(uint64_t now);
  Look LookAtRecord();
  bool TakeUntilLfb();
  void BeginPart();
  bool Crosses(Lsn part_end) const;
  // Behind the bytes that have come.
  Lsn end() const { return first_ + (buffer_.size() - taken_); }
  // The first `bytes` of the buffer are not needed any more.
  void Drop(size_t bytes);
  [[noreturn]] void Damaged(const std::string& why) const;

  Network& network_;
  const LfbReaderOptions options_;

  Mutex mutex_;  // of the rest
  ConditionVariable came_;
  StoreSet set_;
  uint32_t turn_;                                           // of set_.stores: which is asked
  std::array<uint64_t, kLogStores> shunned_until_nanos_{};  // of set_.stores
  bool is_asked_ = false;
  Lsn asked_at_;
  uint64_t asked_nanos_ = 0;
  std::vector<std::byte> buffer_;  // bytes that have come: those before taken_ are of groups that were taken
  size_t taken_ = 0;               // of buffer_
  LfbGroup group_;                 // without its bytes
  Lsn first_;                      // of the group: the place of buffer_[taken_]
  size_t parsed_ = 0;              // of its bytes
  Lsn part_begin_;                 // of the part whose bytes have come last
  std::deque<Lsn> pending_parts_;  // where parts begin in the buffer
  VsTime last_lfb_;
};

}  // namespace dbx::mm
