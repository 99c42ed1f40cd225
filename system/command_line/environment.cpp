#include "system/command_line/environment.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"

namespace dbx {
namespace {

const char* const kUnknown = "unknown";

// The first line of a small file, or "unknown".
std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && !line.empty() ? line : kUnknown;
}

std::string Kernel() {
  utsname name;
  if (uname(&name) != 0) return kUnknown;
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos && colon + 2 < line.size()) {
      return line.substr(colon + 2);
    }
  }
  return kUnknown;
}

uint32_t NumaNodes() {
  std::error_code error;
  uint32_t nodes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    if (name.size() > 4 && name.starts_with("node") && name.find_first_not_of("0123456789", 4) == std::string::npos) {
      ++nodes;
    }
  }
  return std::max(1u, nodes);
}

// The word in brackets: "always [madvise] never".
std::string HugePages() {
  const std::string line = FirstLine("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t begin = line.find('['), end = line.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return kUnknown;
  return line.substr(begin + 1, end - begin - 1);
}

std::string Hypervisor() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // CPUID leaf 1, bit 31 of ECX: reserved for hypervisors. Leaf 0x40000000: the hypervisor's name.
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & (1u << 31)) == 0) return "none";
  __cpuid(0x40000000, eax, ebx, ecx, edx);
  std::array<char, 13> name{};
  std::memcpy(name.data(), &ebx, 4);
  std::memcpy(name.data() + 4, &ecx, 4);
  std::memcpy(name.data() + 8, &edx, 4);
  return name[0] == '\0' ? kUnknown : std::string(name.data());
}

std::string Virtualisation() {
  struct stat info;
  const bool container = stat("/.dockerenv", &info) == 0 || stat("/run/.containerenv", &info) == 0;
  return Hypervisor() + (container ? ", container" : "");
}

std::string UtcTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace

uint32_t UsableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

Environment ReadEnvironment() {
  Environment e;
  e.kernel = Kernel();
  e.cpu = CpuModel();
  e.cores = UsableCores();
  e.governor = FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  e.numa_nodes = NumaNodes();
  e.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  e.huge_pages = HugePages();
  e.virtualisation = Virtualisation();
  e.clock = Clock::IsTsc() ? "tsc" : "monotonic";
  e.time = UtcTime();
  return e;
}

}  // namespace dbx
