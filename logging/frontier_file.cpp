#include "logging/frontier_file.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"

namespace dbx {
namespace {

using format::FrontierBlock;

uint32_t CrcOf(FrontierBlock block) {
  block.crc = 0;
  return Crc32c(std::as_bytes(std::span(&block, 1)));
}

// Is there a block at `number` of the file, and which?
bool BlockAt(std::span<const std::byte> bytes, uint64_t number, FrontierBlock& block) {
  if ((number + 1) * sizeof block > bytes.size()) return false;
  std::memcpy(&block, bytes.data() + number * sizeof block, sizeof block);
  return std::memcmp(block.magic, format::kFrontierMagic, sizeof block.magic) == 0 && block.crc == CrcOf(block) &&
         block.number == number && block.log_count >= 1 && block.log_count <= format::kMaxLogs;
}

// A later block must not lower the frontier.
bool Decreases(const FrontierBlock& from, const FrontierBlock& to) {
  bool back = to.stamp < from.stamp;
  for (uint32_t log = 0; log < format::kMaxLogs; ++log) back |= to.lsns[log] < from.lsns[log];
  return back;
}

}  // namespace

void FrontierFile::Append(Stamp stamp, std::span<const Lsn> lsns) {
  CHECK(!lsns.empty() && lsns.size() <= format::kMaxLogs);
  alignas(format::kBlockBytes) FrontierBlock block{};
  std::memcpy(block.magic, format::kFrontierMagic, sizeof block.magic);
  block.version = format::kVersion;
  block.run_id = run_id_;
  block.number = blocks_;
  block.stamp = stamp.value();
  block.log_count = static_cast<uint32_t>(lsns.size());
  std::ranges::transform(lsns, block.lsns, &Lsn::value);
  block.crc = CrcOf(block);
  device_->StartWrite(blocks_++ * sizeof block, std::as_bytes(std::span(&block, 1)));
  device_->Complete(true);
}

DurableFrontier ReadFrontier(std::span<const std::byte> bytes, uint64_t run_id, const std::string& path) {
  const auto refuse = [&path](ExitStatus status, uint64_t number, const char* why) {
    throw Error(status, "cannot read " + path + "@" + std::to_string(number * sizeof(FrontierBlock)) + ": " + why);
  };
  FrontierBlock last{}, block{};
  uint64_t valid = 0;
  while (BlockAt(bytes, valid, block)) {
    if (block.version != format::kVersion) refuse(ExitStatus::kMismatch, valid, "its version is not known");
    if (block.run_id != run_id) refuse(ExitStatus::kMismatch, valid, "the frontier of another run");
    if (Decreases(last, block)) refuse(ExitStatus::kCorrupt, valid, "a durable frontier that goes back");
    last = block;
    ++valid;
  }
  if (valid == 0) refuse(ExitStatus::kCorrupt, 0, "no durable frontier");
  for (uint64_t behind = valid; (behind + 1) * sizeof block <= bytes.size(); ++behind) {
    if (BlockAt(bytes, behind, block)) refuse(ExitStatus::kCorrupt, valid, "a later durable frontier follows");
  }
  DurableFrontier frontier{Stamp(last.stamp), {}, valid};
  for (uint32_t log = 0; log < last.log_count; ++log) frontier.lsns.emplace_back(last.lsns[log]);
  return frontier;
}

}  // namespace dbx
