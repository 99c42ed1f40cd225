#include "system/command_line/placement_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/topology.h"

namespace dbx {

using Json = nlohmann::ordered_json;

namespace {

Json PlacesJson(const std::vector<PlacementResult::Place>& places) {
  Json list = Json::array();
  for (const PlacementResult::Place& place : places) {
    list.push_back({{"cpu", place.cpu ? Json(*place.cpu) : Json()}, {"node", place.cpu ? Json(place.node) : Json()}});
  }
  return list;
}

std::string NodesText(const std::vector<uint32_t>& nodes) {
  return fmt::format("{} {}", nodes.size() == 1 ? "node" : "nodes", CpuListText(nodes));
}

// "0-1 (node 0)".
std::string PlacesText(const Json& places) {
  std::vector<uint32_t> cpus;
  std::set<uint32_t> nodes;
  for (const Json& place : places) {
    if (place.at("cpu").is_null()) continue;
    cpus.push_back(place.at("cpu").get<uint32_t>());
    nodes.insert(place.at("node").get<uint32_t>());
  }
  if (cpus.empty()) return "not pinned";
  const std::string rest =
      cpus.size() == places.size() ? "" : fmt::format(", {} not pinned", places.size() - cpus.size());
  return fmt::format("on CPU {} ({}){}", CpuListText(cpus), NodesText({nodes.begin(), nodes.end()}), rest);
}

std::string MemoryText(const Json& memory) {
  const auto applied = memory.at("applied").get<std::string>();
  if (applied == memory.at("asked")) {
    const auto nodes = memory.at("nodes").get<std::vector<uint32_t>>();
    return applied + (nodes.empty() ? "" : " over " + NodesText(nodes));
  }
  return fmt::format("{}; {} was NOT APPLIED ({})", applied, memory.at("asked").get<std::string>(),
                     memory.at("refusal").get<std::string>());
}

}  // namespace

Json PlacementJson(const std::optional<PlacementResult>& placement) {
  if (!placement) return Json();
  return {{"pin", placement->pin},
          {"workers", PlacesJson(placement->workers)},
          {"writers", PlacesJson(placement->writers)},
          {"buffers", PlacesJson(placement->buffers)},
          {"memory",
           {{"asked", placement->memory_asked},
            {"applied", placement->memory},
            {"nodes", placement->memory_nodes},
            {"refusal", placement->memory_refusal}}}};
}

std::string PlacementLine(const Json& metrics) {
  const Json& placement = metrics.at("placement");
  if (placement.is_null()) return "";
  std::string line = "placement: workers " + PlacesText(placement.at("workers"));
  if (!placement.at("writers").empty()) line += ", log writers " + PlacesText(placement.at("writers"));
  return line + "; tables by " + MemoryText(placement.at("memory")) + "\n";
}

std::string PlacementWarning(const std::optional<PlacementResult>& placement) {
  if (!placement || placement->memory_refusal.empty()) return "";
  return fmt::format("--numa={} is not applied: {}", placement->memory_asked, placement->memory_refusal);
}

}  // namespace dbx
