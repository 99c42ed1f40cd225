// Whole logs through the reader and a recovery, and through the reference: whatever the bytes are, both end, what
// the reference refuses is refused, and where neither refuses they recover the same transactions to the same state.
// (The engine may refuse more: it looks at records, and arguments, that the reference finds no use for.)
#include <algorithm>
#include <optional>

#include "logging/frontier_file.h"
#include "logging/plover/plover_recovery.h"
#include "logging/silo_r/silo_r_recovery.h"
#include "system/reference/reference_apply.h"
#include "system/reference/reference_replay.h"
#include "system/reference/reference_run.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recovery_input.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::fuzz {
namespace {

using recovery_test::kRunId;
using recovery_test::MixWorkload;
using recovery_test::Recovered;
using recovery_test::State;

using Files = std::vector<std::vector<std::byte>>;

Recovered ByItsScheme(const RecoveryInput& input, const Files& files) {
  recovery_test::RunSettings run{.workers = 1, .ring_bytes = input.ring_bytes, .many_versions = input.many_versions};
  switch (input.scheme) {
    case format::Scheme::kSerial:
      return recovery_test::RecoverFiles<SerialRecovery>(files, run);
    case format::Scheme::kPlover:
      return recovery_test::RecoverFiles<PloverRecovery>(files, run);
    case format::Scheme::kSiloR: {
      const DurableFrontier durable = ReadFrontier(input.frontier, kRunId, "frontier");
      if (durable.lsns.size() < files.size()) throw Error(ExitStatus::kMismatch, "a frontier of fewer logs");
      run.stamp_end = durable.stamp;
      run.durable_ends = durable.lsns;
      return recovery_test::RecoverFiles<SiloRRecovery>(files, run);
    }
    default:
      return recovery_test::RecoverFiles<TaurusRecovery>(files, run);
  }
}

std::optional<Recovered> ByEngine(const RecoveryInput& input, const Files& files) {
  try {
    return ByItsScheme(input, files);
  } catch (const Error& error) {
    Require(error.status() == ExitStatus::kCorrupt ||
                (error.status() == ExitStatus::kMismatch && input.scheme == format::Scheme::kSiloR),
            error.what());
    Require(std::string(error.what()).find('\n') == std::string::npos, "an error of more than one line");
    return std::nullopt;
  }
}

struct Expected {
  std::string damage;  // why the reference refuses
  State state;
  std::set<uint64_t> txns;
  std::vector<uint64_t> frontier;
  uint64_t dropped = 0;
  bool has_order = true;
  bool comparable = true;
};

reference::ReferenceLogs LogsOf(const RecoveryInput& input, const Files& files) {
  reference::RunImage run;
  for (size_t i = 0; i < files.size(); ++i) run.logs.push_back({"file " + std::to_string(i), files[i], nullptr});
  if (!input.frontier.empty()) run.frontier = reference::FileImage{"frontier", input.frontier, nullptr};
  return reference::ReadRun(run);
}

// Whether transactions end in the order of one log: then those whose writes one sees are replayed before it, which the
// engine relies on. The reference sees to it itself.
bool EndInOrder(const Files& files, const reference::RecoveredSet& set) {
  const auto in_order = [](const reference::TxnRef& a, const reference::TxnRef& b) { return a.lsn < b.lsn; };
  return files.size() == 1 && std::is_sorted(set.order.begin(), set.order.end(), in_order);
}

// Whether two records of `set` have the same stamp, which no engine writes: then their order means nothing.
bool HasTwins(const reference::ReferenceLogs& logs, const reference::RecoveredSet& set) {
  std::set<uint64_t> stamps;
  for (const reference::TxnRef& at : set.order) {
    if (!stamps.insert(reference::DecodeRecord(logs, at.log, at.lsn).stamp).second) return true;
  }
  return false;
}

Expected ByReference(const RecoveryInput& input, const Files& files) {
  reference::ReferenceLogs logs;
  try {
    logs = LogsOf(input, files);
  } catch (const Error& error) {
    return {.damage = error.what()};
  }
  const reference::RecoveredSet set = reference::Recover(logs);
  if (!set.damage.empty()) return {.damage = set.damage};
  if (logs.many_versions && (!EndInOrder(files, set) || HasTwins(logs, set))) return {.comparable = false};
  Database db({}, 1);
  MixWorkload workload;
  workload.CreateTables(db);
  workload.Load(db, 0, 1);
  try {
    if (!reference::Replay(logs, set, workload, db).without_effect.empty()) return {.damage = "without effect"};
  } catch (const Error& error) {
    return {.damage = error.what()};
  }
  Expected expected{{}, {}, {set.txn_ids.begin(), set.txn_ids.end()}, set.frontier, set.dropped.size()};
  // Of several logs invented vectors, or invented partitions, leave conflicting transactions in no order.
  expected.has_order = input.scheme == format::Scheme::kSiloR ? !HasTwins(logs, set) : files.size() == 1;
  const Table& table = db.table(TableId(0));
  table.ForEachRow([&](const Row& row) {
    if ((row.control.load() & Row::kAbsent) != 0) return;
    std::memcpy(&expected.state[row.key], table.tuple(&row), sizeof(uint64_t));
  });
  return expected;
}

void Compare(const Recovered& engine, const Expected& expected) {
  if (!expected.comparable) return;
  // Names are not looked at by a recovery without --verify; no engine writes one twice.
  if (expected.damage.find("in the logs twice") != std::string::npos) return;
  Require(expected.damage.empty(), "the engine takes what the reference refuses: " + expected.damage);
  Require(engine.txns == expected.txns, "engine and reference recover different transactions");
  Require(engine.summary.recovered == expected.txns.size(), "another number of transactions");
  Require(engine.summary.dropped == expected.dropped, "the engine drops " + std::to_string(engine.summary.dropped) +
                                                          " transactions, the reference " +
                                                          std::to_string(expected.dropped));
  Require(engine.frontier() == expected.frontier, "engine and reference end the logs elsewhere");
  Require(engine.state == expected.state || !expected.has_order, "engine and reference leave different states");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace dbx::fuzz;
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0) return size;
  const RecoveryInput input = RecoveryInput::Of(std::as_writable_bytes(std::span(data, size)), kRunId);
  for (uint32_t log = 0; log < input.count(); ++log) {
    // As a rule all records; now and then a log ends in whatever the mutation left.
    const size_t records = seed % 8 == 1 ? seed / 8 % 16 : SIZE_MAX;
    RepairStream(input.streams[log], kRunId, log, input.count(), records);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx::fuzz;
  std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                               reinterpret_cast<const std::byte*>(data) + size);
  const RecoveryInput input = RecoveryInput::Of(bytes, kRunId);
  Files files;
  for (uint32_t log = 0; log < input.count(); ++log) {
    std::vector<std::byte> file =
        FileHeaderOf(kRunId, log, input.count(), input.scheme, input.ring_bytes, input.payload());
    file.insert(file.end(), input.streams[log].begin(), input.streams[log].end());
    files.push_back(std::move(file));
  }
  const auto engine = ByEngine(input, files);
  const Expected expected = ByReference(input, files);
  if (engine) Compare(*engine, expected);
  return 0;
}
