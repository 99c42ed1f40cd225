#include "system/runs/parallelism_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.h"
#include "logging/row_changes.h"
#include "logging/schemes.h"
#include "logging/write_entries.h"
#include "system/runs/file_header.h"

namespace dbx {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr uint32_t kThreadsMax = 1 << 20;
constexpr double kNumberMax = 1e12;
constexpr std::string_view kUnlimited = "unlimited";

[[noreturn]] void Refuse(std::string_view flag, std::string_view wanted, std::string_view value) {
  throw Error(ExitStatus::kUsage, fmt::format("{} wants {}, not '{}'", flag, wanted, value));
}

template <class T>
std::optional<T> NumberIn(std::string_view text) {
  T value{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double PositiveNumber(std::string_view flag, std::string_view text) {
  const auto value = NumberIn<double>(text);
  // Not a number compares as false.
  if (!value || !(*value > 0 && *value <= kNumberMax)) Refuse(flag, "a number above 0", text);
  return *value;
}

template <class Visit>
void ForEachItem(std::string_view list, Visit&& visit) {
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    visit(list.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) list.remove_prefix(comma + 1);
  }
}

ModelledOrder OrderNamed(std::string_view name) {
  const auto found = std::ranges::find(kOrderNames, name);
  if (found == kOrderNames.end()) Refuse("--orders", fmt::format("some of {}", fmt::join(kOrderNames, ", ")), name);
  return static_cast<ModelledOrder>(found - kOrderNames.begin());
}

uint32_t ThreadsIn(std::string_view text) {
  if (text == kUnlimited) return kUnlimitedThreads;
  const auto threads = NumberIn<uint32_t>(text);
  if (!threads || *threads == 0 || *threads > kThreadsMax) {
    Refuse("--threads", fmt::format("numbers from 1 to {}, or {}", kThreadsMax, kUnlimited), text);
  }
  return *threads;
}

void ParseProcedure(std::string_view flag, std::string_view item, std::map<uint16_t, double>& procedures) {
  const size_t colon = item.find(':');
  const auto id = NumberIn<uint16_t>(item.substr(0, colon));
  if (!id || colon == std::string_view::npos) Refuse(flag, "ID:NUMBER,...", item);
  procedures[*id] = PositiveNumber(flag, item.substr(colon + 1));
}

std::string TextOf(uint32_t threads) {
  return threads == kUnlimitedThreads ? std::string(kUnlimited) : std::to_string(threads);
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double Millis(double ns) { return ns / 1e6; }

}  // namespace

bool ParseParallelismFlag(std::string_view argument, ParallelismOptions& options) {
  if (argument == "--parallelism") return options.asked = true;
  const size_t equals = argument.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view flag = argument.substr(0, equals);
  const std::string_view value = argument.substr(equals + 1);
  if (flag == "--orders") {
    options.orders.clear();
    ForEachItem(value, [&](std::string_view name) { options.orders.push_back(OrderNamed(name)); });
  } else if (flag == "--threads") {
    options.threads.clear();
    ForEachItem(value, [&](std::string_view text) { options.threads.push_back(ThreadsIn(text)); });
  } else if (flag == "--replay_ns") {
    options.replay_ns = PositiveNumber(flag, value);
  } else if (flag == "--byte_ns") {
    options.byte_ns = value == "0" ? 0 : PositiveNumber(flag, value);
  } else if (flag == "--procedure_ns") {
    options.procedure_ns.clear();
    ForEachItem(value, [&](std::string_view item) { ParseProcedure(flag, item, options.procedure_ns); });
  } else if (flag == "--device_mb_per_s") {
    options.device_mb_per_s = PositiveNumber(flag, value);
  } else if (flag == "--json") {
    if (value.empty()) Refuse(flag, "a file", value);
    options.json_file = value;
  } else {
    return false;
  }
  return true;
}

// ---- Reading ----------------------------------------------------------------------------------------------

void ParallelismMeter::CheckModelled(const format::FileHeader& header) {
  const SchemeInfo& scheme = kSchemes[header.scheme];
  if (!scheme.needs_pages && !scheme.version_heap) return;
  throw Error(ExitStatus::kUsage, fmt::format("--parallelism is of logs that are replayed transaction by transaction, "
                                              "and those of {} are not",
                                              scheme.folder));
}

void ParallelismMeter::Begin(const format::FileHeader& header, const LogSource& source) {
  header_ = header;
  log_count_ = source.log_count;
  has_lsn_vectors_ = kSchemes[header.scheme].has_lsn_vectors;
  if (logs_.empty()) logs_.resize(log_count_);
  log_ = &logs_.at(source.log_index);
  log_->first = source.First();
}

double ParallelismMeter::CostOf(const RecordType& type, const RecordView& record) const {
  const auto payload = record.body.subspan(type.leading_bytes(record.header));
  uint64_t changes = 0;
  if (type.has_rows) {
    WriteEntries entries(payload);
    for (WriteImage image; entries.Next(image);) ++changes;
  } else if (type.has_row_changes) {
    RowChanges entries(payload);
    for (RowChange change; entries.Next(change);) ++changes;
  }
  const bool is_command = !type.has_rows && !type.has_row_changes;
  const auto procedure = options_.procedure_ns.find(record.header.procedure);
  const bool has_own = is_command && procedure != options_.procedure_ns.end();
  const double each_ns = has_own ? procedure->second : options_.replay_ns;
  return each_ns * static_cast<double>(std::max<uint64_t>(changes, 1)) + options_.byte_ns * record.header.length;
}

void ParallelismMeter::Take(const RecordType& type, const RecordView& record, const LsnPerLog& anchor, uint32_t batch) {
  const Lsn lsn(record.header.lsn);
  double available_ns = 0;
  if (options_.device_mb_per_s > 0) {
    const uint32_t devices = IsStripe(header_) ? header_.log_count : 1;
    const uint64_t bytes = lsn + record.header.length - log_->first;
    available_ns = static_cast<double>(bytes) * 1e3 / (options_.device_mb_per_s * devices);
  }
  // Images and marks have stamps that order them; a command's timestamp does not.
  const bool is_command = type.role == RecordRole::kTransaction && !type.has_rows;
  RecordFacts facts;
  if (type.state != nullptr && !is_command) (void)type.state(record, facts);  // it was checked by the log's reader
  if (facts.stamp != Stamp()) log_->stamps.push_back({facts.stamp, available_ns});
  if (type.role != RecordRole::kTransaction) return;
  log_->records.push_back({lsn, facts.stamp, CostOf(type, record), available_ns, batch});
  has_images_ |= type.has_rows;
  has_stamps_ |= facts.stamp != Stamp();
  has_parts_ |= facts.stamp != Stamp() && record.header.lv_mask != 0;
  if (!has_lsn_vectors_) return;
  size_t offset = sizeof(TxnId);
  for (uint32_t j = 0; j < log_count_; ++j) {
    Lsn until = anchor[j];
    if ((record.header.lv_mask >> j & 1) != 0) {
      until = std::max(until, *FieldOf<Lsn>(record.body, offset));
      offset += sizeof(Lsn);
    }
    log_->lsn_vectors.push_back(until);
  }
}

void ParallelismMeter::End(Lsn end) {
  log_->end = end;
  log_ = nullptr;
}

// ---- Reporting --------------------------------------------------------------------------------------------

std::vector<ModelledOrder> ParallelismMeter::Orders() const {
  std::vector<ModelledOrder> orders;
  if (has_lsn_vectors_) orders = {ModelledOrder::kLsnVectors, ModelledOrder::kLanes};
  if (has_parts_) orders.push_back(ModelledOrder::kPartitions);
  if (has_images_) orders.push_back(ModelledOrder::kNewestWins);
  orders.push_back(ModelledOrder::kTotal);
  return orders;
}

ParallelismReport ParallelismMeter::Finish(std::optional<Stamp> last) {
  ParallelismReport report;
  report.options = options_;
  report.run_id = header_.run_id;
  report.scheme = kSchemes[header_.scheme].folder;
  report.payload = kPayloadNames[header_.payload];
  report.logs = logs_.size();
  if (has_lsn_vectors_) report.dropped += DropBehindEnds(logs_);
  if (last) report.dropped += DropAbove(logs_, *last);
  if (has_parts_) {
    report.dropped += DropBehindStamps(logs_);
    AwaitStamps(logs_);
  }
  const std::vector<ModelledOrder> allowed = Orders();
  for (const ModelledOrder order : options_.orders) {
    if (std::ranges::find(allowed, order) != allowed.end()) continue;
    std::vector<std::string_view> names(allowed.size());
    std::ranges::transform(allowed, names.begin(), NameOf);
    throw Error(ExitStatus::kUsage, fmt::format("--orders={} is no order of these records; there are {}", NameOf(order),
                                                fmt::join(names, ", ")));
  }
  const ReplayModel model(logs_);
  report.records = model.record_count();
  report.work_ns = model.work_ns();
  for (const ModelledOrder order : options_.orders.empty() ? allowed : options_.orders) {
    report.orders.push_back({order, model.CriticalPathNs(order), {}});
    for (const uint32_t threads : options_.threads) {
      report.orders.back().times.push_back({threads, model.TimeNs(order, threads)});
    }
  }
  return report;
}

std::string ParallelismReport::Table() const {
  std::string text = fmt::format("replay of run {:016x}, modelled: {} records in {} logs ({}, {}), {} dropped\n",
                                 run_id, records, logs, scheme, payload, dropped);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "  a record costs {:g} ns for each change or command", options.replay_ns);
  for (const auto& [id, ns] : options.procedure_ns) fmt::format_to(out, ", {:g} ns for procedure {}", ns, id);
  fmt::format_to(out, ", and {:g} ns per byte; ", options.byte_ns);
  if (options.device_mb_per_s > 0) {
    fmt::format_to(out, "each device reads {:g} MB/s\n", options.device_mb_per_s);
  } else {
    text += "devices do not limit it\n";
  }
  fmt::format_to(out, "  {:<12} {:>10} {:>12} {:>16} {:>12}\n", "order", "records", "work ms", "critical path ms",
                 "parallelism");
  for (const Order& o : orders) {
    fmt::format_to(out, "  {:<12} {:>10} {:>12.6f} {:>16.6f} {:>12.2f}  modelled\n", NameOf(o.order), records,
                   Millis(work_ns), Millis(o.critical_path_ns), Ratio(work_ns, o.critical_path_ns));
  }
  fmt::format_to(out, "  {:<12} {:>10} {:>12} {:>16}\n", "order", "threads", "time ms", "speedup");
  for (const Order& o : orders) {
    for (const Time& time : o.times) {
      fmt::format_to(out, "  {:<12} {:>10} {:>12.6f} {:>16.2f} {:>12}  modelled\n", NameOf(o.order),
                     TextOf(time.threads), Millis(time.ns), Ratio(work_ns, time.ns), "");
    }
  }
  return text;
}

std::string ParallelismReport::JsonRecord() const {
  Json record = {{"schema_version", kSchemaVersion},
                 {"kind", "replay_parallelism"},
                 {"modelled", true},
                 {"run", fmt::format("{:016x}", run_id)},
                 {"scheme", scheme},
                 {"payload", payload},
                 {"logs", logs},
                 {"records", records},
                 {"dropped", dropped},
                 {"replay_ns", options.replay_ns},
                 {"byte_ns", options.byte_ns},
                 {"procedure_ns", Json::object()},
                 {"device_mb_per_s", options.device_mb_per_s}};
  for (const auto& [id, ns] : options.procedure_ns) record["procedure_ns"][std::to_string(id)] = ns;
  Json& list = record["orders"] = Json::array();
  for (const Order& o : orders) {
    Json times = Json::array();
    for (const Time& time : o.times) {
      const Json threads = time.threads == kUnlimitedThreads ? Json(kUnlimited) : Json(time.threads);
      times.push_back(
          {{"threads", threads}, {"time_ns", time.ns}, {"speedup", Ratio(work_ns, time.ns)}, {"modelled", true}});
    }
    list.push_back({{"order", NameOf(o.order)},
                    {"records", records},
                    {"work_ns", work_ns},
                    {"critical_path_ns", o.critical_path_ns},
                    {"parallelism", Ratio(work_ns, o.critical_path_ns)},
                    {"modelled", true},
                    {"times", std::move(times)}});
  }
  return record.dump();
}

}  // namespace dbx
