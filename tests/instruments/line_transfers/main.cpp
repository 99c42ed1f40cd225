// The engine's main on the cores of the model:
//
//     line_transfers [--NAME=NUMBER ...] [--report=FILE] -- FLAGS OF ./rundb-all
//
// NAME is a field of CoresPlan, Costs or CacheShape; the engine's seconds are the model's. Exit statuses are the
// engine's; 2 for its own flags too.
#include <sys/personality.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/instruments/line_transfers/instrument.h"

// system/main.cpp, whose main is compiled by this name.
int EngineMain(int argc, char** argv);

namespace dbx::lines {
namespace {

constexpr int kUsage = 2;

struct Flags {
  InstrumentPlan plan;
  std::string report;
};

int Fail(const std::string& what) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  return kUsage;
}

using Field = std::variant<uint32_t*, uint64_t*, double*>;
std::map<std::string_view, Field> FieldsOf(InstrumentPlan& plan) {
  Costs& costs = plan.costs;
  return {{"cores", &plan.cores.cores},
          {"quantum_nanos", &plan.cores.quantum_nanos},
          {"slice_nanos", &plan.cores.slice_nanos},
          {"switch_nanos", &plan.cores.switch_nanos},
          {"access_nanos", &costs.access_nanos},
          {"transfer_nanos", &costs.transfer_nanos},
          {"miss_nanos", &costs.miss_nanos},
          {"following_share", &costs.following_share},
          {"pause_nanos", &costs.pause_nanos},
          {"yield_nanos", &costs.yield_nanos},
          {"wake_nanos", &costs.wake_nanos},
          {"write_nanos", &costs.write_nanos},
          {"write_nanos_per_kib", &costs.write_nanos_per_kib},
          {"cache_sets", &plan.cache.sets},
          {"cache_ways", &plan.cache.ways}};
}

// False, after a message, if `flag` is none of these.
bool Set(std::string_view flag, Flags& flags) {
  const size_t equals = flag.find('=');
  if (flag.substr(0, 2) != "--" || equals == std::string_view::npos) return false;
  const std::string_view name = flag.substr(2, equals - 2);
  const std::string value(flag.substr(equals + 1));
  if (name == "report") {
    flags.report = value;
    return !value.empty();
  }
  const auto fields = FieldsOf(flags.plan);
  const auto field = fields.find(name);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number < 4e9;
  if (field == fields.end() || !is_number) return false;
  std::visit([number](auto* to) { *to = static_cast<std::remove_pointer_t<decltype(to)>>(number); }, field->second);
  return true;
}

int Main(int argc, char** argv) {
  Flags flags;
  int at = 1;
  for (; at < argc && std::string_view(argv[at]) != "--"; ++at) {
    if (!Set(argv[at], flags)) return Fail("not a flag of line_transfers, or not its value: " + std::string(argv[at]));
  }
  if (at == argc) return Fail("the engine's flags are missing: line_transfers [--NAME=NUMBER ...] -- FLAGS");
  if (flags.plan.cores.cores > kCoresMax) return Fail("--cores is at most " + std::to_string(kCoresMax));
  if (flags.plan.cache.ways != 0 && flags.plan.cache.sets == 0) return Fail("a cache with ways needs --cache_sets");
  argv[at] = argv[0];
  SetUp(flags.plan);
  int status = 0;
  try {
    RunOnCores(flags.plan.cores, [&] { status = EngineMain(argc - at, argv + at); });
  } catch (const Stuck& stuck) {
    std::fprintf(stderr, "error: %s\n", stuck.what());
    std::_Exit(1);
  }
  if (status != 0 || flags.report.empty()) return status;
  std::ofstream file(flags.report);
  file << ReportText() << "\n";
  return file.flush() ? status : Fail("cannot write " + flags.report);
}

}  // namespace
}  // namespace dbx::lines

int main(int argc, char** argv) {
  // Addresses decide which lines share a set of a cache: the same ones in every run. Where that is refused, runs differ
  // by a little.
  const int old = personality(0xffffffff);
  if (old != -1 && (old & ADDR_NO_RANDOMIZE) == 0 &&
      personality(static_cast<unsigned long>(old | ADDR_NO_RANDOMIZE)) != -1) {
    execv("/proc/self/exe", argv);
  }
  return dbx::lines::Main(argc, argv);
}
