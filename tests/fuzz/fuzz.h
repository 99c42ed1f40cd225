// What the fuzz targets share: input taken apart piece by piece, and the end of one that found something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "logging/format.h"
#include "system/runs/file_header.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace dbx::fuzz {

// A target's verdict: libFuzzer keeps the input.
[[noreturn]] inline void Found(const std::string& what) {
  std::fprintf(stderr, "found: %s\n", what.c_str());
  std::abort();
}
inline void Require(bool condition, const std::string& what) {
  if (!condition) Found(what);
}

// False if what it looks at was refused, which may only be for what the bytes say, in one line.
inline bool IsTaken(const std::function<void()>& take) {
  try {
    take();
    return true;
  } catch (const Error& error) {
    Require(error.status() == ExitStatus::kCorrupt || error.status() == ExitStatus::kMismatch, error.what());
    Require(std::string(error.what()).find('\n') == std::string::npos, "an error of more than one line");
    return false;
  }
}

// Reads numbers from the front of an input; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const std::byte*>(data), size) {}

  bool empty() const { return left_.empty(); }
  template <class T>
  T Take() {
    T value{};
    const auto bytes = TakeBytes(sizeof value);
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::span<const std::byte> TakeBytes(size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> Rest() { return TakeBytes(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

// The two header copies of log `index` of a run of the harness.
inline std::vector<std::byte> FileHeaderOf(uint64_t run_id, uint32_t index, uint32_t count, format::Scheme scheme,
                                           uint64_t ring_bytes, format::Payload payload = format::Payload::kCommand) {
  RunIdentity identity;
  identity.run_id = run_id;
  identity.scheme = scheme;
  identity.payload = payload;
  identity.log_count = count;
  identity.ring_bytes = ring_bytes;
  std::vector<std::byte> file(format::kStreamOffset);
  EncodeHeader(MakeHeader(identity, index), std::span<std::byte, format::kStreamOffset>(file));
  return file;
}

}  // namespace dbx::fuzz
