// The log of one master, read from the files that the Log Stores of a dead cluster have left. Nothing is written.
//
//   three directories -> StoreLog each -> the longest -> LfbReader -> flushes, up to the last LFB
//
// The log ends as a fence would end it that reaches all stores that can be read: at the newest seal, or where the
// longest of them ends. What was acknowledged is on two of three stores, so one that is lost or damaged costs nothing.
// Two refuse the log. What the records say had been durable (each PAD says it) must be at two stores that can be read:
// a file that was cut is told from a crash.
//
// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "multi_master/log/lfb_reader.h"
#include "multi_master/log/store_log.h"
#include "multi_master/message.h"

namespace dbx::mm {

// What one Log Store has of the log.
struct RemainingCopy {
  std::string directory;
  std::unique_ptr<StoreLog> log;  // null: the store cannot be read
  std::string lost_why;           // then
  StoreLogState state;
};

class RemainingLog {
 public:
  // `stores`: the directories of all Log Stores; one that is not there is lost. Throws Error: kCorrupt if fewer than
  // two can be read, kMismatch for another version.
  RemainingLog(FileSystem& files, const std::vector<std::string>& stores, ClusterId cluster, MasterId master);
  ~RemainingLog();

  // The next flush. Nothing: there is no LFB behind it. Throws Error (kCorrupt).
  std::optional<LfbGroup> Next();

  MasterId master() const { return master_; }
  const std::array<RemainingCopy, kLogStores>& copies() const { return copies_; }
  // Up to here the log is read; the end of the last LFB lies below it.
  Lsn end() const { return end_; }
  // So much two of the stores have, or may have had: one that is lost counts.
  Lsn two_have() const { return two_have_; }
  // Behind the last LFB that Next has returned.
  Lsn position() const;
  bool is_sealed() const { return sealed_ > Lsn(); }
  Lsn sealed() const { return sealed_; }

 private:
  class Silence;

  void Choose();
  bool Feed();
  // The reader has checked the records.
  void NoteProofs(const LfbGroup& group);
  void CheckProof() const;
  std::string Describe() const;

  const MasterId master_;
  std::array<RemainingCopy, kLogStores> copies_;
  StoreLog* source_ = nullptr;  // of copies_; null: no store has the log
  Lsn sealed_, end_, two_have_;
  Lsn fed_;     // to the reader
  Lsn proven_;  // a record says that so much had been durable
  Lsn proof_;   // that record
  std::unique_ptr<Silence> network_;
  std::unique_ptr<LfbReader> reader_;
  Lsn position_;
};

}  // namespace dbx::mm
