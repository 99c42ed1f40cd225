// Walks what a record holds of its rows: entries, each followed by as many bytes as its `length` says and padding to
// whole words. Every bound is checked, as the bytes come from a file. Threads: none of its own.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "storage/row.h"

namespace dbx {

template <class Entry>
class PaddedEntries {
 public:
  explicit PaddedEntries(std::span<const std::byte> bytes) : left_(bytes) {}

  // Whether what ended the walk was no end of the entries.
  bool malformed() const { return malformed_; }

 protected:
  // The next entry and the bytes behind it, or false at the end or at malformed bytes: malformed() tells which.
  // `is_sane(entry)` is asked before anything is taken.
  bool NextEntry(Entry& entry, std::span<const std::byte>& bytes, auto&& is_sane) {
    if (left_.empty()) return false;
    malformed_ = true;
    if (left_.size() < sizeof entry) return false;
    std::memcpy(&entry, left_.data(), sizeof entry);
    const size_t padded = RoundedUpToWords(entry.length);
    if (padded > left_.size() - sizeof entry || !is_sane(entry)) return false;
    malformed_ = false;
    bytes = left_.subspan(sizeof entry, entry.length);
    left_ = left_.subspan(sizeof entry + padded);
    return true;
  }

 private:
  std::span<const std::byte> left_;
  bool malformed_ = false;
};

}  // namespace dbx
