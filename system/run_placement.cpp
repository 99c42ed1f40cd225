#include "system/run_placement.h"

#include <utility>

#include "base/check.h"
#include "logging/schemes.h"

namespace dbx {
namespace {

// REQUIRES: the options have been parsed.
PinChoice PinOf(const Options& options) {
  std::optional<PinChoice> pin = ParsePin(options.pin);
  CHECK(pin.has_value());
  return std::move(*pin);
}

MemoryPolicy MemoryPolicyOf(const Options& options) {
  const std::optional<MemoryPolicy> policy = MemoryPolicyNamed(options.numa);
  CHECK(policy.has_value());
  return *policy;
}

uint32_t WritersOf(const Options& options) {
  const bool has_writers = !options.log_recover && HasFiles(options.log) && !HasVersionHeap(options.log);
  return has_writers ? options.log_writers() : 0;
}

}  // namespace

RunPlacement::RunPlacement(const Options& options, Topology topology, NumaSystem& system)
    : options_(options),
      topology_(std::move(topology)),
      threads_(PlanPlacement(topology_, PinOf(options), options.thread_cnt, WritersOf(options))),
      memory_(MemoryPolicyOf(options), system) {}

Topology RunPlacement::CheckedTopology(const Options& options) {
  const PinChoice pin = PinOf(options);
  // Hundreds of small files on a large host: not read for nothing.
  Topology topology = pin.policy == PinPolicy::kNone ? Topology() : ReadTopology();
  PlanPlacement(topology, pin, options.thread_cnt, 0);
  return topology;
}

PlacementResult::Place RunPlacement::PlaceOf(std::optional<uint32_t> cpu) const {
  if (!cpu) return {};
  return {cpu, topology_.Find(*cpu)->node};
}

std::optional<PlacementResult> RunPlacement::result() const {
  const Placement& placement = threads_.placement();
  if (placement.workers.empty() && memory_.asked() == MemoryPolicy::kFirstTouch) return std::nullopt;
  PlacementResult result;
  result.pin = options_.pin;
  for (const uint32_t cpu : placement.workers) result.workers.push_back(PlaceOf(cpu));
  if (!placement.workers.empty()) {
    for (const std::optional<uint32_t>& cpu : placement.writers) result.writers.push_back(PlaceOf(cpu));
  }
  for (const uint32_t cpu : placement.buffers) result.buffers.push_back(PlaceOf(cpu));
  result.memory_asked = NameOf(memory_.asked());
  result.memory = NameOf(memory_.applied());
  result.memory_refusal = memory_.refusal();
  result.memory_nodes = memory_.nodes();
  return result;
}

}  // namespace dbx
