// The log builder: the bytes that other tests rely on.
#include "tests/logging/log_builder.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/crc32c.h"

namespace dbx {
namespace {

format::RecordHeader HeaderAt(const LogBytes& file, uint64_t lsn) {
  format::RecordHeader header;
  std::memcpy(&header, file.data() + FileOffset(lsn), sizeof header);
  return header;
}
uint64_t WordAt(const LogBytes& file, uint64_t lsn) {
  uint64_t word;
  std::memcpy(&word, file.data() + FileOffset(lsn), sizeof word);
  return word;
}

TEST(LogBuilder, BothHeaderCopiesAreChecksummed) {
  const LogBytes file = LogBuilder(7, 1, 2, format::Scheme::kTaurus).Config("A=1\n").Bytes();
  ASSERT_EQ(file.size(), format::kStreamOffset);
  EXPECT_EQ(std::memcmp(file.data(), file.data() + 4096, 4096), 0);
  format::FileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  const uint32_t crc = std::exchange(header.header_crc, 0);
  EXPECT_EQ(crc, Crc32c(std::as_bytes(std::span(&header, 1))));
  EXPECT_EQ(header.log_index, 1u);
  EXPECT_EQ(std::string_view(header.config, header.config_bytes), "A=1\n");
}

TEST(LogBuilder, RecordsFollowEachOtherAndBearTheirLsn) {
  LogBuilder log(7);
  log.Command(1, 2, "abc").Void(40).Data(3, {Put(4, 5, "x")}).RunEnd();
  const LogBytes file = log.Bytes();
  EXPECT_EQ(log.Starts(), (std::vector<uint64_t>{0, 48, 88, 152}));
  for (const uint64_t start : log.Starts()) {
    const format::RecordHeader header = HeaderAt(file, start);
    EXPECT_EQ(header.lsn, start);
    EXPECT_EQ(header.header_crc, Crc32c(std::as_bytes(std::span(&header, 1)).subspan(4)));
  }
  EXPECT_EQ(HeaderAt(file, 0).procedure, 2u);
  EXPECT_EQ(WordAt(file, 32), 1u);
  EXPECT_EQ(HeaderAt(file, 48).body_crc, 0u);
}

TEST(LogBuilder, ElementsThatTheAnchorCoversAreLeftOut) {
  LogBuilder log(7, 0, 4, format::Scheme::kTaurus);
  log.Anchor({7, 16, 2, 4}).Command(9, 0, {}, {4, 45, 1, 2});
  const LogBytes file = log.Bytes();
  EXPECT_EQ(HeaderAt(file, log.Start(1)).lv_mask, 0b0010u);
  EXPECT_EQ(WordAt(file, log.Start(1) + 40), 45u);
  EXPECT_EQ(log.End(), log.Start(1) + 48);
}

TEST(LogBuilder, UncompressedLogsStoreEveryElement) {
  LogBuilder log(7, 0, 2, format::Scheme::kTaurus);
  log.Uncompressed().Anchor({7, 16}).Command(9, 0, {}, {4, 5});
  EXPECT_EQ(HeaderAt(log.Bytes(), log.Start(1)).lv_mask, 0b11u);
}

TEST(LogBuilder, APadEndsOnABlock) {
  LogBuilder log(7);
  log.Command(1, 0).Pad();
  EXPECT_EQ(log.End(), 4096u);
  EXPECT_EQ(WordAt(log.Bytes(), log.Start(1) + 32), 40u);  // what was before it had been durable
  log.Void(4096 - 32).Pad();
  EXPECT_EQ(log.End(), 3 * 4096u);  // 32 bytes are too few for a PAD
}

TEST(LogBuilder, DamageStaysWhereItWasAskedFor) {
  const LogBytes file = LogBuilder(7).Command(1, 0).Pad().Bytes();
  EXPECT_EQ(FlipBit(FlipBit(file, 9000, 3), 9000, 3), file);
  EXPECT_NE(FlipBit(file, 9000, 3), file);
  EXPECT_EQ(Truncate(AppendGarbage(file, 100, 1), file.size()), file);
  EXPECT_EQ(Transplant(ZeroBytes(file, 8192), 8192, file, 8192, 4096), file);
  EXPECT_EQ(Truncate(file, 10).size(), 10u);
}

}  // namespace
}  // namespace dbx
