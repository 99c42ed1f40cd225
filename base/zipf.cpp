#include "base/zipf.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"

namespace dbx {
namespace {

// expm1(x) / x and log1p(x) / x, by their series where the quotient would be 0 / 0 (theta near 1).
double Expm1Over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2 * (1 + x / 3); }
double Log1pOver(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x * (0.5 - x / 3); }

}  // namespace

Zipf::Zipf(uint64_t n, double theta) : n_(n), theta_(theta) {
  CHECK(n > 0);
  CHECK(theta >= 0);
  h_first_ = H(1.5) - 1;
  h_last_ = H(static_cast<double>(n) + 0.5);
  accept_s_ = 2 - InverseH(H(2.5) - h(2));
}

uint64_t Zipf::Sample(Random& random) const {
  for (;;) {
    const double u = h_last_ + random.Unit() * (h_first_ - h_last_);
    const double x = InverseH(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (k - x <= accept_s_ || u >= H(k + 0.5) - h(k)) return std::min(static_cast<uint64_t>(k), n_) - 1;
  }
}

double Zipf::h(double x) const { return std::exp(-theta_ * std::log(x)); }

double Zipf::H(double x) const {
  const double log_x = std::log(x);
  return Expm1Over((1 - theta_) * log_x) * log_x;
}

double Zipf::InverseH(double x) const {
  // Rounding may carry the argument past the pole of the logarithm, where theta > 1.
  const double t = std::max(x * (1 - theta_), -1.0);
  return std::exp(Log1pOver(t) * x);
}

Permutation::Permutation(uint64_t n, uint64_t salt)
    : n_(n), salt_(salt), half_bits_(std::max(1, (static_cast<int>(std::bit_width(n - 1)) + 1) / 2)) {
  CHECK(n > 0);
}

uint64_t Permutation::operator()(uint64_t i) const {
  ASSERT(i < n_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  do {
    uint64_t left = i >> half_bits_;
    uint64_t right = i & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t mixed = HashPair(right, salt_ + static_cast<uint64_t>(round)) & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    i = left << half_bits_ | right;
  } while (i >= n_);
  return i;
}

}  // namespace dbx
