// The four methods of a central log over a stream with its writer: what they append is whole, in order and durable, and
// the last record of an idle system too.
#include "logging/eleda/central_log.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "base/error.h"
#include "logging/record_builder.h"
#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

std::string NameOf(CentralMethod method) {
  constexpr const char* kNames[] = {"Eleda", "Mutex", "Consolidation", "Bitmap"};
  return kNames[static_cast<size_t>(method)];
}

struct Anchors final : FlushHooks {
  void BeforeFlush(LogStream& stream) override {
    const uint64_t durable = stream.persistent_until().value();
    stream.AppendOwn(format::RecordKind::kAnchor, {&durable, 1});
  }
};

class CentralLogTest : public ::testing::TestWithParam<CentralMethod> {
 protected:
  void Open(uint64_t ring_bytes, uint32_t workers, Lsn start_lsn = {}) {
    auto device = files_.Create("log", {});
    std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    device->Complete(true);
    std::vector<LogSet::Target> targets;
    targets.push_back({std::move(device), 0});
    LogSetOptions options;
    options.ring_bytes = ring_bytes;
    options.workers = workers;
    options.start_lsn = start_lsn;
    logs_ = std::make_unique<LogSet>(std::move(targets), options);
    log_ =
        std::make_unique<CentralLog>(*logs_, LogOptions{.central_method = GetParam(), .hopping_distance_bytes = 4096});
    logs_->Start(anchors_);
  }

  LogStream& stream() { return logs_->stream(0); }
  void Append(uint32_t worker, uint32_t bytes) {
    const LogPlace place = log_->Reserve(worker, bytes);
    if (bytes % 24 == 0) return log_->Void(worker, place);
    std::memset(stream().at(place), 0xAB, place.bytes);
    SealRecord(stream().at(place), stream().HeaderFor(place, format::RecordKind::kCommand));
    log_->Submit(worker, place);
  }
  bool BecomesDurable(Lsn lsn) {
    for (int i = 0; i < 5000 && stream().persistent_until() < lsn; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return stream().persistent_until() >= lsn;
  }
  // The end of the durable records, each where it says it is, whole.
  Lsn CheckedPrefix(Lsn start_lsn) {
    const std::vector<std::byte> image = files_.CrashImage(FaultyFileSystem::Crash::kDurableOnly).files.at("log").All();
    uint64_t at = 0;
    while (format::kStreamOffset + at + sizeof(format::RecordHeader) <= image.size()) {
      const std::byte* record = image.data() + format::kStreamOffset + at;
      format::RecordHeader header;
      std::memcpy(&header, record, sizeof header);
      if (header.lsn != start_lsn.value() + at || header.header_crc != HeaderCrc(header)) break;
      const std::span body(record + sizeof header, header.length - sizeof header);
      if (header.kind != static_cast<uint8_t>(format::RecordKind::kVoid) && header.body_crc != Crc32c(body)) break;
      at += header.length;
    }
    return start_lsn + at;
  }

  FaultyFileSystem files_;
  Anchors anchors_;
  std::unique_ptr<CentralLog> log_;  // outlives the writers
  std::unique_ptr<LogSet> logs_;
};

TEST_P(CentralLogTest, TheLastRecordOfAnIdleSystemBecomesDurable) {
  Open(1 << 20, 2);
  Append(0, 64);
  EXPECT_TRUE(BecomesDurable(Lsn(64)));
  // Long enough for the writer to go to sleep without a timeout.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Lsn before = stream().reserved_until();
  Append(1, 64);
  EXPECT_TRUE(BecomesDurable(before + 64));
}

TEST_P(CentralLogTest, WhatManyWorkersAppendIsWholeOverManyLaps) {
  Open(64 << 10, 4);
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < 4; ++w) {
    threads.emplace_back([this, w] {
      std::mt19937 random(w);
      for (int i = 0; i < 2000; ++i) Append(w, 40 + 8 * (random() % 200));
    });
  }
  for (std::thread& thread : threads) thread.join();
  logs_->Stop();
  logs_->WriteRunEnd(std::nullopt);
  EXPECT_EQ(stream().persistent_until(), stream().reserved_until());
  EXPECT_EQ(CheckedPrefix(Lsn(0)), stream().reserved_until());
}

TEST_P(CentralLogTest, ALogMayStartAnywhere) {
  constexpr Lsn kFar((uint64_t{5} << 32) + 3 * format::kBlockBytes);
  Open(64 << 10, 1, kFar);
  for (int i = 0; i < 500; ++i) Append(0, 488);
  logs_->Stop();
  EXPECT_EQ(CheckedPrefix(kFar), stream().reserved_until());
}

TEST_P(CentralLogTest, AFailedDeviceIsReportedToWhoeverWaits) {
  Open(64 << 10, 2);
  files_.Fail(FaultyFileSystem::Operation::kSync, 1, EIO);
  const auto append_much = [this](uint32_t worker) {
    EXPECT_THROW(
        {
          for (int i = 0; i < 1000; ++i) Append(worker, 1000);
        },
        Error);
  };
  std::thread other(append_much, 1);
  append_much(0);
  other.join();
  EXPECT_THROW(logs_->Stop(), Error);
}

INSTANTIATE_TEST_SUITE_P(Methods, CentralLogTest,
                         ::testing::Values(CentralMethod::kEleda, CentralMethod::kMutex, CentralMethod::kConsolidation,
                                           CentralMethod::kBitmap),
                         [](const auto& info) { return NameOf(info.param); });

using CentralLogCountersTest = CentralLogTest;

TEST_P(CentralLogCountersTest, EveryCommitIsCalledBackForOnceItIsDurable) {
  Open(64 << 10, 1);
  for (int i = 0; i < 1000; ++i) Append(0, 104);
  logs_->Stop();
  logs_->WriteRunEnd(std::nullopt);
  const CentralCounters counters = log_->Counters().value();
  EXPECT_EQ(counters.callbacks, 1000u);
  EXPECT_EQ(counters.crawled_bytes + counters.hopped_bytes, stream().reserved_bytes());
}
INSTANTIATE_TEST_SUITE_P(Methods, CentralLogCountersTest, ::testing::Values(CentralMethod::kEleda));

}  // namespace
}  // namespace dbx
