#include "multi_master/log/store_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "logging/format.h"
#include "multi_master/log/records.h"

namespace dbx::mm {
namespace {

using format::kBlockBytes;

// What lies behind a part's end was of its writer, and is cut off.
void EndPart(Lsn at, StoreLogState& state) {
  state.end = std::min(state.end, at);
  state.sealed = std::max(state.sealed, at);
  if (at > Lsn() && (state.part_ends.empty() || state.part_ends.back() < at)) state.part_ends.push_back(at);
}

}  // namespace

void StoreLog::Apply(const FrameToWrite& frame, StoreLogState& state) {
  switch (frame.kind) {
    case StoreFrame::kBegin:
      return;
    case StoreFrame::kData:
      // More than the writer's that was opened here if it is a copy.
      state.writer = std::max(state.writer, frame.epoch);
      state.fence = std::max(state.fence, frame.epoch);
      state.end = frame.at + frame.length;
      return;
    case StoreFrame::kOpen:
      // The first writer's log begins; a later one's goes on where the earlier ones' was sealed.
      if (frame.epoch > state.writer) EndPart(frame.at, state);
      state.writer = frame.epoch;
      state.fence = std::max(state.fence, frame.epoch);
      return;
    case StoreFrame::kFence:
      state.fence = std::max(state.fence, frame.epoch);
      return;
    case StoreFrame::kSeal:
      state.fence = std::max(state.fence, frame.epoch);
      EndPart(frame.at, state);
      return;
  }
}

StoreLog::StoreLog(FileSystem& files, const std::string& directory, MasterId log, uint32_t salt, Use use)
    : file_system_(files), directory_(directory), log_(log), salt_(salt), use_(use) {
  OpenFiles();
  const auto count = static_cast<uint32_t>(files_.size());
  for (uint32_t i = 0; i < count; ++i) {
    ReadFile(i, i + 1 < count ? first_frames_[i + 1] : UINT64_MAX, i + 1 == count);
  }
  if (use_ == Use::kWrite) Begin(PathOf(count));
}

void StoreLog::OpenFiles() {
  uint32_t count = 0;
  while (file_system_.KindOf(PathOf(count)) == FileSystem::Entry::kFile) ++count;
  for (uint32_t i = 0; i < count; ++i) {
    files_.push_back(file_system_.Open(PathOf(i)));
    FrameHeader begin{};
    const size_t got = files_[i]->Read(0, std::as_writable_bytes(std::span(&begin, 1)));
    const bool is_begin = got == sizeof begin && IsFrame(begin, salt_) && begin.kind == uint8_t(StoreFrame::kBegin);
    if (got == sizeof begin && IsFrame(begin) && begin.salt != salt_) {
      throw Error(ExitStatus::kMismatch,
                  "cannot read " + files_[i]->PlaceOf(0) + ": it is of another cluster, or another master's log");
    }
    // A crash may have left the newest one without its first batch, which is synced before there is another one.
    if (!is_begin && i + 1 == count && !HasFrame(*files_[i])) {
      files_.pop_back();
      if (use_ == Use::kRead) return;
      file_system_.Remove(PathOf(i));
      file_system_.SyncDirectory(directory_);
      return;
    }
    if (!is_begin) Damaged(i, 0, "it does not begin as a file of this log");
    if (begin.length != kLogVersion) {
      throw Error(ExitStatus::kMismatch, "cannot read " + files_[i]->PlaceOf(0) + ": version " +
                                             std::to_string(begin.length) + " is not known");
    }
    first_frames_.push_back(begin.number);
  }
}

// At the start of any block.
bool StoreLog::HasFrame(BlockDevice& file) const {
  for (uint64_t at = 0; at < file.SizeBytes(); at += kBlockBytes) {
    FrameHeader header{};
    const size_t got = file.Read(at, std::as_writable_bytes(std::span(&header, 1)));
    if (got == sizeof header && IsFrame(header, salt_)) return true;
  }
  return false;
}

std::string StoreLog::PathOf(uint32_t number) const {
  return directory_ + "/log-" + std::to_string(log_.value()) + "-" + std::to_string(number);
}

void StoreLog::Damaged(uint32_t file, uint64_t offset, const std::string& why) const {
  throw Error(ExitStatus::kCorrupt, "cannot read " + files_[file]->PlaceOf(offset) + ": " + why);
}

// Up to the frame `end_frame`, with which the next file begins, or to the last whole one.
void StoreLog::ReadFile(uint32_t file, uint64_t end_frame, bool is_newest) {
  BlockDevice& device = *files_[file];
  std::vector<std::byte> bytes(device.SizeBytes());
  bytes.resize(device.Read(0, bytes));
  const StoreFileEnd end = ReadStoreFile(bytes, salt_, next_frame_, end_frame, [&](const FoundFrame& frame) {
    const FrameHeader& header = frame.header;
    Take({static_cast<StoreFrame>(header.kind),
          ClusterEpoch(header.epoch),
          Lsn(header.at),
          header.length,
          {frame.bytes.begin(), frame.bytes.end()}},
         file, frame.offset + sizeof header, false);
  });
  next_frame_ = end.next_frame;
  if (next_frame_ < end_frame && !is_newest) Damaged(file, end.offset, "the log ends before its next file begins");
  if (!is_newest) return;
  if (end.bad_was_synced) Damaged(file, end.bad_at.value_or(end.offset), "a frame is damaged that had been synced");
  if (use_ == Use::kRead) return;
  file_system_.Rewrite(PathOf(file), 0, RoundUp(std::min<uint64_t>(end.offset, bytes.size()), kBlockBytes));
}

void StoreLog::Begin(const std::string& path) {
  // Without this the file's entry is not there after a crash; with it, but without its first batch, it is removed.
  files_.push_back(file_system_.Create(path, {.engine = IoEngine::kPwrite, .direct = false}));
  write_offset_ = 0;
  const std::vector<FrameToWrite> begin{{StoreFrame::kBegin, {}, {}, kLogVersion, {}}};
  Sync(begin);
  Publish(begin);
}

void StoreLog::Sync(const std::vector<FrameToWrite>& frames) {
  uint64_t total = 0;
  for (const FrameToWrite& frame : frames) total += FrameBytes(frame.bytes.size());
  total = RoundUp(total, kBlockBytes);
  const AlignedBuffer batch = AllocateBlocks(total);
  std::memset(batch.get(), 0, total);
  uint64_t offset = 0, number = next_frame_;
  for (const FrameToWrite& frame : frames) {
    CHECK(frame.bytes.size() <= kFrameBytesMax);
    FrameHeader header{};
    header.bytes_crc = Crc32c(frame.bytes);
    header.salt = salt_;
    header.kind = static_cast<uint8_t>(frame.kind);
    header.number = number++;
    header.synced_frames = next_frame_;
    header.at = frame.at.value();
    header.bytes = static_cast<uint32_t>(frame.bytes.size());
    header.length = frame.length;
    header.epoch = frame.epoch.value();
    header.header_crc = HeaderCrcOf(header);
    std::memcpy(batch.get() + offset, &header, sizeof header);
    if (!frame.bytes.empty()) {
      std::memcpy(batch.get() + offset + sizeof header, frame.bytes.data(), frame.bytes.size());
    }
    offset += FrameBytes(frame.bytes.size());
  }
  files_.back()->StartWrite(write_offset_, {batch.get(), total});
  files_.back()->Complete(true);
}

void StoreLog::Publish(std::vector<FrameToWrite> frames) {
  uint64_t offset = write_offset_;
  for (FrameToWrite& frame : frames) {
    const uint64_t frame_bytes = FrameBytes(frame.bytes.size());
    Take(std::move(frame), static_cast<uint32_t>(files_.size() - 1), offset + sizeof(FrameHeader), true);
    offset += frame_bytes;
  }
  next_frame_ += frames.size();
  write_offset_ = RoundUp(offset, kBlockBytes);
}

// The frame is synced.
void StoreLog::Take(FrameToWrite frame, uint32_t file, uint64_t offset, bool caches) {
  Apply(frame, state_);
  if (frame.kind != StoreFrame::kData) return CutPieces(state_.end);
  Piece piece{frame.at, frame.length, file, offset, static_cast<uint32_t>(frame.bytes.size()), {}};
  if (caches) {
    cached_bytes_ += frame.bytes.size();
    piece.cached = std::move(frame.bytes);
  }
  pieces_.push_back(std::move(piece));
  for (; cached_bytes_ > kCachedBytesMax && first_cached_ < pieces_.size(); ++first_cached_) {
    cached_bytes_ -= pieces_[first_cached_].cached.size();
    std::vector<std::byte>().swap(pieces_[first_cached_].cached);  // with its memory
  }
}

void StoreLog::CutPieces(Lsn at) {
  while (!pieces_.empty() && pieces_.back().at >= at) {
    cached_bytes_ -= pieces_.back().cached.size();
    pieces_.pop_back();
  }
  first_cached_ = std::min(first_cached_, pieces_.size());
  if (pieces_.empty() || pieces_.back().at + pieces_.back().length <= at) return;
  Piece& last = pieces_.back();
  last.length = static_cast<uint32_t>(at - last.at);
  last.bytes = std::min(last.bytes, last.length);
}

Lsn StoreLog::PartEnd(Lsn at) const {
  const auto end = std::upper_bound(state_.part_ends.begin(), state_.part_ends.end(), at);
  return end == state_.part_ends.end() ? Lsn() : *end;
}

Lsn StoreLog::PartBegin(Lsn at) const {
  const auto end = std::upper_bound(state_.part_ends.begin(), state_.part_ends.end(), at);
  return end == state_.part_ends.begin() ? Lsn() : *(end - 1);
}

std::vector<std::byte> StoreLog::Read(Lsn at, Lsn until, size_t bytes_max) {
  const Lsn part_end = PartEnd(at);
  if (part_end != Lsn()) until = std::min(until, part_end);
  std::vector<std::byte> result;
  auto piece =
      std::partition_point(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.at + p.length <= at; });
  while (piece != pieces_.end() && piece->at <= at && at < until && result.size() < bytes_max) {
    std::vector<std::byte> whole = piece->cached;
    if (whole.empty() && piece->bytes > 0) {
      whole.resize(piece->bytes);
      const size_t got = files_[piece->file]->Read(piece->offset, whole);
      CHECK(got == whole.size());
    }
    whole.resize(piece->length);
    const size_t skipped = at - piece->at;
    const size_t taken = std::min({whole.size() - skipped, static_cast<size_t>(until - at), bytes_max - result.size()});
    result.insert(result.end(), whole.begin() + static_cast<ptrdiff_t>(skipped),
                  whole.begin() + static_cast<ptrdiff_t>(skipped + taken));
    at += taken;
    if (skipped + taken == whole.size()) ++piece;
  }
  return result;
}

}  // namespace dbx::mm
