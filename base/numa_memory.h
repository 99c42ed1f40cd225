// On which NUMA nodes the memory of tables lies, by libnuma: rows, versions, and the nodes and buckets of primary
// indexes (storage/).
//
//   first_touch  the node of the thread that touches a page first, unless the process was started under another policy
//                (numactl)
//   local        the same, whatever the process was started under
//   interleave   pages in turn on all nodes that this process may use
//
// TableMemory is main's, from before the first table to behind the last. storage/ hands every new mapping to
// PlaceMemory, which costs nothing under first_touch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dbx {

enum class MemoryPolicy : uint8_t { kFirstTouch, kInterleave, kLocal };
// In the order above.
inline constexpr std::array<std::string_view, 3> kMemoryPolicyNames = {"first_touch", "interleave", "local"};
inline std::string_view NameOf(MemoryPolicy policy) { return kMemoryPolicyNames[static_cast<size_t>(policy)]; }
std::optional<MemoryPolicy> MemoryPolicyNamed(std::string_view name);

// What the system does for a policy. Tests have their own.
class NumaSystem {
 public:
  virtual ~NumaSystem() = default;
  // That this process may take memory from; empty where the kernel has no NUMA, or refuses to tell.
  virtual std::vector<uint32_t> Nodes() = 0;
  // For the pages of whole [at, at + bytes) that nothing has touched yet. 0, or errno.
  virtual int Bind(void* at, size_t bytes, MemoryPolicy policy) = 0;
};
NumaSystem& LinuxNuma();

class TableMemory {
 public:
  // Tries the policy on a page of its own: what the host refuses is not applied, and first_touch is in force.
  explicit TableMemory(MemoryPolicy asked, NumaSystem& system = LinuxNuma());
  ~TableMemory();
  TableMemory(const TableMemory&) = delete;
  TableMemory& operator=(const TableMemory&) = delete;

  MemoryPolicy asked() const { return asked_; }
  MemoryPolicy applied() const { return applied_; }
  // Why `asked` was not applied; empty if it was.
  const std::string& refusal() const { return refusal_; }
  // Over which memory is interleaved.
  const std::vector<uint32_t>& nodes() const { return nodes_; }

 private:
  MemoryPolicy asked_;
  MemoryPolicy applied_ = MemoryPolicy::kFirstTouch;
  std::string refusal_;
  std::vector<uint32_t> nodes_;
};

// For a new mapping of a table, before its first access; whole pages. From any thread. Throws Error(kNoSpace).
void PlaceMemory(void* at, size_t bytes);

}  // namespace dbx
