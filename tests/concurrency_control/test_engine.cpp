#include "tests/concurrency_control/test_engine.h"

#include <gtest/gtest.h>

#include <bit>

namespace dbx::testing {

TestEngine::TestEngine(const EngineOptions& options, const RowLayout& layout, const LogTraits& log)
    : database_(layout, kWorkers), epochs_(kWorkers) {
  if (log.needs_pages) database_.PageEveryTable(1024);
  if (log.version_heap) {
    memory_ = files_.MapPersistent("heap.pm", {.create_bytes = options.heap_bytes});
    // 16 slots in an extent, as tests may have larger tuples.
    const size_t extent_bytes = VersionHeap::kSlotsPerExtentMin * heap_format::SlotBytes(options.tuple_bytes);
    heap_ = std::make_unique<VersionHeap>(*memory_, std::bit_ceil(extent_bytes), kWorkers);
    database_.ExpectVersionHeap();
  }
  Schema schema;
  schema.name = "T";
  schema.tuple_bytes = options.tuple_bytes;
  schema.expected_rows = 1000;
  schema.ordered = options.ordered;
  table_ = &database_.CreateTable(schema);
  constexpr heap_format::KeySpread kPartitions[] = {{10}};
  if (log.version_heap) database_.KeepVersionsIn(*heap_, kPartitions);
  std::vector<LogSet::Target> targets;
  for (uint32_t i = 0; i < options.logs; ++i) {
    auto device = files_.Create("log" + std::to_string(i), {});
    std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    device->Complete(true);
    targets.push_back({std::move(device), 0});
  }
  LogSetOptions log_set;
  log_set.run_id = kRunId;
  log_set.ring_bytes = options.ring_bytes;
  log_set.workers = kWorkers;
  logs_ = std::make_unique<LogSet>(std::move(targets), log_set);
}

std::shared_ptr<BackupOptions> TestEngine::NoBackup() {
  const PageSpace& pages = *table_->pages();
  const BackupShape shape{kRunId, {{pages.rows_per_page(), pages.tuple_bytes()}}, {"backup"}};
  files_.MakeDirectory("backup");
  auto backup = std::make_shared<BackupOptions>();
  backup->database = &database_;
  backup->files = &files_;
  backup->writer = std::make_shared<BackupWriter>(files_, shape, true);
  backup->anchor_path = "backup/anchor";
  return backup;
}

void TestEngine::LoadRow(Key key, uint64_t value) {
  const Tuple tuple{value, {}};
  LoadRow(key, std::as_bytes(std::span(&tuple, 1)));
}

void TestEngine::LoadRow(Key key, std::span<const std::byte> tuple) {
  if (heap_ != nullptr) heap_->BeginLoad();
  table_->LoadRow(WorkerId(0), key, tuple);
  if (heap_ != nullptr) heap_->EndLoad();
}

void TestEngine::BeginNext(uint32_t worker) {
  args_[worker][0] = TxnId::Make(WorkerId(worker), sequences_[worker]++).value;
}

CallResult TestEngine::Run(uint32_t worker, const Procedure& body) {
  BeginNext(worker);
  return Attempt(worker, body);
}

CallResult TestEngine::Write(uint32_t worker, Key key, uint64_t value) {
  return Run(worker, [&](TestContext& ctx) {
    return ctx.Update(*table_, key, [&](TestTuple& tuple) { tuple.SetAt<uint64_t>(0, value); });
  });
}

CallResult TestEngine::Insert(uint32_t worker, Key key, uint64_t value) {
  return Run(worker, [&](TestContext& ctx) {
    const Tuple tuple{value, {}};
    return ctx.Insert(*table_, key, std::as_bytes(std::span(&tuple, 1)));
  });
}

CallResult TestEngine::Delete(uint32_t worker, Key key) {
  return Run(worker, [&](TestContext& ctx) { return ctx.Delete(*table_, key); });
}

CallResult TestEngine::Read(uint32_t worker, Key key, uint64_t* value) {
  return Run(worker, [&](TestContext& ctx) {
    uint64_t seen = kMissing;
    const Outcome outcome = ctx.Read(*table_, key, [&](const TestTuple& tuple) { seen = tuple.GetAt<uint64_t>(0); });
    if (value != nullptr) *value = seen;
    return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
  });
}

CallResult TestEngine::Scan(uint32_t worker, Key low, Key high, std::vector<Key>* keys) {
  return Run(worker, [&](TestContext& ctx) {
    if (keys != nullptr) keys->clear();
    return ctx.Scan(*table_, low, high, ScanOrder::kAscending, [&](Key key, const TestTuple&) {
      if (keys != nullptr) keys->push_back(key);
      return true;
    });
  });
}

uint64_t TestEngine::ValueOf(Key key) {
  uint64_t value = 0;
  EXPECT_EQ(Read(kWorkers - 1, key, &value).outcome, Outcome::kOk);
  return value;
}

void TestEngine::Flush(uint32_t i) {
  LogStream& stream = logs_->stream(i);
  stream.AppendPad();
  stream.StartFlush(1 << 20);
  stream.CompleteFlush(true);
}

void TestEngine::FlushAll() {
  for (uint32_t i = 0; i < logs_->count(); ++i) Flush(i);
}

void TestEngine::Sweep(uint32_t worker) {
  for (int i = 0; i < 5; ++i) {
    epochs_.Advance();
    for (uint32_t w = 0; w < kWorkers; ++w) epochs_.Refresh(WorkerId(w));
  }
  SweepInThisEpoch(worker);
}

void TestEngine::SweepInThisEpoch(uint32_t worker) {
  for (int i = 0; i < 300; ++i) (void)Run(worker, [](TestContext&) { return Outcome::kOk; });
}

}  // namespace dbx::testing
