// build/simulation/cluster_model: what a cluster of masters would do on cores of their own (model_cluster.h).
//
//     cluster_model [--NAME=VALUE ...]
//
// NAME is one of those in Fields(), a `mix` or an `isolation`. Prints one line of JSON. Exit statuses: 1 the cluster
// failed, 2 a flag is none.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "tests/simulation/model/model_cluster.h"

namespace dbx::sim {
namespace {

using Field = std::variant<uint32_t*, uint64_t*, double*>;
std::map<std::string_view, Field> Fields(ModelPlan& plan) {
  return {{"masters", &plan.workload.masters},
          {"workers", &plan.workload.workers_per_master},
          {"tables", &plan.workload.tables},
          {"rows", &plan.workload.rows},
          {"sharing", &plan.workload.sharing_perc},
          {"seed", &plan.seed},
          {"warmup_seconds", &plan.warmup_seconds},
          {"seconds", &plan.seconds},
          {"calls", &plan.calls},
          {"page_stores", &plan.page_stores},
          {"frames", &plan.frames},
          {"flush_interval_us", &plan.flush_interval_us},
          {"storage_nanos", &plan.storage_nanos},
          {"latency_nanos", &plan.network.latency_nanos},
          {"gigabits", &plan.network.gigabits},
          {"batch_nanos", &plan.network.batch_nanos},
          {"message_nanos", &plan.network.message_nanos},
          {"kib_nanos", &plan.network.kib_nanos},
          {"master_cores", &plan.master.cores},
          {"locks_cores", &plan.locks.cores},
          {"log_store_cores", &plan.log_store.cores},
          {"page_store_cores", &plan.page_store.cores},
          {"master_step_nanos", &plan.master.nanos_per_step},
          {"master_log_kib_nanos", &plan.master.nanos_per_log_kib},
          {"page_store_log_kib_nanos", &plan.page_store.nanos_per_log_kib},
          {"locks_step_nanos", &plan.locks.nanos_per_step},
          {"log_store_step_nanos", &plan.log_store.nanos_per_step},
          {"page_store_step_nanos", &plan.page_store.nanos_per_step}};
}

bool SetWord(std::string_view name, std::string_view value, ModelPlan& plan) {
  if (name == "mix" && (value == "WRITE_ONLY" || value == "READ_WRITE")) {
    plan.workload.mix = value == "WRITE_ONLY" ? SysbenchMix::kWriteOnly : SysbenchMix::kReadWrite;
    return true;
  }
  if (name == "isolation" && (value == "SERIALIZABLE" || value == "READ_COMMITTED")) {
    plan.read_committed = value == "READ_COMMITTED";
    return true;
  }
  return false;
}

bool Set(std::string_view flag, ModelPlan& plan) {
  const size_t equals = flag.find('=');
  if (flag.substr(0, 2) != "--" || equals == std::string_view::npos) return false;
  const std::string_view name = flag.substr(2, equals - 2);
  const std::string value(flag.substr(equals + 1));
  if (SetWord(name, value, plan)) return true;
  const auto fields = Fields(plan);
  const auto field = fields.find(name);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0' && number >= 0 && number < 4e9;
  if (field == fields.end() || !is_number) return false;
  std::visit([number](auto* to) { *to = static_cast<std::remove_pointer_t<decltype(to)>>(number); }, field->second);
  return true;
}

int Fail(int status, const std::string& what) {
  std::fprintf(stderr, "error: %s\n", what.c_str());
  return status;
}

int Main(int argc, char** argv) {
  ModelPlan plan;
  for (int i = 1; i < argc; ++i) {
    if (!Set(argv[i], plan)) return Fail(2, "not a flag of cluster_model, or not its value: " + std::string(argv[i]));
  }
  for (const NodeShape* shape : {&plan.master, &plan.locks, &plan.log_store, &plan.page_store}) {
    if (shape->cores == 0) return Fail(2, "a process has one core at least");
  }
  try {
    std::puts(JsonOf(plan, RunModel(plan)).c_str());
  } catch (const std::exception& error) {
    Fail(1, error.what());
    std::fflush(stdout);
    std::_Exit(1);
  }
  return 0;
}

}  // namespace
}  // namespace dbx::sim

int main(int argc, char** argv) { return dbx::sim::Main(argc, argv); }
