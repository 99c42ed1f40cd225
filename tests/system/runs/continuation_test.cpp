// `frozen`, `successor` and `manifest`: what is written is read again, and nothing else is believed.
#include "system/runs/continuation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>

#include "base/crc32c.h"
#include "base/error.h"

namespace dbx {
namespace {

FrozenRun SomeFrozen() { return {7, 8, {Lsn(4096), Lsn(8200)}, {{3, 4}}, 55, Lsn(12288), Stamp(99)}; }
RunSuccessor SomeSuccessor() { return {7, 8, 9, 2}; }
RunManifest SomeManifest() {
  return {7, 9, 8, 1, Lsn(12288), 55, Stamp(99), {{8192, 10, 77, 0}, {4096, 0, 78, 0}}, {{3, 4}}};
}

template <class Decode>
ExitStatus StatusOf(Decode&& decode, std::string* what = nullptr) {
  try {
    decode();
  } catch (const Error& error) {
    if (what != nullptr) *what = error.what();
    return error.status();
  }
  return ExitStatus::kOk;
}
ExitStatus Frozen(std::span<const std::byte> bytes, std::string* what = nullptr) {
  return StatusOf([&] { DecodeFrozen(bytes, "f"); }, what);
}
ExitStatus Successor(std::span<const std::byte> bytes, std::string* what = nullptr) {
  return StatusOf([&] { DecodeSuccessor(bytes, "s"); }, what);
}
ExitStatus Manifest(std::span<const std::byte> bytes, std::string* what = nullptr) {
  return StatusOf([&] { DecodeManifest(bytes, "m"); }, what);
}

// The bytes with a field changed and the checksum made right again.
template <class File>
std::vector<std::byte> Changed(std::vector<std::byte> bytes, const std::function<void(File&)>& change) {
  File file;
  std::memcpy(&file, bytes.data(), sizeof file);
  change(file);
  file.crc = 0;
  file.crc = Crc32c(std::as_bytes(std::span(&file, 1)));
  std::memcpy(bytes.data(), &file, sizeof file);
  return bytes;
}

TEST(FrozenRunTest, ComesBackAsItWasWritten) {
  const FrozenRun back = DecodeFrozen(EncodeFrozen(SomeFrozen()), "f");
  EXPECT_EQ(back.frontier, SomeFrozen().frontier);
  EXPECT_EQ(back.digest, SomeFrozen().digest);
  EXPECT_EQ(back.run_id, 8u);
  EXPECT_EQ(back.next_sequence, 55u);
  EXPECT_EQ(back.highest_lsn, Lsn(12288));
  EXPECT_EQ(back.highest_stamp, Stamp(99));
}

TEST(RunSuccessorTest, ComesBackAsItWasWritten) {
  const RunSuccessor back = DecodeSuccessor(EncodeSuccessor(SomeSuccessor()), "s");
  EXPECT_EQ(back.database_id, 7u);
  EXPECT_EQ(back.run_id, 8u);
  EXPECT_EQ(back.child_run_id, 9u);
  EXPECT_EQ(back.child_run, 2u);
}

TEST(RunManifestTest, ComesBackAsItWasWritten) {
  const RunManifest back = DecodeManifest(EncodeManifest(SomeManifest()), "m");
  EXPECT_EQ(back.parent_run_id, 8u);
  EXPECT_EQ(back.start_lsn, Lsn(12288));
  ASSERT_EQ(back.parts.size(), 2u);
  EXPECT_EQ(back.parts[0].rows, 10u);
  EXPECT_EQ(back.parts[1].crc, 78u);
  EXPECT_EQ(back.first_stamp, Stamp(99));
  EXPECT_EQ(back.digest, SomeManifest().digest);
}

TEST(ContinuationFilesTest, AnyFlippedBitAndAnyOtherLengthIsRefused) {
  const std::vector<std::byte> frozen = EncodeFrozen(SomeFrozen()), manifest = EncodeManifest(SomeManifest()),
                               successor = EncodeSuccessor(SomeSuccessor());
  const auto status_of = [&](const auto* kind, std::span<const std::byte> bytes) {
    return kind == &frozen ? Frozen(bytes) : kind == &manifest ? Manifest(bytes) : Successor(bytes);
  };
  for (const auto* bytes : {&frozen, &manifest, &successor}) {
    for (size_t bit = 0; bit < frozen.size() * 8; bit += bit < 2048 ? 1 : 97) {
      std::vector<std::byte> flipped = *bytes;
      flipped[bit / 8] ^= std::byte(1 << bit % 8);
      EXPECT_EQ(status_of(bytes, flipped), ExitStatus::kCorrupt) << bit;
    }
    for (const size_t length : {0u, 1u, 12u, 4095u}) {
      EXPECT_EQ(status_of(bytes, std::span(*bytes).first(length)), ExitStatus::kCorrupt);
    }
  }
  EXPECT_EQ(Manifest(frozen), ExitStatus::kCorrupt);
  EXPECT_EQ(Successor(manifest), ExitStatus::kCorrupt);
}

TEST(ContinuationFilesTest, FieldsOutOfRangeAreRefusedThoughTheChecksumHolds) {
  const auto frozen = [](auto change) {
    return Frozen(Changed<format::FrozenFile>(EncodeFrozen(SomeFrozen()), change));
  };
  const auto manifest = [](auto change) {
    return Manifest(Changed<format::ManifestFile>(EncodeManifest(SomeManifest()), change));
  };
  const auto successor = [](auto change) {
    return Successor(Changed<format::SuccessorFile>(EncodeSuccessor(SomeSuccessor()), change));
  };
  EXPECT_EQ(successor([](auto& s) { s.version = 2; }), ExitStatus::kMismatch);
  EXPECT_EQ(successor([](auto& s) { s.child_run = 0; }), ExitStatus::kCorrupt);
  EXPECT_EQ(successor([](auto& s) { s.child_run_id = 0; }), ExitStatus::kCorrupt);
  EXPECT_EQ(successor([](auto& s) { s.unused_after_child = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(successor([](auto& s) { s.unused[7] = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.version = 2; }), ExitStatus::kMismatch);
  EXPECT_EQ(frozen([](auto& f) { f.log_count = 0; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.log_count = 17; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.has_digest = 2; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.has_digest = 0; }), ExitStatus::kCorrupt);  // but a digest
  EXPECT_EQ(frozen([](auto& f) { f.frontier[2] = 4096; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.unused[7] = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.frontier[1] = 12289; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.highest_lsn = UINT64_MAX; }), ExitStatus::kCorrupt);
  EXPECT_EQ(frozen([](auto& f) { f.next_sequence = UINT64_MAX; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.version = 0; }), ExitStatus::kMismatch);
  EXPECT_EQ(manifest([](auto& m) { m.part_count = 65; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.parts[2].rows = 1; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.has_digest = 2; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.has_digest = 0; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.start_lsn = 100; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.first_sequence = UINT64_MAX; }), ExitStatus::kCorrupt);
  EXPECT_EQ(manifest([](auto& m) { m.parent_run_id = 0; }), ExitStatus::kCorrupt);
}

TEST(ContinuationFilesTest, ErrorsNameFileAndPlace) {
  std::string what;
  Frozen({}, &what);
  EXPECT_EQ(what, "cannot read f@0: the file has another size");
  Manifest(Changed<format::ManifestFile>(EncodeManifest(SomeManifest()), [](auto& m) { m.start_lsn = 1; }), &what);
  EXPECT_EQ(what, "cannot read m@48: impossible LSN");
}

}  // namespace
}  // namespace dbx
