// The rows of a data record: replayer and reference put the same ones, or both refuse.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/two_tables.h"
#include "tests/logging/recovery_harness.h"
#include "tests/reference/reference_check.h"

namespace dbx::fuzz {
namespace {

struct LoadedTables : TwoTables {
  LoadedTables() {
    for (const uint32_t index : {0, 1}) {
      Table& table = database.table(TableId(index));
      const std::vector<std::byte> tuple(table.schema().tuple_bytes, std::byte{1});
      for (const Key key : {7, 8}) table.LoadRow(WorkerId(0), key, tuple);
    }
  }
};

bool PutByEngine(Database& database, std::span<std::byte> payload) {
  recovery_test::MixWorkload no_commands;
  recovery_test::ImageDevice device("log", {});
  Replayer<recovery_test::MixWorkload, ReplayMode::kInOrder> replayer(database, no_commands, nullptr, WorkerId(0));
  TxnRecord record{};
  record.kind = format::RecordKind::kData;
  record.payload = payload;
  try {
    replayer.Replay(record, {&device, recovery_test::kRunId});
    return true;
  } catch (const Error& error) {
    Require(error.status() == ExitStatus::kCorrupt, error.what());
    return false;
  }
}

bool PutByReference(Database& database, std::span<const std::byte> payload) {
  reference::Record record;
  record.payload = payload;
  reference::ReferenceContext context;
  try {
    reference::ApplyImages({}, record, context, database);
    return true;
  } catch (const Error&) {
    context.Undo();
    return false;
  }
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx::fuzz;
  std::vector<std::byte> payload(reinterpret_cast<const std::byte*>(data),
                                 reinterpret_cast<const std::byte*>(data) + size);
  LoadedTables by_engine;
  LoadedTables by_reference;
  const bool taken = PutByEngine(by_engine.database, payload);
  Require(taken == PutByReference(by_reference.database, payload), "one refuses what the other takes");
  const auto difference = dbx::reference::FirstDifference(by_engine.database, by_reference.database);
  Require(!difference, difference.value_or(""));
  return 0;
}
