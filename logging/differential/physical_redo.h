// The second pass of PL2P over all differential logs of a run, the baseline with before and after images (Lee, Kim,
// Cha, ICDE 2001, section 5; ARIES): once the losers' changes that the backup has are undone (backward_pass.h), what
// the backup lacks is redone by after images, which must be put in the order in which they were made.
//
// Changes wait in memory for the COMMIT or ABORT of their attempt, and are dropped if it does not count. One thread
// merges the logs: of the next ends of each, that with the least stamp comes first. Stamps are drawn while the locks
// are held, before the end's place in its log is reserved, so that attempts that change the same slot have ascending
// stamps, and ascending places if they are in one log. Others need not ascend within a log, which does no harm: an end
// behind another with a larger stamp in its log cannot precede one in another log whose stamp lies between the two, as
// that stamp was drawn when both places were reserved.
//
// Undo comes first: a loser's before image that is put later would overwrite a transaction that followed an abort. An
// ABORT that depends on what a log has lost does not count: its compensations hold the lost value.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "logging/differential/backward_pass.h"
#include "logging/differential/change_player.h"
#include "logging/differential/forward_reader.h"
#include "logging/differential/txn_map.h"
#include "storage/database.h"

namespace dbx {

// The attempts of one log that have ended, in the order of their ends.
class EndedAttempts {
 public:
  // `backward` has passed over the log, and outlives this.
  EndedAttempts(const BackwardPass& backward, bool read_ahead);

  // Reads on to the next COMMIT or ABORT that counts. False: there is none. Throws Error.
  bool Next();
  // Of that COMMIT or ABORT.
  uint64_t stamp() const { return stamp_; }
  // Calls visit(header, body) for the changes and compensations of its attempt that the backup lacks, oldest first.
  void ForEachChange(auto&& visit) const {
    for (size_t at = 0; at < ended_.size();) {
      format::RecordHeader header;
      std::memcpy(&header, ended_.data() + at, sizeof header);
      visit(header, std::span(ended_).subspan(at + sizeof header, header.length - sizeof header));
      at += header.length;
    }
  }
  // Spent in waiting for the log.
  uint64_t read_ticks() const { return reader_.read_ticks(); }

 private:
  // One more than the index in buffers_.
  struct Buffer {
    uint32_t number = 0;
    bool IsEmpty() const { return number == 0; }
  };

  void Keep(const format::RecordHeader& header, std::span<const std::byte> body);
  // The attempt has ended; its records are in ended_ then.
  void TakeOut(TxnId txn);
  std::vector<std::byte>& BufferOf(TxnId txn);

  const BackwardPass& backward_;
  ForwardReader reader_;
  TxnMap<Buffer> pending_;
  std::vector<std::vector<std::byte>> buffers_;  // whole records
  std::vector<uint32_t> free_;                   // numbers of buffers that no attempt uses
  std::vector<std::byte> ended_;
  uint64_t stamp_ = 0;
};

class PhysicalRedo {
 public:
  // The passes over all logs, by index, which outlive this.
  PhysicalRedo(std::span<const std::unique_ptr<BackwardPass>> backward, const Database& database, bool read_ahead);

  // Throws Error.
  void Run();

  // Whether a change was played to this page.
  bool Changed(TableId table, uint32_t page) const;
  // Spent in waiting for the logs.
  uint64_t read_ticks() const;

 private:
  std::vector<std::unique_ptr<EndedAttempts>> logs_;
  std::vector<ChangePlayer> players_;  // by log
};

}  // namespace dbx
