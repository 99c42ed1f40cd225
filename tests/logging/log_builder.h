// Builds log files byte by byte, for tests. A log reads like a sentence:
//
//   LogBuilder(run_id, 0, 2, format::Scheme::kTaurus)
//       .Command(7, procedure, args, {0, 96}).Anchor({128, 96}).Pad().RunEnd().Bytes()
//
// LSNs follow from what is appended; End() is the current one and Start(n) that of the n-th record. Everything
// that a test may want to be wrong (an LSN, a claim of durability, a salt) can be given. Not thread safe.
// The damage helpers below change finished files, at offsets from the start of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "logging/format.h"

namespace dbx {

// A row image of a data record.
struct BuiltWrite {
  TableId table;
  Key key = 0;
  std::string image;  // of a put
  bool is_delete = false;
};
inline BuiltWrite Put(uint16_t table, Key key, std::string_view image) {
  return {TableId(table), key, std::string(image), false};
}
inline BuiltWrite Delete(uint16_t table, Key key) { return {TableId(table), key, {}, true}; }

// A change of a slot in a differential log.
struct BuiltChange {
  uint64_t txn_id = 0;
  uint16_t table = 0;
  uint32_t page = 0;
  uint16_t slot = 0;
  uint32_t number = 0;
  std::string image{};  // XOR of the tuples, or its runs; without padding
  uint16_t flags = 0;   // format::kChange...
  Key key = 0;          // stored if kChangePresence
};

class LogBuilder {
 public:
  using LogBytes = std::vector<std::byte>;
  using Elements = std::vector<uint64_t>;

  explicit LogBuilder(uint64_t run_id, uint32_t log_index = 0, uint32_t log_count = 1,
                      format::Scheme scheme = format::Scheme::kSerial);

  // Of the file header; before Bytes().
  LogBuilder& RingBytes(uint64_t ring_bytes);
  LogBuilder& Config(std::string_view text);
  LogBuilder& PayloadIs(format::Payload payload);
  format::FileHeader& header() { return header_; }  // its checksum and both copies are made by Bytes()

  // From here on LSN vectors store every element, as without COMPRESS_LSN_LOG.
  LogBuilder& Uncompressed();

  // Transactions. `args` goes without the transaction id and is padded with zeros to a multiple of 8. `lv` has
  // one element for each log, or none; elements that the last anchor covers are left out.
  LogBuilder& Command(uint64_t txn_id, uint16_t procedure, std::string_view args = {}, const Elements& lv = {});
  // Read at a timestamp, committed at another. The header says that the log is replayed in many versions.
  LogBuilder& VersionedCommand(uint64_t txn_id, format::Timestamps timestamps, uint16_t procedure,
                               std::string_view args = {}, const Elements& lv = {});
  LogBuilder& Watermark(uint64_t timestamp);
  LogBuilder& Data(uint64_t txn_id, const std::vector<BuiltWrite>& writes, const Elements& lv = {});
  // The part in this log of a transaction that has parts in all logs of the mask.
  LogBuilder& Stamped(uint64_t txn_id, uint64_t stamp, uint16_t parts, const std::vector<BuiltWrite>& writes);
  LogBuilder& Mark(uint64_t stamp, uint64_t durable_stamp = 0);
  // Records of a differential log. COMMITs are transactions; `lv` as of them.
  LogBuilder& Change(const BuiltChange& change);
  // With a stamp: as PL2P logs them.
  LogBuilder& Commit(uint64_t txn_id, const Elements& lv = {}, std::optional<uint64_t> stamp = {});
  LogBuilder& Abort(uint64_t txn_id);
  LogBuilder& Abort(uint64_t txn_id, const Elements& lv, uint64_t stamp);
  LogBuilder& CheckpointBegin(uint32_t number);
  LogBuilder& CheckpointEnd(uint32_t number, const std::vector<uint64_t>& active = {});
  // A reserved place of `length` bytes, header included, whose body is left over from something else.
  LogBuilder& Void(uint32_t length = 64);
  LogBuilder& Anchor(const Elements& durable);
  // Fills up the block (a whole one at its start; into the next one where too little is left). Unless
  // `durable_lsn` says otherwise everything before the PAD was durable.
  LogBuilder& Pad(std::optional<uint64_t> durable_lsn = {});
  LogBuilder& RunEnd(std::optional<uint64_t> durable_lsn = {}, std::optional<uint64_t> txn_count = {});
  // A record's header at the current end, for Raw; its length and checksums are Raw's.
  format::RecordHeader HeaderOf(format::RecordKind kind) const;
  // Any record, checksums made right; for what no writer writes.
  LogBuilder& Raw(format::RecordHeader header, std::string_view body);
  // Zeros, as in a preallocated file; what follows is a record behind a hole.
  LogBuilder& Hole(uint64_t bytes);

  uint64_t End() const { return stream_.size(); }  // LSN of the next record
  uint64_t Start(size_t record) const { return starts_.at(record); }
  const std::vector<uint64_t>& Starts() const { return starts_; }
  uint64_t txn_count() const { return txn_count_; }

  // Damage to what is there already; more may be appended. Start(n) still tells where records were cut off.
  std::byte& At(uint64_t lsn) { return stream_.at(lsn); }
  void Cut(uint64_t lsn) { stream_.resize(lsn); }

  const LogBytes& Stream() const { return stream_; }
  LogBytes Bytes() const;

 private:
  LogBuilder& EndTxn(format::RecordKind kind, uint64_t txn_id, const Elements& lv, std::optional<uint64_t> stamp);
  std::string TxnBody(uint64_t txn_id, const Elements& lv, uint16_t& lv_mask) const;

  format::FileHeader header_{};
  LogBytes stream_;
  std::vector<uint64_t> starts_;
  Elements anchor_;
  bool compress_ = true;
  uint64_t txn_count_ = 0;
};

// Damage. Each takes a file and gives back the damaged one.
using LogBytes = LogBuilder::LogBytes;
inline uint64_t FileOffset(uint64_t lsn) { return format::kStreamOffset + lsn; }
LogBytes FlipBit(LogBytes file, uint64_t offset, int bit = 0);
LogBytes Truncate(LogBytes file, uint64_t bytes);
LogBytes ZeroBytes(LogBytes file, uint64_t offset, uint64_t bytes = format::kBlockBytes);
LogBytes AppendGarbage(LogBytes file, uint64_t bytes, uint64_t seed);
LogBytes AppendZeros(LogBytes file, uint64_t bytes);
// Puts bytes [from, from + bytes) of another file at `offset`: an old run's, a misplaced block.
LogBytes Transplant(LogBytes file, uint64_t offset, const LogBytes& other, uint64_t from, uint64_t bytes);

void WriteLogFile(const std::string& path, const LogBytes& file);

}  // namespace dbx
