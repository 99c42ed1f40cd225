#include "base/numa_memory.h"

#include <numa.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

struct InForce {
  MemoryPolicy policy = MemoryPolicy::kFirstTouch;
  NumaSystem* system = nullptr;
};
// Set by main while no other thread of a run exists; their creation publishes it to them.
InForce in_force;

struct MaskDeleter {
  void operator()(bitmask* mask) const { numa_bitmask_free(mask); }
};
using Mask = std::unique_ptr<bitmask, MaskDeleter>;

// mbind itself, and not libnuma's functions around it, which print their errors and do not return them.
class Libnuma final : public NumaSystem {
 public:
  std::vector<uint32_t> Nodes() override {
    std::vector<uint32_t> nodes;
    // Nothing else of libnuma may be called then.
    if (numa_available() < 0) return nodes;
    allowed_.reset(numa_get_mems_allowed());
    for (int node = 0; node <= numa_max_node(); ++node) {
      if (numa_bitmask_isbitset(allowed_.get(), static_cast<unsigned>(node)) != 0) {
        nodes.push_back(static_cast<uint32_t>(node));
      }
    }
    return nodes;
  }

  int Bind(void* at, size_t bytes, MemoryPolicy policy) override {
    const bool interleaves = policy == MemoryPolicy::kInterleave;
    // The kernel takes one bit less than it is told.
    const long done = interleaves ? mbind(at, bytes, MPOL_INTERLEAVE, allowed_->maskp, allowed_->size + 1, 0)
                                  : mbind(at, bytes, MPOL_LOCAL, nullptr, 0, 0);
    return done == 0 ? 0 : errno;
  }

 private:
  Mask allowed_;
};

// Asks for the policy on one page. 0, or errno.
int Try(MemoryPolicy policy, NumaSystem& system) {
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return errno;
  const int error = system.Bind(at, bytes, policy);
  munmap(at, bytes);
  return error;
}

}  // namespace

std::optional<MemoryPolicy> MemoryPolicyNamed(std::string_view name) {
  const auto found = std::ranges::find(kMemoryPolicyNames, name);
  if (found == kMemoryPolicyNames.end()) return std::nullopt;
  return static_cast<MemoryPolicy>(found - kMemoryPolicyNames.begin());
}

NumaSystem& LinuxNuma() {
  static Libnuma system;
  return system;
}

TableMemory::TableMemory(MemoryPolicy asked, NumaSystem& system) : asked_(asked) {
  if (asked == MemoryPolicy::kFirstTouch) return;
  CHECK(in_force.system == nullptr);
  nodes_ = system.Nodes();
  const int error = nodes_.empty() ? 0 : Try(asked, system);
  if (nodes_.empty()) {
    refusal_ = "the kernel offers no NUMA to this process";
  } else if (error != 0) {
    refusal_ = std::string("mbind: ") + std::strerror(error);
  } else {
    applied_ = asked;
    in_force = {asked, &system};
  }
  if (applied_ != MemoryPolicy::kInterleave) nodes_.clear();
}

TableMemory::~TableMemory() {
  if (applied_ != MemoryPolicy::kFirstTouch) in_force = {};
}

void PlaceMemory(void* at, size_t bytes) {
  if (in_force.system == nullptr) return;
  const int error = in_force.system->Bind(at, bytes, in_force.policy);
  if (error == 0) return;
  throw Error(ExitStatus::kNoSpace, "no memory: placing " + std::to_string(bytes) + " bytes by --numa=" +
                                        std::string(NameOf(in_force.policy)) + " failed: " + std::strerror(error));
}

}  // namespace dbx
