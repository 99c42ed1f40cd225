#include "system/runs/file_header.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/logging/caught.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

using format::FileHeader;
using Image = std::vector<std::byte>;

RunIdentity Identity() {
  return {.database_id = 11,
          .run_id = 22,
          .scheme = format::Scheme::kTaurus,
          .payload = format::Payload::kCommand,
          .log_count = 3,
          .ring_bytes = 1 << 20,
          .schema_hash = 33,
          .config = "workload=YCSB\nsynth_table_size=1000\n"};
}

Image Encoded(const FileHeader& header) {
  Image image(format::kStreamOffset);
  EncodeHeader(header, std::span<std::byte, format::kStreamOffset>(image));
  return image;
}

ExitStatus Decode(const Image& image, std::string& what) {
  return Caught([&] { DecodeHeader(image, "d/log-01.log"); }, what);
}

TEST(FileHeaderTest, WhatIsEncodedIsDecoded) {
  const FileHeader header = MakeHeader(Identity(), 1);
  const FileHeader decoded = DecodeHeader(Encoded(header), "f");
  EXPECT_EQ(std::memcmp(&header, &decoded, sizeof header), 0);
  EXPECT_EQ(decoded.log_index, 1);
  EXPECT_EQ(decoded.run_id, 22u);
  EXPECT_EQ(ConfigText(decoded), Identity().config);
}

TEST(FileHeaderTest, FeaturesAreThoseOfTheRun) {
  for (const uint32_t features : {0u, 1u, 2u, 4u, 5u, 6u}) {
    RunIdentity identity = Identity();
    if ((features & format::kFeatureContinues) != 0) identity.parent_run_id = 21, identity.parent_run = 1;
    if ((features & format::kFeatureStriped) != 0) identity.stripe_bytes = 4096;
    identity.row_checkpoints = (features & format::kFeatureRowCheckpoints) != 0;
    const FileHeader decoded = DecodeHeader(Encoded(MakeHeader(identity, 1)), "f");
    EXPECT_EQ(decoded.required_features, features);
    EXPECT_EQ(Continues(decoded), features % 2 != 0);
    EXPECT_EQ(IsStripe(decoded), identity.stripe_bytes != 0);
    EXPECT_EQ(HasRowCheckpoints(decoded), identity.row_checkpoints);
  }
}

TEST(FileHeaderTest, EveryByteOfTheFirstCopyMayBeDamaged) {
  const Image intact = Encoded(MakeHeader(Identity(), 1));
  for (size_t at = 0; at < format::kHeaderCopyBytes; ++at) {
    Image image = intact;
    image[at] ^= std::byte{0x40};
    ASSERT_EQ(DecodeHeader(image, "f").run_id, 22u) << at;
  }
}

TEST(FileHeaderTest, DamageToBothCopiesIsRefusedWithFileAndOffset) {
  Image image = Encoded(MakeHeader(Identity(), 1));
  image[100] ^= std::byte{1};
  image[format::kHeaderCopyBytes + 2000] ^= std::byte{1};
  std::string what;
  EXPECT_EQ(Decode(image, what), ExitStatus::kCorrupt);
  EXPECT_EQ(what,
            "cannot read log header d/log-01.log@0: header checksum does not match, nor is the second copy intact");
}

TEST(FileHeaderTest, ZerosGarbageAndEveryTruncationBelowOneCopyAreRefused) {
  std::string what;
  EXPECT_EQ(Decode(Image(format::kStreamOffset), what), ExitStatus::kCorrupt);
  EXPECT_NE(what.find("not a log file"), std::string::npos) << what;
  const Image intact = Encoded(MakeHeader(Identity(), 1));
  for (size_t bytes = 0; bytes < format::kHeaderCopyBytes; ++bytes) {
    ASSERT_EQ(Decode(Image(intact.begin(), intact.begin() + static_cast<ptrdiff_t>(bytes)), what),
              ExitStatus::kCorrupt);
    ASSERT_NE(what.find("ends inside its header"), std::string::npos) << bytes;
  }
  EXPECT_EQ(Decode(Image(intact.begin(), intact.begin() + format::kHeaderCopyBytes), what), ExitStatus::kOk);
}

