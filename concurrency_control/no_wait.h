// Two-phase locking without waiting (NO_WAIT): a transaction that meets a conflicting lock aborts. Its locks name no
// holder: a bit and a count of shares.
#pragma once

#include <cstdint>
#include <string_view>

namespace dbx {

struct NoWait {
  static constexpr std::string_view kName = "NO_WAIT";
  static constexpr bool kDetectsDeadlocks = false;
  static constexpr bool kWaits = false;

  struct Shared {
    explicit Shared(uint32_t) {}
  };

  template <class Places>
  using Locks = Places;
};

}  // namespace dbx
