// XOR of byte strings against one byte after the other.
#include "base/xor_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dbx {
namespace {

using Bytes = std::vector<std::byte>;

Bytes RandomBytes(size_t bytes, std::mt19937& random) {
  Bytes result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

TEST(XorBytes, OfEveryLengthAndAlignment) {
  std::mt19937 random(1);
  for (size_t bytes = 0; bytes < 100; ++bytes) {
    for (size_t shift = 0; shift < 8; ++shift) {
      const Bytes a = RandomBytes(bytes + shift, random), b = RandomBytes(bytes + shift, random);
      Bytes expected(bytes + 1), to(bytes + 1);
      for (size_t i = 0; i < bytes; ++i) expected[i] = a[shift + i] ^ b[shift + i];
      XorInto(to.data(), a.data() + shift, b.data() + shift, bytes);
      EXPECT_EQ(to, expected);
      to.assign(a.begin() + static_cast<ptrdiff_t>(shift), a.end());
      XorBytes(to.data(), b.data() + shift, bytes);
      expected.pop_back();
      EXPECT_EQ(to, expected);
    }
  }
}

}  // namespace
}  // namespace dbx
