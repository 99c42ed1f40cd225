#include "logging/gaps/gap_log.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "storage/heap/heap_format.h"

namespace dbx {
namespace {

constexpr uint64_t kMagic = 0x647265636b706167;  // "gapkcerd"

struct Header {
  uint32_t checksum;  // of what follows, as far as `length`
  uint32_t length;    // of the record, in bytes
  uint64_t magic;
  uint64_t heap_id;
  uint64_t life;
  uint64_t sequence;
  uint64_t c_p;
  uint64_t c_d;
  uint64_t digest[2];
  uint32_t clean;  // 2: with a digest
  uint32_t gaps;
  uint32_t long_runners;
  uint32_t workers;
};
static_assert(sizeof(Header) == 88);

constexpr size_t LengthOf(size_t gaps, size_t long_runners, size_t workers) {
  return sizeof(Header) + gaps * sizeof(GapSet::Gap) + long_runners * sizeof(LongRunner) + workers * sizeof(uint64_t);
}

uint32_t ChecksumOf(std::span<const std::byte> record) { return Crc32c(record.subspan(sizeof(uint32_t))); }

template <class T>
std::byte* Put(std::byte* to, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(T));
  return to + values.size() * sizeof(T);
}
template <class T>
std::vector<T> Get(std::span<const std::byte>& from, size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), from.data(), count * sizeof(T));
  from = from.subspan(count * sizeof(T));
  return values;
}

}  // namespace

GapSet LosersOf(const GapRecord& record) {
  GapSet losers = record.gaps;
  losers.Add({record.c_p + 1, record.c_d});
  for (const LongRunner& runner : record.long_runners) losers.Add({runner.stamp, runner.stamp + 1});
  return losers;
}

GapRecord NextLifeOf(const GapRecord& newest, uint32_t workers, uint64_t first_sequence, bool drop_gaps,
                     uint64_t window) {
  GapRecord next;
  next.heap_id = newest.heap_id;
  next.life = newest.life + 1;
  next.sequence = newest.sequence + 1;
  // The clock: no stamp of it, or below it, is drawn again.
  next.c_p = newest.c_d - 1;
  next.c_d = newest.c_d + window;
  if (!drop_gaps) next.gaps = LosersOf(newest);
  next.last_sequences.assign(workers, first_sequence);
  return next;
}

GapRecord FirstRecordOf(uint64_t heap_id, uint32_t workers, uint64_t window) {
  GapRecord first;
  first.heap_id = heap_id;
  first.life = first.sequence = 1;
  first.c_p = heap_format::kLoadStamp;
  first.c_d = first.c_p + 1 + window;
  first.last_sequences.assign(workers, 0);
  return first;
}

bool GapLog::Fits(size_t gaps, size_t workers) {
  return LengthOf(gaps, workers, workers) <= kRecordBlocksMax * kBlockBytes;
}

std::optional<GapRecord> GapLog::Decode(std::span<const std::byte> bytes, std::optional<uint64_t> heap_id) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.length > bytes.size()) return std::nullopt;
  if (heap_id && header.heap_id != *heap_id) return std::nullopt;
  if (header.length > kRecordBlocksMax * kBlockBytes) return std::nullopt;
  if (header.length != LengthOf(header.gaps, header.long_runners, header.workers)) return std::nullopt;
  if (ChecksumOf(bytes.first(header.length)) != header.checksum) return std::nullopt;
  if (header.c_p >= header.c_d || header.clean > 2) return std::nullopt;
  GapRecord record;
  record.heap_id = header.heap_id, record.life = header.life, record.sequence = header.sequence;
  record.c_p = header.c_p, record.c_d = header.c_d, record.clean = header.clean != 0;
  if (header.clean == 2) record.digest.emplace(header.digest[0], header.digest[1]);
  std::span<const std::byte> rest = bytes.subspan(sizeof header);
  for (const GapSet::Gap& gap : Get<GapSet::Gap>(rest, header.gaps)) record.gaps.Add(gap);
  record.long_runners = Get<LongRunner>(rest, header.long_runners);
  record.last_sequences = Get<uint64_t>(rest, header.workers);
  return record;
}

GapLog::GapLog(PersistentMemory& memory, uint64_t heap_id) : memory_(memory), writer_(memory.NewWriter()) {
  const std::span<const std::byte> bytes = memory.bytes();
  if (bytes.size() != kBytes) {
    throw Error(ExitStatus::kCorrupt,
                "the log of the heap has " + std::to_string(bytes.size()) + " bytes and not " + std::to_string(kBytes));
  }
  for (size_t block = 0; block < kBlocks; ++block) {
    auto record = Decode(bytes.subspan(block * kBlockBytes, kBytes - block * kBlockBytes), heap_id);
    if (!record || (newest_ && record->sequence <= newest_->sequence)) continue;
    const size_t length =
        LengthOf(record->gaps.gaps().size(), record->long_runners.size(), record->last_sequences.size());
    next_block_ = block + (length + kBlockBytes - 1) / kBlockBytes;
    newest_ = std::move(record);
  }
}

void GapLog::Append(const GapRecord& record) {
  CHECK(record.sequence == (newest_ ? newest_->sequence : 0) + 1);
  const auto& gaps = record.gaps.gaps();
  const size_t length = LengthOf(gaps.size(), record.long_runners.size(), record.last_sequences.size());
  CHECK(length <= kRecordBlocksMax * kBlockBytes);
  const size_t blocks = (length + kBlockBytes - 1) / kBlockBytes;
  if (next_block_ + blocks > kBlocks) next_block_ = 0;
  std::byte* const at = memory_.bytes().data() + next_block_ * kBlockBytes;
  Header header{};
  header.length = static_cast<uint32_t>(length);
  header.magic = kMagic, header.heap_id = record.heap_id, header.life = record.life, header.sequence = record.sequence;
  header.c_p = record.c_p, header.c_d = record.c_d, header.clean = record.digest ? 2 : record.clean ? 1 : 0;
  if (record.digest) header.digest[0] = record.digest->first, header.digest[1] = record.digest->second;
  header.gaps = static_cast<uint32_t>(gaps.size());
  header.long_runners = static_cast<uint32_t>(record.long_runners.size());
  header.workers = static_cast<uint32_t>(record.last_sequences.size());
  std::memcpy(at, &header, sizeof header);
  Put(Put(Put(at + sizeof header, gaps), record.long_runners), record.last_sequences);
  header.checksum = ChecksumOf({at, length});
  std::memcpy(at, &header.checksum, sizeof header.checksum);
  writer_->WriteBack(at, length);
  writer_->Drain();
  next_block_ += blocks;
  newest_ = record;
}

}  // namespace dbx
