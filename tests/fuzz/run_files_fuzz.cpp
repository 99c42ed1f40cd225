// What a run leaves besides logs: `frozen`, `successor`, `manifest`, checkpoints, `frontier`, anchors, backups. The
// first byte of the input says which. The rest overwrites the start of a whole one; but for a checkpoint it is part,
// number of parts and blocks: for each a length, a kind, a number of rows and that many bytes; for a frontier, its
// number of logs and its blocks. Checksums are made right, so that the fields themselves are looked at.
#include <algorithm>

#include "logging/frontier_file.h"
#include "storage/digest.h"
#include "system/runs/checkpoint.h"
#include "system/runs/continuation.h"
#include "tests/fuzz/frontier_input.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/run_files_input.h"
#include "tests/fuzz/two_tables.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx::fuzz {
namespace {

constexpr uint64_t kFrontierRunId = 8;

// A file that is accepted is one that the encoder writes: encoded again it has the same bytes.
void TryOne(std::span<const std::byte> changes, std::vector<std::byte> file, auto seal, auto encode, auto decode) {
  std::copy_n(changes.begin(), std::min(changes.size(), file.size()), file.begin());
  for (const bool sealed : {false, true}) {
    if (sealed) seal(file);
    decltype(decode(file, "file")) taken;
    if (IsTaken([&] { taken = decode(file, "file"); })) Require(encode(taken) == file, "a file that is never written");
  }
}

// Its rows, written to another checkpoint, come back as they were.
void TryCheckpoint(std::span<const std::byte> bytes) {
  FaultyFileSystem files;
  files.Create("1", {});
  files.Change("1", [&](SparseBytes& file) { file.Write(0, bytes); });
  CheckpointSummary summary;
  if (!IsTaken([&] { summary = InspectCheckpointPart(files, "1"); })) return;
  TwoTables first, second;
  const auto load = [&] {
    LoadCheckpointPart(files, "1", summary.identity, summary.part, first.database, WorkerId(0));
  };
  if (!IsTaken(load)) return;
  const CheckpointIdentity identity{1, 2, 3, 0, 1};
  const format::CheckpointPart part = WriteCheckpointPart(files, "2", {}, identity, first.database);
  LoadCheckpointPart(files, "2", identity, part, second.database, WorkerId(0));
  Require(DigestOf(first.database) == DigestOf(second.database), "rows that change when written and read");
}

// What it says is written as the product writes it, and read once more; a torn block behind it says nothing.
void TryFrontier(std::span<const std::byte> bytes) {
  DurableFrontier taken, again;
  if (!IsTaken([&] { taken = ReadFrontier(bytes, kFrontierRunId, "file"); })) return;
  FaultyFileSystem files;
  FrontierFile(files.Create("1", {}), kFrontierRunId).Append(taken.stamp, taken.lsns);
  files.Change("1", [](SparseBytes& file) { file.Resize(file.size() + 2 * sizeof(format::FrontierBlock) - 1); });
  again = ReadFrontier(files.Map("1").bytes, kFrontierRunId, "1");
  Require(taken.stamp == again.stamp && taken.lsns == again.lsns, "a frontier that changes when written and read");
}

// A part of three pages that is taken has these pages.
void TryBackup(std::span<const std::byte> changes) {
  constexpr uint32_t kPages = 3, kNumber = 5;
  const BackupShape shape = SomeShape();
  const size_t frame_bytes = shape.FrameBytes(0);
  FaultyFileSystem files;
  files.MakeDirectory("d");
  std::vector<std::byte> frames(kPages * frame_bytes);
  BackupWriter(files, shape, true).Write(0, TableId(0), 0, kNumber, frames);
  files.Change(shape.PathOf(0, 0, 0), [&](SparseBytes& file) {
    std::copy_n(changes.begin(), std::min(changes.size(), frames.size()), frames.begin());
    for (uint32_t i = 0; i < kPages; ++i) SealFrame(std::span(frames).subspan(i * frame_bytes, frame_bytes));
    file.Write(0, frames);
  });
  const BackupReader reader(files, shape, 0, kNumber, {kPages});
  uint32_t pages = 0;
  const bool taken = IsTaken([&] {
    reader.ReadPart(TableId(0), 0, [&](uint32_t page, const std::byte*) { Require(page == pages++, "another page"); });
  });
  Require(!taken || pages == kPages, "a backup without some of its pages");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  using namespace dbx::fuzz;
  Input input(data, size);
  const auto kind = static_cast<RunFile>(input.Take<uint8_t>() % kRunFiles);
  if (kind == RunFile::kFrozen) {
    TryOne(input.Rest(), EncodeFrozen(SomeFrozen()), Seal<format::FrozenFile>, EncodeFrozen, DecodeFrozen);
  } else if (kind == RunFile::kSuccessor) {
    TryOne(input.Rest(), EncodeSuccessor(SomeSuccessor()), Seal<format::SuccessorFile>, EncodeSuccessor,
           DecodeSuccessor);
  } else if (kind == RunFile::kManifest) {
    TryOne(input.Rest(), EncodeManifest(SomeManifest()), Seal<format::ManifestFile>, EncodeManifest, DecodeManifest);
  } else if (kind == RunFile::kAnchor) {
    TryOne(input.Rest(), EncodeAnchor(SomeAnchor()), SealAnchor<format::AnchorFile>, EncodeAnchor, DecodeAnchor);
  } else if (kind == RunFile::kRowAnchor) {
    TryOne(input.Rest(), EncodeRowAnchor(SomeRowAnchor()), SealAnchor<format::RowAnchorFile>, EncodeRowAnchor,
           DecodeRowAnchor);
  } else if (kind == RunFile::kBackup) {
    TryBackup(input.Rest());
  } else if (kind == RunFile::kFrontier) {
    const uint32_t logs = 1 + input.Take<uint8_t>() % format::kMaxLogs;
    TryFrontier(std::as_bytes(std::span(data, size)));
    TryFrontier(FrontierOf(input, 1 + static_cast<uint32_t>(size / (3 + 2 * logs)), kFrontierRunId, logs));
  } else {
    TryCheckpoint(std::as_bytes(std::span(data, size)));
    TryCheckpoint(CheckpointOf(input));
  }
  return 0;
}
