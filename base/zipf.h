// Skewed choices: a Zipf distribution over ranks, and a permutation that scatters the ranks over the keys.
//
// Zipf draws rank k of [0, n) with probability proportional to 1 / (k + 1)^theta, for every theta >= 0, by
// rejection-inversion (W. Hoermann and G. Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", ACM TOMACS 6(3), 1996): constant time, no table, exact for any n.
// Permutation is a fixed bijection of [0, n): a Feistel network over the next power of four, walked until it
// lands below n. Both are immutable and may be shared by threads.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace dbx {

class Zipf {
 public:
  // REQUIRES: n > 0, theta >= 0.
  Zipf(uint64_t n, double theta);

  // A rank in [0, n); 0 is the most frequent.
  uint64_t Sample(Random& random) const;

 private:
  // In the paper's names, with h(x) = x^-theta: H is the integral of h from 1 to x.
  double h(double x) const;
  double H(double x) const;
  double InverseH(double x) const;

  uint64_t n_;
  double theta_;
  double h_first_;   // H at the lower end of the first rank's bar
  double h_last_;    // H at the upper end of the last rank's bar
  double accept_s_;  // ranks this close to the drawn point are accepted without computing h
};

class Permutation {
 public:
  // REQUIRES: n > 0. Equal (n, salt) give equal permutations.
  explicit Permutation(uint64_t n, uint64_t salt = 0);

  // REQUIRES: i < n.
  uint64_t operator()(uint64_t i) const;

 private:
  static constexpr int kRounds = 4;

  uint64_t n_;
  uint64_t salt_;
  int half_bits_;  // the network permutes words of twice this many bits, of which there are fewer than 4 n
};

}  // namespace dbx
