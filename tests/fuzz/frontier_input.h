// A `frontier` file made from an input: blocks that are sealed as the product seals them, or nearly.
#pragma once

#include <vector>

#include "base/crc32c.h"
#include "logging/format.h"
#include "tests/fuzz/fuzz.h"

namespace dbx::fuzz {

// One block: odd:u8 stamp:u16 lsn:u16 for each log. What is odd about it: bit 0 no checksum, bit 1 another run's, bit 2
// another version, bit 3 another number, bit 4 another number of logs; none of it as a rule.
inline format::FrontierBlock FrontierBlockOf(Input& input, uint64_t number, uint64_t run_id, uint32_t log_count) {
  const auto odd = input.Take<uint8_t>();
  format::FrontierBlock block{};
  std::memcpy(block.magic, format::kFrontierMagic, sizeof block.magic);
  block.version = format::kVersion + (odd >> 2 & 1);
  block.run_id = run_id + (odd >> 1 & 1);
  block.number = number + (odd >> 3 & 1);
  block.stamp = input.Take<uint16_t>();
  block.log_count = (odd >> 4 & 1) != 0 ? input.Take<uint8_t>() : log_count;
  for (uint32_t log = 0; log < log_count; ++log) block.lsns[log] = input.Take<uint16_t>();
  if ((odd & 1) == 0) block.crc = Crc32c(std::as_bytes(std::span(&block, 1)));
  return block;
}

inline std::vector<std::byte> FrontierOf(Input& input, uint32_t blocks, uint64_t run_id, uint32_t log_count) {
  std::vector<std::byte> file;
  for (uint32_t number = 0; number < blocks; ++number) {
    const format::FrontierBlock block = FrontierBlockOf(input, number, run_id, log_count);
    const auto bytes = std::as_bytes(std::span(&block, 1));
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  return file;
}

}  // namespace dbx::fuzz
