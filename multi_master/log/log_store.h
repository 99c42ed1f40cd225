// A Log Store: keeps the logs of all masters, of which two of three stores have each byte that counts (Taurus MM,
// section 3; multi_master.md, 14.4, 14.8). A process of its own; the messages are in log_messages.h.
//
//   message -> judged against what is queued -> queue -> [batch of frames: one write, one sync] -> answers, readers
//
// What a store promises:
//   - an answer is sent after what it states is synced;
//   - an epoch that was fenced, and a set of stores with an older number, is refused for ever;
//   - readers are served what two stores have (`complete`, which the writer tells) or what is sealed, no byte more;
//   - what lies behind a seal is cut off, and does not come back: the next epoch's log begins there.
//
// A store that has lost its disk, or was dropped from the set, comes back only under another index.
//
// After an error of the disk nothing is answered any more (Failed()).
//
// Threads: the network's, and one that writes.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/host.h"
#include "multi_master/log/log_messages.h"
#include "multi_master/log/store_log.h"
#include "multi_master/message.h"
#include "multi_master/network.h"

namespace dbx::mm {

struct LogStoreOptions {
  ClusterId cluster;
  std::string directory;
  uint64_t queued_bytes_max = 256 << 20;  // of a log; more closes the link
  uint32_t read_bytes_max = 512 << 10;    // of an answer
};

class LogStore final : public Network::Receiver {
 public:
  // Reads its directory, which exists. Throws Error (kCorrupt, kIo).
  LogStore(Network& network, FileSystem& files, const LogStoreOptions& options);
  ~LogStore() override;

  void Start();
  void Stop();
  bool failed();
  // Throws the error that failed the store.
  void ThrowIfFailed();

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override;
  void OnLinkDown(NodeId peer) override;

 private:
  struct Answer {
    NodeId to;
    MessageType type;
  };
  struct Op {
    FrameToWrite frame;
    Answer answer;
  };
  struct Copy {
    NodeId source, asker;
    Lsn until;  // the source's end; 0: not known yet
  };
  struct Log {
    std::unique_ptr<StoreLog> disk;
    StoreLogState state;   // of what is synced
    StoreLogState queued;  // with what is queued
    std::deque<Op> queue;
    uint64_t queued_bytes = 0;
    Lsn complete;                        // two stores have all below
    std::map<NodeId, LogMessage> reads;  // that wait for bytes
    std::optional<Copy> copy;
    // Of appends that came once more before they were synced: what is answered when the log is synced up to there.
    std::map<NodeId, std::pair<Lsn, MessageType>> late;
  };

  Log& Of(MasterId log) { return logs_[log.value()]; }
  bool Handle(NodeId from, MessageType type, const LogMessage& message);
  // Whether the sender's set of stores is the newest one; adopts a newer one of which this store is a member.
  bool KnowsSet(const LogMessage& message, bool may_adopt);
  bool OnOpen(NodeId from, const LogMessage& message, Log& log);
  bool OnAppend(NodeId from, const LogMessage& message, Log& log);
  bool OnSeal(NodeId from, const LogMessage& message, Log& log);
  bool OnRead(NodeId from, const LogMessage& message, Log& log);
  bool OnCopied(NodeId from, const LogMessage& message, Log& log);
  void AskForCopy(MasterId id, Log& log);
  void Queue(Log& log, FrameToWrite frame, Answer answer);
  void Reply(NodeId to, MessageType type, MasterId id, const Log& log);
  void AnswerLate(MasterId id, Log& log);
  void Serve(MasterId id, Log& log);
  void ServeOne(NodeId reader, const LogMessage& read, MasterId id, Log& log);
  Lsn ServedUntil(const Log& log, bool raw) const;
  void Loop();
  void WriteBatch(std::unique_lock<Mutex>& lock, MasterId id);
  void WriteSet(std::unique_lock<Mutex>& lock);

  Network& network_;
  FileSystem& files_;
  const LogStoreOptions options_;
  const uint8_t index_;

  Mutex mutex_;  // of all below
  ConditionVariable wake_;
  StoreSet set_;               // the newest one
  bool set_is_dirty_ = false;  // not on disk yet: nothing is written before it is
  std::array<Log, kMastersMax> logs_;
  bool stopping_ = false;
  std::exception_ptr error_;
  Thread thread_;
};

}  // namespace dbx::mm
