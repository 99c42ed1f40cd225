// Random numbers and 64-bit mixing.
//
// Mix64 and HashPair are the hashes that the workloads write into rows: fixed for ever, because a log may
// be replayed by a later build. Random is xoshiro256** (Blackman and Vigna), seeded through splitmix64: fast,
// 32 bytes, the same sequence on every machine. An object belongs to one thread. Not for secrets.
#pragma once

#include <bit>
#include <cstdint>

namespace dbx {

// A bijection of 64-bit words in which every input bit changes every output bit with a chance of about a
// half (the finaliser of splitmix64).
constexpr uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Hashes two words; HashPair(a, b) != HashPair(b, a) in general. A bijection of `a` for every fixed `b`, and
// folding b then c differs from folding c then b: writes that use it do not commute and lose nothing.
constexpr uint64_t HashPair(uint64_t a, uint64_t b) { return Mix64(a ^ Mix64(b)); }

class Random {
 public:
  explicit constexpr Random(uint64_t seed) {
    for (uint64_t& word : state_) word = Mix64(seed++);
  }
  // A stream of its own for each (seed, stream).
  constexpr Random(uint64_t seed, uint64_t stream) : Random(HashPair(seed, stream)) {}

  constexpr uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound), bound > 0. Multiplication instead of division; the bias is below bound / 2^64.
  constexpr uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // Uniform in [low, high].
  constexpr uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  // Uniform in [0, 1).
  constexpr double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  // True with this probability.
  constexpr bool Chance(double probability) { return Unit() < probability; }

 private:
  uint64_t state_[4]{};
};

}  // namespace dbx
