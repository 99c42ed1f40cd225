// The model's line of JSON: what was asked for, and what came out.
#include <fmt/format.h>

#include "tests/simulation/model/model_cluster.h"

namespace dbx::sim {
namespace {

constexpr std::array<const char*, ModelNetwork::kRoles> kNames = {"", "master", "locks", "log_store", "page_store"};

std::string TextOfPlan(const ModelPlan& plan) {
  const SysbenchConfig& of = plan.workload;
  return fmt::format(
      R"("masters":{},"workers":{},"sharing":{},"mix":"{}","isolation":"{}","rows":{},"tables":{},"seed":{},)"
      R"("warmup_seconds":{},"page_stores":{},"frames":{},"flush_interval_us":{},"storage_nanos":{},)"
      R"("latency_nanos":{},"gigabits":{},"batch_nanos":{},"message_nanos":{},"kib_nanos":{})",
      of.masters, of.workers_per_master, of.sharing_perc,
      of.mix == SysbenchMix::kWriteOnly ? "WRITE_ONLY" : "READ_WRITE",
      plan.read_committed ? "READ_COMMITTED" : "SERIALIZABLE", of.rows, of.tables, plan.seed, plan.warmup_seconds,
      plan.page_stores, plan.frames, plan.flush_interval_us, plan.storage_nanos, plan.network.latency_nanos,
      plan.network.gigabits, plan.network.batch_nanos, plan.network.message_nanos, plan.network.kib_nanos);
}

std::string TextOfRoles(const ModelPlan& plan, const ModelResult& result) {
  const NodeShape* const shapes[] = {nullptr, &plan.master, &plan.locks, &plan.log_store, &plan.page_store};
  std::string text;
  for (size_t i = 1; i < ModelNetwork::kRoles; ++i) {
    const RoleUse& use = result.roles[i];
    text += fmt::format(
        R"({}"{}":{{"cores":{},"step_nanos":{},"log_kib_nanos":{},"busy_share":{:.4f},"nanos_per_txn":{:.1f},)"
        R"("message_nanos_per_txn":{:.1f},"steps_per_txn":{:.1f},"messages_per_txn":{:.4f},)"
        R"("line_share":{:.4f}}})",
        i > 1 ? "," : "", kNames[i], shapes[i]->cores, shapes[i]->nanos_per_step, shapes[i]->nanos_per_log_kib,
        use.busy_share, use.nanos_per_txn, use.charged_per_txn, use.steps_per_txn, result.messages_per_txn[i],
        use.line_share);
  }
  return text;
}

}  // namespace

std::string JsonOf(const ModelPlan& plan, const ModelResult& result) {
  const MasterResult& all = result.masters;
  const double txns = std::max<double>(1, static_cast<double>(all.executed));
  const auto per_txn = [&](uint64_t count) { return static_cast<double>(count) / txns; };
  const mm::LocalLockCounters& locks = all.locks;
  return fmt::format(
      R"({{"modelled":true,{},"seconds":{:.6f},"throughput":{:.1f},"throughput_executed":{:.1f},"executed":{},)"
      R"("victims":{},"timeouts":{},"p50_us":{:.1f},"p99_us":{:.1f},"page_lock_messages_per_txn":{:.4f},)"
      R"("pages_fetched_per_txn":{:.4f},"row_conflicts_per_txn":{:.5f},"flushes_per_txn":{:.4f},)"
      R"("log_bytes_per_txn":{:.1f},"message_bytes_per_txn":{:.1f},"roles":{{{}}},"steps":{}}})",
      TextOfPlan(plan), result.seconds, static_cast<double>(all.acknowledged) / all.seconds,
      static_cast<double>(all.executed) / all.seconds, all.executed, all.victims, all.timeouts,
      static_cast<double>(all.latency.PercentileNanos(0.5)) / 1e3,
      static_cast<double>(all.latency.PercentileNanos(0.99)) / 1e3,
      per_txn(locks.requests + locks.releases + locks.grants + locks.reclaims), per_txn(all.pages.fetched),
      per_txn(locks.row_conflicts), per_txn(all.log.lfbs), per_txn(all.log.record_bytes), result.bytes_per_txn,
      TextOfRoles(plan, result), result.totals.steps);
}

}  // namespace dbx::sim
