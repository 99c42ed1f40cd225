// What decoders of small files (a manifest, an anchor) say of bytes that they cannot take.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace dbx {

// Refuses for one file, by name: throws Error with the offset of the bytes and the reason. `file` outlives it.
class Refusal {
 public:
  explicit Refusal(const std::string& file) : file_(file) {}
  void Unless(bool holds, size_t offset, const char* why, ExitStatus status = ExitStatus::kCorrupt) const {
    if (!holds) throw Error(status, "cannot read " + file_ + "@" + std::to_string(offset) + ": " + why);
  }

 private:
  const std::string& file_;
};

}  // namespace dbx
