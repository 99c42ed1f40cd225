// Logs of changes of rows, of up to three runs, through the pass that finds each row's chain and the rebuilding of all
// rows; and through the reference, which applies them in their order. Whatever the bytes are, both end, what the
// reference refuses is refused, and where neither refuses they leave the same rows. (The engine may refuse more. It
// takes an update of an absent row that a later insert hides: a chain ends at the insert.)
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "logging/serial/serial_recovery.h"
#include "system/reference/reference_apply.h"
#include "system/reference/reference_replay.h"
#include "system/reference/reference_run.h"
#include "system/replay/row_chains.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recovery_input.h"
#include "tests/fuzz/row_chains_input.h"
#include "tests/fuzz/two_tables.h"
#include "tests/logging/recovery_harness.h"

namespace dbx::fuzz {
namespace {

using recovery_test::ImageDevice;
using recovery_test::kRunId;

using Rows = std::map<std::pair<size_t, Key>, std::vector<std::byte>>;
constexpr WorkerId kWorker{0};

// Two tables with some rows, and no procedure.
struct LoadedTables {
  explicit LoadedTables(Database& database) {
    AddTwoTables(database, 24);
    for (size_t id = 0; id < database.table_count(); ++id) {
      Table& table = database.table(Database::IdOf(id));
      for (Key key = 0; key < kChainKeys / 2; ++key) {
        const std::vector<std::byte> tuple(table.tuple_bytes(), static_cast<std::byte>('a' + key));
        table.LoadRow(kWorker, key, tuple);
      }
    }
  }
  bool ValidArgs(ProcedureId, std::span<const std::byte>) const { return false; }
  Outcome Run(auto&, ProcedureId, std::span<const std::byte>) { return Outcome::kRollback; }
};

Rows RowsOf(const Database& database) {
  Rows rows;
  for (size_t id = 0; id < database.table_count(); ++id) {
    const Table& table = database.table(Database::IdOf(id));
    table.ForEachRow([&](const Row& row) {
      if ((row.control.load() & Row::kAbsent) != 0) return;
      const std::byte* const tuple = table.tuple(&row);
      rows[{id, row.key}].assign(tuple, tuple + table.tuple_bytes());
    });
  }
  return rows;
}

std::vector<std::byte> FileOf(const RowChainsInput& input, size_t run) {
  std::vector<std::byte> file =
      FileHeaderOf(kRunId + run, 0, 1, format::Scheme::kInstant, 1 << 20, format::Payload::kData);
  file.insert(file.end(), input.streams[run].begin(), input.streams[run].end());
  return file;
}

// Nothing: it was refused.
std::optional<Rows> ByChains(const RowChainsInput& input) {
  Database database({.log_bytes = sizeof(RowLink)}, 1);
  LoadedTables tables(database);
  std::vector<std::unique_ptr<ImageDevice>> devices;
  const bool taken = IsTaken([&] {
    RowChains chains(database);
    for (size_t run = 0; run < input.streams.size(); ++run) {
      devices.push_back(std::make_unique<ImageDevice>("run " + std::to_string(run), FileOf(input, run)));
      LogSource source;
      source.device = devices.back().get();
      source.run_id = kRunId + run;
      SerialRecovery recovery(ReplaySettings{});
      chains.StartRun();
      recovery.Open({source});
      while (recovery.Decode(kWorker)) {
        while (TxnRecord* record = recovery.NextReady(kWorker)) {
          chains.Note(*record, source);
          recovery.MarkReplayed(kWorker);
        }
      }
      chains.ReadFrom(source, recovery.Finish().frontier.front());
    }
    chains.TakeOut(1);
    for (Key key = 0; key < kChainKeys; ++key) {
      if ((input.first_keys >> key & 1) != 0) chains.EnsureRow(kWorker, database.table(TableId(key % 2)), key);
    }
    chains.EnsureAll(1);
    Require(chains.is_complete(), "rows are left that no table has");
  });
  if (!taken) return std::nullopt;
  return RowsOf(database);
}

struct Expected {
  std::string damage;
  Rows rows;
};

Expected ByReference(const RowChainsInput& input) {
  Database database({}, 1);
  LoadedTables tables(database);
  try {
    for (size_t run = 0; run < input.streams.size(); ++run) {
      const std::vector<std::byte> file = FileOf(input, run);
      reference::RunImage image;
      image.logs.push_back({"run " + std::to_string(run), file, nullptr});
      const reference::ReferenceLogs logs = reference::ReadRun(image);
      const reference::RecoveredSet set = reference::Recover(logs);
      if (!set.damage.empty()) return {set.damage, {}};
      if (!reference::Replay(logs, set, tables, database).without_effect.empty()) return {"without effect", {}};
    }
  } catch (const Error& error) {
    return {error.what(), {}};
  }
  return {{}, RowsOf(database)};
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace dbx::fuzz;
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0) return size;
  const RowChainsInput input = RowChainsInput::Of(std::as_writable_bytes(std::span(data, size)));
  for (size_t run = 0; run < input.streams.size(); ++run) {
    const uint64_t run_id = dbx::recovery_test::kRunId + run;
    RepairStream(input.streams[run], run_id, 0, 1, SIZE_MAX);
    // Now and then there are other records, and a change names whatever the mutation left.
    if (seed % 8 > 2) RepairLinks(input.streams[run]);
    RepairStream(input.streams[run], run_id, 0, 1, SIZE_MAX);
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx::fuzz;
  std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data),
                               reinterpret_cast<const std::byte*>(data) + size);
  const RowChainsInput input = RowChainsInput::Of(bytes);
  const std::optional<Rows> rows = ByChains(input);
  if (!rows) return 0;
  const Expected expected = ByReference(input);
  // Names are not looked at by a recovery without --verify; no engine writes one twice.
  for (const char* const unseen : {"in the logs twice", "a change of a row that is not there"}) {
    if (expected.damage.find(unseen) != std::string::npos) return 0;
  }
  Require(expected.damage.empty(), "chains are taken that the reference refuses: " + expected.damage);
  Require(*rows == expected.rows, "chains and the order of the records leave different rows");
  return 0;
}
