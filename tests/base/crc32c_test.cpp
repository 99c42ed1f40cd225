#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

namespace dbx {
namespace {

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

// The definition, bit by bit.
uint32_t SlowCrc(std::span<const std::byte> data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (std::byte b : data) {
    crc ^= static_cast<uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

std::vector<std::byte> RandomBytes(size_t bytes, std::mt19937_64& random) {
  std::vector<std::byte> data(bytes);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  return data;
}

// RFC 3720, appendix B.4.
TEST(Crc32cTest, KnownAnswersOfTheIscsiStandardHold) {
  std::array<uint8_t, 32> data{};
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(data))), 0x8A9136AAu);
  data.fill(0xFF);
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(data))), 0x62A8AB43u);
  std::iota(data.begin(), data.end(), uint8_t{0});
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(data))), 0x46DD794Eu);
  std::iota(data.rbegin(), data.rend(), uint8_t{0});
  EXPECT_EQ(Crc32c(std::as_bytes(std::span(data))), 0x113FDB5Cu);
}

TEST(Crc32cTest, CheckStringAndEmptyInput) {
  EXPECT_EQ(Crc32c(Bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32cTest, BothPathsAgreeWithTheDefinitionAtEveryLength) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::byte> data = RandomBytes(4096 + 64, random);
  for (size_t length = 0; length < 1200; ++length) {
    const size_t start = random() % 64;
    const auto part = std::span(data).subspan(start, length);
    const uint32_t expected = SlowCrc(part);
    ASSERT_EQ(~crc32c_internal::UpdateInline(~0u, part.data(), length), expected) << start << "+" << length;
    ASSERT_EQ(~crc32c_internal::UpdateLong(~0u, part.data(), length), expected) << start << "+" << length;
    ASSERT_EQ(Crc32c(part), expected) << start << "+" << length;
  }
}

TEST(Crc32cTest, ExtendingPieceByPieceEqualsTheWhole) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const std::vector<std::byte> data = RandomBytes(random() % 5000, random);
    uint32_t crc = 0;
    for (size_t at = 0; at < data.size();) {
      const size_t piece = std::min<size_t>(data.size() - at, 1 + random() % 700);
      crc = Crc32cExtend(crc, std::span(data).subspan(at, piece));
      at += piece;
    }
    ASSERT_EQ(crc, Crc32c(data));
  }
}

TEST(Crc32cTest, EverySingleBitFlipChangesTheCrc) {
  std::mt19937_64 random(1);
  std::vector<std::byte> data = RandomBytes(300, random);
  const uint32_t intact = Crc32c(data);
  for (size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(Crc32c(data), intact) << bit;
    data[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace dbx
