// The environment of a result: code, compiler, machine. Read once per process, after the run, and only from sources
// that an unprivileged process may read; a value that cannot be read is "unknown" or 0.
#pragma once

#include <cstdint>
#include <string>

namespace dbx {

// Compiled in by the Makefile (build/.../build_info.cpp), so that a new commit recompiles one small file.
struct BuildInfo {
  const char* commit;  // git describe, "unknown" outside a repository
  bool dirty;          // built from files that differ from the commit
  const char* compiler;
  const char* flags;  // of the compiler, with the switches set on make's command line
  const char* allocator;
};
extern const BuildInfo kBuildInfo;

struct Environment {
  std::string kernel;
  std::string cpu;       // model name
  uint32_t cores = 0;    // that this process may use
  std::string governor;  // of CPU 0
  uint32_t numa_nodes = 0;
  uint64_t memory_bytes = 0;
  std::string huge_pages;      // transparent huge pages: always, madvise, never
  std::string virtualisation;  // "none", or the hypervisor's name, "container" added where it shows
  std::string clock;           // "tsc" or "monotonic"
  std::string time;            // ISO 8601, UTC
};

Environment ReadEnvironment();
// That this process may use.
uint32_t UsableCores();

}  // namespace dbx
