// What system/ack_file.h is in the simulation: acknowledgements are kept by the oracle, and a recovery is asked for
// those that had been given at its crash. Paths mean nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace dbx {

class AckFile {
 public:
  static std::unique_ptr<AckFile> Create(const std::string&, uint64_t, uint32_t, uint64_t) {
    return std::make_unique<AckFile>();
  }
  static std::unique_ptr<AckFile> Open(const std::string&, std::optional<uint64_t> = std::nullopt) {
    return std::make_unique<AckFile>();
  }

  void Acknowledge(TxnId) {}
  template <class Visit>
  void ForEachAcknowledged(Visit&& visit) const {
    for (const uint64_t id : expected) visit(TxnId{id});
  }
  uint64_t unrecorded() const { return 0; }

  // The writers that had been acknowledged when the recovery's image was taken, ascending.
  static inline std::vector<uint64_t> expected;
};

}  // namespace dbx
