// LSN vectors whose elements an anchor fills in: replay lanes and reference read what was meant.
//
// The input is a program: number of logs, number of lanes, then records of log 0; the other logs are empty.
#include <map>

#include "logging/replay_lanes.h"
#include "system/reference/reference_replay.h"
#include "tests/fuzz/fuzz.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::fuzz {
namespace {

using recovery_test::ImageDevice;
using recovery_test::kRunId;
using recovery_test::LogImage;
using Lv = std::array<uint64_t, format::kMaxLogs>;

struct Program {
  std::vector<LogImage> logs;
  uint32_t lanes = 1;
  std::map<uint64_t, Lv> meant;  // by LSN
};

Program Run(Input& input) {
  Program program;
  const uint32_t count = 1 + input.Take<uint8_t>() % format::kMaxLogs;
  program.lanes = 1 + input.Take<uint8_t>() % 3;
  for (uint32_t log = 0; log < count; ++log) program.logs.emplace_back(log, count);
  LogImage& image = program.logs[0];
  Lv anchor{};
  while (!input.empty() && image.end() < 64 << 10) {
    if (input.Take<uint8_t>() % 4 == 0) {
      for (uint32_t j = 0; j < count; ++j) anchor[j] = input.Take<uint16_t>();
      anchor[0] = std::min(anchor[0], image.end());
      image.Anchor({anchor.begin(), anchor.begin() + count});
      continue;
    }
    const auto mask = static_cast<uint16_t>(input.Take<uint16_t>() & ((1u << count) - 1));
    std::vector<uint64_t> body{image.starts().size()};
    Lv lv = anchor;
    for (uint32_t j = 0; j < count; ++j) {
      if (mask >> j & 1) body.push_back(lv[j] = input.Take<uint16_t>() * 0x100000001u);
    }
    body.resize(body.size() + input.Take<uint8_t>() % 4);
    program.meant[image.end()] = lv;
    image.Append(body.size() % 2 == 0 ? format::RecordKind::kCommand : format::RecordKind::kData, body, mask);
  }
  return program;
}

void CompareLanes(const Program& program) {
  std::vector<std::unique_ptr<ImageDevice>> devices;
  std::vector<LogSource> sources;
  for (const LogImage& image : program.logs) {
    devices.push_back(std::make_unique<ImageDevice>("log", image.bytes()));
    sources.push_back({devices.back().get(), kRunId, 0, image.index(), image.count()});
  }
  ReplayLanes lanes(sources, 1, program.lanes, format::kBlockBytes);
  const WorkerId worker(0);
  size_t seen = 0;
  while (lanes.Decode(worker) != ReplayLanes::Decoded::kDone) {
    for (size_t i = 0; i < lanes.lanes().size(); ++i, lanes.MoveOn(worker)) {
      ReplayLanes::Lane& lane = *lanes.Hold(worker);
      while (const TxnRecord* record = lanes.Head(lane)) {
        const Lv& meant = program.meant.at(record->lsn.value());
        const uint64_t* stored = record->lv;
        for (uint32_t j = 0; j < program.logs.size(); ++j) {
          const uint64_t element = record->lv_mask >> j & 1 ? *stored++ : lane.anchors[record->anchor][j].value();
          Require(element == meant[j], "a lane reads another element than was written");
        }
        ++seen;
        lanes.Pop(lane);
      }
    }
  }
  Require(seen == program.meant.size(), "the lanes hold another number of records");
}

void CompareReference(const Program& program) {
  std::vector<std::vector<std::byte>> files;
  for (const LogImage& image : program.logs) {
    files.push_back(FileHeaderOf(kRunId, image.index(), image.count(), format::Scheme::kTaurus, 0));
    files.back().insert(files.back().end(), image.stream().begin(), image.stream().end());
  }
  const reference::ReferenceLogs logs = reference::ReadLogs(files);
  size_t seen = 0;
  for (reference::Cursor cursor(logs, 0); !cursor.AtEnd(); cursor.Next()) {
    if (!cursor.record().IsTxn()) continue;
    ++seen;
    Require(cursor.record().lv == program.meant.at(cursor.record().lsn), "the reference reads another vector");
  }
  Require(seen == program.meant.size(), "the reference sees another number of records");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dbx::fuzz::Input input(data, size);
  const dbx::fuzz::Program program = dbx::fuzz::Run(input);
  dbx::fuzz::CompareLanes(program);
  dbx::fuzz::CompareReference(program);
  return 0;
}