TEST(FileHeaderTest, UnknownVersionsFeaturesAndSchemesAreMismatches) {
  const std::vector<std::pair<std::string, std::function<void(FileHeader&)>>> changes = {
      {"format version 2", [](FileHeader& h) { h.version = 2; }},
      {"requires features 8", [](FileHeader& h) { h.required_features = 8; }},
      {"unknown logging scheme 200", [](FileHeader& h) { h.scheme = 200; }},
      {"unknown payload 9", [](FileHeader& h) { h.payload = 9; }},
      {"starts at LSN 8", [](FileHeader& h) { h.start_lsn = 8; }}};
  for (const auto& [words, change] : changes) {
    FileHeader header = MakeHeader(Identity(), 1);
    change(header);
    std::string what;
    EXPECT_EQ(Decode(Encoded(header), what), ExitStatus::kMismatch);
    EXPECT_NE(what.find("d/log-01.log@0: " + words), std::string::npos) << what;
  }
}

TEST(FileHeaderTest, FieldsOutOfRangeAreCorruptThoughTheChecksumHolds) {
  const std::vector<std::function<void(FileHeader&)>> changes = {
      [](FileHeader& h) { h.log_count = 0; }, [](FileHeader& h) { h.log_count = 17; },
      [](FileHeader& h) { h.log_index = 3; }, [](FileHeader& h) { h.config_bytes = sizeof h.config + 1; }};
  for (const auto& change : changes) {
    FileHeader header = MakeHeader(Identity(), 1);
    change(header);
    std::string what;
    EXPECT_EQ(Decode(Encoded(header), what), ExitStatus::kCorrupt) << what;
  }
}

TEST(FileHeaderTest, ADeviceIsReadAndNamed) {
  FaultyFileSystem files;
  const auto device = files.Create("disk7", {});
  device->StartWrite(0, Encoded(MakeHeader(Identity(), 2)));
  EXPECT_EQ(ReadHeader(*device).log_index, 2);
  const auto empty = files.Create("disk8", {});
  std::string what;
  EXPECT_EQ(Caught([&] { ReadHeader(*empty); }, what), ExitStatus::kCorrupt);
  EXPECT_TRUE(what.starts_with("cannot read log header disk8@0: the file ends")) << what;
}

TEST(FileHeaderTest, RandomIdsDiffer) {
  EXPECT_NE(RandomId(), RandomId());
  EXPECT_NE(RandomId(), 0u);
}

class SameRunTest : public ::testing::Test {
 protected:
  SameRunTest() {
    for (uint32_t i = 0; i < 3; ++i) headers_.push_back(MakeHeader(Identity(), i));
  }
  std::string Mismatch() {
    std::string what;
    EXPECT_EQ(Caught([&] { CheckSameRun(headers_, files_); }, what), ExitStatus::kMismatch) << what;
    return what;
  }
  std::vector<FileHeader> headers_;
  std::vector<std::string> files_{"f0", "f1", "f2"};
};

TEST_F(SameRunTest, TheLogsOfOneRunPass) { EXPECT_NO_THROW(CheckSameRun(headers_, files_)); }

TEST_F(SameRunTest, EachDifferenceNamesBothFiles) {
  const std::vector<std::pair<std::string, std::function<void(RunIdentity&)>>> changes = {
      {"run id", [](RunIdentity& r) { r.run_id = 23; }},
      {"database id", [](RunIdentity& r) { r.database_id = 12; }},
      {"logging scheme", [](RunIdentity& r) { r.scheme = format::Scheme::kSerial; }},
      {"log type", [](RunIdentity& r) { r.payload = format::Payload::kData; }},
      {"number of logs", [](RunIdentity& r) { r.log_count = 4; }},
      {"schema", [](RunIdentity& r) { r.schema_hash = 34; }},
      {"row checkpoints", [](RunIdentity& r) { r.row_checkpoints = true; }},
      {"configuration", [](RunIdentity& r) { r.config += "seed=2\n"; }}};
  for (const auto& [words, change] : changes) {
    RunIdentity other = Identity();
    change(other);
    headers_[2] = MakeHeader(other, 2);
    EXPECT_EQ(Mismatch(), "logs of different runs: f0 and f2 differ in " + words);
  }
}

TEST_F(SameRunTest, ALogThereTwiceNamesBothFiles) {
  headers_[2] = headers_[1];
  EXPECT_EQ(Mismatch(), "log 1 is there twice: f1 and f2");
}

TEST_F(SameRunTest, AMissingLastLogIsNoticed) {
  headers_.pop_back();
  files_.pop_back();
  EXPECT_EQ(Mismatch(), "log 2 of 3 is missing: f0 names their number");
}

TEST_F(SameRunTest, SwappedFilesAreNoticed) {
  std::swap(headers_[0], headers_[2]);
  EXPECT_EQ(Mismatch(), "logs in the wrong order: f0 is log 2, and f2 is another");
}

}  // namespace
}  // namespace dbx
