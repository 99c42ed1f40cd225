// Random keys for look-ups. xorshift64*: a few cycles, so that the generator does not show.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace dbx {

class KeyGenerator {
 public:
  // Keys below `keys`; another seed, such as a thread's number, gives others.
  KeyGenerator(int seed, uint64_t keys) : state_(static_cast<uint64_t>(seed + 1) * 0x9e3779b97f4a7c15), keys_(keys) {}
  Key Next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<Key>((static_cast<unsigned __int128>(state_ * 0x2545f4914f6cdd1d) * keys_) >> 64);
  }

 private:
  uint64_t state_;
  const uint64_t keys_;
};

}  // namespace dbx
