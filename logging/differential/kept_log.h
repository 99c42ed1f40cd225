// The last records of a log, as the search for its end has read and checked them, kept in memory for the pass backward,
// which then need not read them again. What does not fit the budget is forgotten, the oldest first: the pass begins at
// the end.
//
// Threads: one at a time, first that of the search and then that of the pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/types.h"

namespace dbx {

class KeptLog {
 public:
  static constexpr size_t kChunkBytes = size_t{1} << 20;

  // Whole records.
  struct Chunk {
    Lsn begin;
    Lsn end;
    size_t room = 0;
    std::unique_ptr<std::byte[]> bytes;
  };

  // 0: nothing is kept.
  explicit KeptLog(size_t budget_bytes, size_t chunk_bytes = kChunkBytes)
      : budget_bytes_(budget_bytes), chunk_bytes_(chunk_bytes) {}

  // Whole records, which start at `at`: where the last ones ended, or where the log starts.
  void Append(Lsn at, std::span<const std::byte> records) {
    if (budget_bytes_ == 0) return;
    CHECK(chunks_.empty() || chunks_.back().end == at);
    if (chunks_.empty() || chunks_.back().room - (at - chunks_.back().begin) < records.size()) {
      AddChunk(at, records.size());
    }
    Chunk& chunk = chunks_.back();
    std::memcpy(chunk.bytes.get() + (at - chunk.begin), records.data(), records.size());
    chunk.end += records.size();
  }

  // The last chunk that is left, which is given away.
  std::optional<Chunk> TakeLast() {
    if (chunks_.empty()) return std::nullopt;
    Chunk last = std::move(chunks_.back());
    chunks_.pop_back();
    return last;
  }
  // Where the first chunk begins, if there is one.
  std::optional<Lsn> begin() const {
    if (chunks_.empty()) return std::nullopt;
    return chunks_.front().begin;
  }

 private:
  // Of the first chunk's memory, if that is due to go and suffices.
  void AddChunk(Lsn at, size_t bytes_min) {
    const size_t room = std::max(chunk_bytes_, bytes_min);
    Chunk chunk;
    while (!chunks_.empty() && room_ + room > budget_bytes_) {
      chunk = std::move(chunks_.front());
      chunks_.pop_front();
      room_ -= chunk.room;
    }
    if (chunk.room < room) {
      chunk.room = room;
      chunk.bytes = std::make_unique_for_overwrite<std::byte[]>(room);
    }
    chunk.begin = chunk.end = at;
    room_ += chunk.room;
    chunks_.push_back(std::move(chunk));
  }

  const size_t budget_bytes_;
  const size_t chunk_bytes_;
  size_t room_ = 0;  // of all chunks
  std::deque<Chunk> chunks_;
};

}  // namespace dbx
