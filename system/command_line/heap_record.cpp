#include "system/command_line/heap_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "system/command_line/json_values.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

// Of a restart from the heap's opening on; a new heap, and a recovery, serve nothing by it.
std::string RestartText(const Json& heap) {
  if (Count(heap, "life") < 2 || Number(heap, "first_acknowledged_seconds") == 0) return "";
  return fmt::format(
      "; from its opening on, transactions could run after {:.2f} ms, the first was acknowledged after {:.2f} ms, and "
      "all was adopted after {:.0f} ms, without the generation of calls",
      1e3 * Number(heap, "ready_seconds"), 1e3 * Number(heap, "first_acknowledged_seconds"),
      1e3 * Number(heap, "adopted_seconds"));
}

}  // namespace

Json HeapJson(const std::optional<HeapResult>& heap) {
  if (!heap) return Json();
  return {{"memory", heap->memory},
          {"bytes", heap->bytes},
          {"used_bytes", heap->used_bytes},
          {"life", heap->life},
          {"records", heap->records},
          {"gaps", heap->gaps},
          {"ready_seconds", heap->ready_seconds},
          {"first_acknowledged_seconds", heap->first_acknowledged_seconds},
          {"generation_seconds", heap->generation_seconds},
          {"adopted_seconds", heap->adopted_seconds}};
}

std::string HeapLine(const Json& metrics) {
  const Json& heap = metrics.at("heap");
  if (heap.is_null()) return "";
  return fmt::format("heap: {}, {:.1f} of {:.1f} MB in use, life {}, {} records in its log, gaps in the newest: {}{}\n",
                     heap.at("memory").get<std::string>(), Number(heap, "used_bytes") / 1e6,
                     Number(heap, "bytes") / 1e6, Count(heap, "life"), Count(heap, "records"), Count(heap, "gaps"),
                     RestartText(heap));
}

Json RedoJson(const std::optional<RedoResult>& redo) {
  if (!redo) return Json();
  return {{"rows", redo->rows},
          {"rebuilt_on_demand", redo->rebuilt_on_demand},
          {"records_read", redo->records_read},
          {"analysis_seconds", redo->analysis_seconds}};
}

std::string RedoLine(const Json& metrics) {
  const Json& redo = metrics.at("redo");
  if (redo.is_null()) return "";
  return fmt::format(
      "redo on demand: {} rows to rebuild were found in {:.3f} s; {} were rebuilt when they were needed, the rest at "
      "the "
      "end, by {} records\n",
      Count(redo, "rows"), Number(redo, "analysis_seconds"), Count(redo, "rebuilt_on_demand"),
      Count(redo, "records_read"));
}

std::optional<std::string> RecoveredHeapLine(const Json& metrics) {
  if (metrics.at("heap").is_null()) return std::nullopt;
  return fmt::format("recovered run-{:04}: the rows of its heap, nothing is replayed; {}\n",
                     Count(metrics, "run_number"),
                     metrics.at("clean_end").get<bool>() ? "a clean end" : "no clean end");
}

}  // namespace dbx
