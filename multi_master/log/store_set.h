// The file `set` of a Log Store: the newest set of stores that it knows (log_store.h).
//
//   set := crc:u32 store:u8 x 3 unused:u8 number:u64      crc: CRC32C of the rest
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "base/crc32c.h"
#include "multi_master/log/log_messages.h"

namespace dbx::mm {

struct StoreSetFile {
  uint32_t crc;
  uint8_t stores[kLogStores];
  uint8_t unused;
  uint64_t number;

  uint32_t CrcOfRest() const { return Crc32c(std::as_bytes(std::span(this, 1)).subspan(sizeof crc)); }
};
static_assert(sizeof(StoreSetFile) == 16);

inline StoreSetFile EncodeStoreSet(const StoreSet& set) {
  StoreSetFile file{};
  std::copy(set.stores.begin(), set.stores.end(), std::begin(file.stores));
  file.number = set.number.value();
  file.crc = file.CrcOfRest();
  return file;
}

// Nothing: the bytes are no such file. What lies behind fills the block up.
inline std::optional<StoreSet> DecodeStoreSet(std::span<const std::byte> bytes) {
  StoreSetFile file;
  if (bytes.size() < sizeof file) return std::nullopt;
  std::memcpy(&file, bytes.data(), sizeof file);
  if (file.crc != file.CrcOfRest()) return std::nullopt;
  StoreSet set{StoreSetNumber(file.number), {}};
  std::copy(std::begin(file.stores), std::end(file.stores), set.stores.begin());
  return set;
}

}  // namespace dbx::mm
