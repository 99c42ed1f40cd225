#include "base/topology.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/affinity.h"

namespace dbx {
namespace {

// The list in a file of one line; none if there is no such file.
std::optional<std::vector<uint32_t>> ReadCpuList(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file) return std::nullopt;
  std::getline(file, line);
  return ParseCpuList(line);
}

// Takes a number from the front of `text`.
std::optional<uint32_t> TakeCpu(std::string_view& text) {
  uint32_t cpu = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc() || cpu >= kCpusMax) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return cpu;
}

// The node of each CPU that is on one.
std::map<uint32_t, uint32_t> ReadNodes(const std::string& root) {
  std::map<uint32_t, uint32_t> node_of;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/node", error)) {
    const std::string name = entry.path().filename();
    std::string_view number = name;
    if (!number.starts_with("node")) continue;
    number.remove_prefix(4);
    const std::optional<uint32_t> node = TakeCpu(number);
    if (!node || !number.empty()) continue;
    for (const uint32_t cpu : ReadCpuList(entry.path().string() + "/cpulist").value_or(std::vector<uint32_t>())) {
      node_of[cpu] = *node;
    }
  }
  return node_of;
}

uint32_t ReadCore(const std::string& root, uint32_t cpu) {
  const std::string folder = root + "/cpu/cpu" + std::to_string(cpu) + "/topology/";
  // Kernels before 5.3 have the second name only.
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    const auto siblings = ReadCpuList(folder + name);
    if (siblings && !siblings->empty()) return *std::ranges::min_element(*siblings);
  }
  return cpu;
}

}  // namespace

const Cpu* Topology::Find(uint32_t id) const {
  const auto found = std::ranges::find(cpus, id, &Cpu::id);
  return found == cpus.end() ? nullptr : &*found;
}

std::optional<std::vector<uint32_t>> ParseCpuList(std::string_view text) {
  std::vector<uint32_t> cpus;
  while (!text.empty()) {
    const std::optional<uint32_t> first = TakeCpu(text);
    std::optional<uint32_t> last = first;
    if (first && text.starts_with('-')) {
      text.remove_prefix(1);
      last = TakeCpu(text);
    }
    if (!first || !last || *last < *first) return std::nullopt;
    for (uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) return cpus;
    if (!text.starts_with(',') || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return cpus;
}

std::string CpuListText(std::span<const uint32_t> cpus) {
  std::string text;
  for (size_t begin = 0, end; begin < cpus.size(); begin = end) {
    for (end = begin + 1; end < cpus.size() && cpus[end] == cpus[end - 1] + 1;) ++end;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[begin]);
    if (end > begin + 1) text += "-" + std::to_string(cpus[end - 1]);
  }
  return text;
}

Topology ReadTopology(const std::string& root, std::span<const uint32_t> allowed) {
  Topology topology;
  std::vector<uint32_t> online =
      ReadCpuList(root + "/cpu/online").value_or(std::vector<uint32_t>(allowed.begin(), allowed.end()));
  std::ranges::sort(online);
  const std::map<uint32_t, uint32_t> node_of = ReadNodes(root);
  for (const uint32_t id : online) {
    const auto node = node_of.find(id);
    topology.cpus.push_back({.id = id,
                             .core = ReadCore(root, id),
                             .node = node == node_of.end() ? 0 : node->second,
                             .allowed = std::ranges::find(allowed, id) != allowed.end()});
  }
  for (const uint32_t id : ReadCpuList(root + "/cpu/present").value_or(std::vector<uint32_t>())) {
    if (topology.Find(id) == nullptr) topology.offline.push_back(id);
  }
  return topology;
}

Topology ReadTopology() { return ReadTopology("/sys/devices/system", host::AllowedCpus()); }

}  // namespace dbx
