// From the command line to Options and from there to the texts of a configuration: -S, -h, the JSON record, the
// configuration text in a log's header. Switches are defined in switches.cpp, once.
#include "system/command_line/parse_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/program_options.hpp>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "concurrency_control/controls.h"
#include "logging/format.h"
#include "logging/schemes.h"
#include "system/command_line/environment.h"
#include "system/command_line/parse_cluster.h"
#include "system/command_line/parse_measuring.h"
#include "system/command_line/parse_replication.h"
#include "system/command_line/parse_value.h"
#include "system/command_line/switches.h"
#include "system/pairs/configured.h"

namespace dbx {
namespace {

namespace po = boost::program_options;

constexpr uint64_t kBlockBytes = 4096;  // log writes, reads and buffers are whole blocks

using Warnings = std::vector<std::string>;

[[noreturn]] void Usage(const std::string& what) { throw Error(ExitStatus::kUsage, what); }

// ---- Flags to switches ------------------------------------------------------------------------------------

// The switch whose short flag is the longest one that `token` (without its dash) begins with.
const Switch* FindShort(std::string_view token) {
  const Switch* found = nullptr;
  for (const Switch& s : Switches()) {
    if (s.flag.empty() || !token.starts_with(s.flag)) continue;
    if (found == nullptr || s.flag.size() > found->flag.size()) found = &s;
  }
  return found;
}

// DBx1000's short flags: one dash, the value glued on; -o may also take the next token.
std::vector<po::option> ParseShortFlag(std::vector<std::string>& tokens) {
  const std::string token = tokens.front();
  if (token.size() < 2 || token[0] != '-' || token[1] == '-') return {};
  const Switch* s = FindShort(std::string_view(token).substr(1));
  if (s == nullptr) Usage(fmt::format("unknown flag {}; see -h", token));
  tokens.erase(tokens.begin());
  po::option option;
  option.string_key = s->LongName();
  option.original_tokens = {token};
  std::string value = token.substr(1 + s->flag.size());
  if (s->kind == SwitchKind::kBare) {
    if (!value.empty()) Usage(fmt::format("unknown flag {}: -{} takes no value; see -h", token, s->flag));
    value = "1";
  } else if (value.empty() && s->kind == SwitchKind::kText && !tokens.empty()) {
    value = tokens.front();
    option.original_tokens.push_back(value);
    tokens.erase(tokens.begin());
  }
  if (value.empty() && s->kind != SwitchKind::kIgnored) {
    Usage(fmt::format("{}: {} needs a value, glued on; see -h", token, s->name));
  }
  option.value = {value};
  return {option};
}

// An ignored long flag: its value may be the next token, as for other flags, or there is none. Nothing else can follow,
// as there are no arguments but flags.
std::vector<po::option> ParseIgnoredFlag(std::vector<std::string>& tokens) {
  const std::string token = tokens.front();
  if (!token.starts_with("--") || tokens.size() < 2 || tokens[1].starts_with('-')) return {};
  for (const Switch& s : Switches()) {
    if (s.kind != SwitchKind::kIgnored || s.LongName() != std::string_view(token).substr(2)) continue;
    po::option option;
    option.string_key = s.LongName();
    option.original_tokens = {token, tokens[1]};
    option.value = {tokens[1]};
    tokens.erase(tokens.begin(), tokens.begin() + 2);
    return {option};
  }
  return {};
}

// Boost's extra parser.
std::vector<po::option> ParseFlag(std::vector<std::string>& tokens) {
  std::vector<po::option> options = ParseShortFlag(tokens);
  return options.empty() ? ParseIgnoredFlag(tokens) : options;
}

po::options_description Describe() {
  po::options_description description;
  for (const Switch& s : Switches()) {
    const bool bare = s.TakesNoValue() || s.kind == SwitchKind::kIgnored;
    for (const std::string& name : {s.LongName(), std::string(s.alias)}) {
      if (name.empty()) continue;
      auto* value = po::value<std::string>();
      if (bare) value->implicit_value("1");
      description.add_options()(name.c_str(), value, "");
    }
  }
  return description;
}

const Switch& FindLong(std::string_view name) {
  for (const Switch& s : Switches()) {
    if (s.alias == name || s.LongName() == name) return s;
  }
  Usage(fmt::format("unknown flag --{}; see -h", name));
}

struct Flag {
  const Switch* what;
  std::string value;
  std::string typed;  // for messages
};

std::vector<Flag> ParseFlags(int argc, char** argv) {
  namespace style = po::command_line_style;
  const po::options_description description = Describe();
  std::vector<Flag> flags;
  try {
    const auto parsed = po::command_line_parser(std::vector<std::string>(argv + std::min(argc, 1), argv + argc))
                            .options(description)
                            .style(style::allow_long | style::long_allow_adjacent | style::long_allow_next)
                            .extra_style_parser(ParseFlag)
                            .run();
    for (const po::option& option : parsed.options) {
      std::string typed;
      for (const auto& token : option.original_tokens) typed += (typed.empty() ? "" : " ") + token;
      if (option.string_key.empty()) Usage(fmt::format("unexpected argument {}; see -h", typed));
      const Switch& s = FindLong(option.string_key);
      flags.push_back({&s, option.value.empty() ? std::string("1") : option.value.front(), typed});
    }
  } catch (const po::unknown_option& e) {
    Usage(fmt::format("unknown flag {}; see -h", e.get_option_name()));
  } catch (const po::error& e) {
    Usage(fmt::format("{}; see -h", e.what()));
  }
  return flags;
}

void Set(const Flag& flag, Options& options) {
  try {
    SetSwitch(*flag.what, flag.value, options);
  } catch (const BadValue& e) {
    if (flag.what->flag == "Tp" && flag.value.find('.') != std::string::npos) {
      Usage(
          fmt::format("{}: -Tp is PSN_FLUSH_FREQ, a whole number of flushes; the share of Payment is -Tm", flag.typed));
    }
    Usage(fmt::format("{}: {}", flag.typed, e.what()));
  }
}

// ---- Dependencies between switches ------------------------------------------------------------------------

class Given {
 public:
  explicit Given(const Options& options) : names_(options.given.begin(), options.given.end()) {}
  bool operator()(const char* long_name) const { return names_.count(long_name) != 0; }
  void NotBoth(const char* one, const char* other) const {
    if ((*this)(one) && (*this)(other)) Usage(fmt::format("--{} and --{} exclude each other", one, other));
  }

 private:
  std::set<std::string, std::less<>> names_;
};

// 1 - share without the noise of binary fractions: 0.1 for 0.9.
double RestOf(double share) { return std::round((1 - share) * 1e12) / 1e12; }

// Scans take their share from reads and writes, unless those were given too.
void CompleteShares(const Given& given, Options& options) {
  const double scans = options.scan_perc;
  if (given("read_perc") && !given("write_perc")) options.write_perc = RestOf(options.read_perc + scans);
  if (given("write_perc") && !given("read_perc")) options.read_perc = RestOf(options.write_perc + scans);
  if (given("scan_perc") && !given("read_perc") && !given("write_perc")) {
    const double others = options.read_perc + options.write_perc;
    options.read_perc = others == 0 ? 0 : options.read_perc / others * (1 - scans);
    options.write_perc = RestOf(options.read_perc + scans);
  }
  const bool negative = std::min(options.read_perc, options.write_perc) < 0;
  if (negative || std::abs(options.read_perc + options.write_perc + scans - 1) > 1e-6) {
    Usage(fmt::format("READ_PERC {} and WRITE_PERC {} do not make 1 with SCAN_PERC {}", options.read_perc,
                      options.write_perc, scans));
  }
}

// What a log's header decides is not checked before it has been read.
void CheckScans(const Options& options) {
  if (options.workload != WorkloadKind::kYcsb || options.scan_perc == 0 || options.index == "IDX_BTREE") return;
  Usage(fmt::format("SCAN_PERC {} needs an index in the order of keys: add --index=IDX_BTREE", options.scan_perc));
}

// -Ar and -Ac each ask for one part of the TEST workload alone.
void CompleteTest(const Given& given, Options& options) {
  const bool read_write = given("test_read_write"), conflict = given("test_conflict");
  if (read_write && !conflict && options.test_read_write) options.test_conflict = false;
  if (conflict && !read_write && options.test_conflict) options.test_read_write = false;
  if (!options.test_read_write && !options.test_conflict) Usage("TEST_READ_WRITE and TEST_CONFLICT are both 0");
}

void CompleteDirectories(const Given& given, Options& options) {
  if (given("log_dir")) {
    if (given("num_disk") && options.number_of_disks != options.log_dirs.size()) {
      Usage(fmt::format("-LD{} contradicts the {} directories of --log_dir", options.number_of_disks,
                        options.log_dirs.size()));
    }
  } else if (given("num_disk")) {
    options.log_dirs.clear();
    for (uint32_t i = 0; i < options.number_of_disks; ++i) options.log_dirs.push_back(fmt::format("./logs/d{}", i));
  }
  options.number_of_disks = static_cast<uint32_t>(options.log_dirs.size());
  const std::set<std::string> distinct(options.log_dirs.begin(), options.log_dirs.end());
  if (distinct.size() != options.log_dirs.size()) Usage("--log_dir names a directory twice");
}

void CompleteHoppingDistance(const Given& given, Options& options) {
  uint64_t& distance = options.hopping_distance_bytes;
  const uint64_t largest = std::bit_floor(options.log_buffer_size / 2);
  if (!given("hopping_distance")) distance = std::min(distance, largest);
  if (!std::has_single_bit(distance)) Usage(fmt::format("HOPPING_DISTANCE {} is not a power of two", distance));
  if (distance > largest) {
    Usage(fmt::format("HOPPING_DISTANCE {} exceeds half of LOG_BUFFER_SIZE {}: a whole range must fit into the buffer",
                      distance, options.log_buffer_size));
  }
}

// Scripts compute sizes from the host's memory: a size that does not fit is rounded, with a warning.
void RoundToBlocks(const char* name, uint64_t& bytes, Warnings& warnings) {
  if (bytes % kBlockBytes == 0) return;
  const uint64_t rounded = bytes / kBlockBytes * kBlockBytes;
  warnings.push_back(fmt::format("{} {} is not a multiple of {}: rounded to {}", name, bytes, kBlockBytes, rounded));
  bytes = rounded;
}

void Bound(const char* name, uint64_t& bytes, uint64_t most, const char* what, Warnings& warnings) {
  if (bytes <= most) return;
  warnings.push_back(fmt::format("{} {} exceeds {}: reduced to {}", name, bytes, what, most));
  bytes = most;
}

// A size that was not given follows from a given buffer size.
void CompleteSizes(const Given& given, Options& options, Warnings& warnings) {
  RoundToBlocks("STRIPE_UNIT", options.stripe_unit_bytes, warnings);
  RoundToBlocks("LOG_BUFFER_SIZE", options.log_buffer_size, warnings);
  RoundToBlocks("FLUSH_BLOCK_SIZE", options.log_flush_block_bytes, warnings);
  RoundToBlocks("READ_BLOCK_SIZE", options.log_read_block_bytes, warnings);
  const uint64_t buffer = options.log_buffer_size;
  const uint64_t half = buffer / 2 / kBlockBytes * kBlockBytes, quarter = buffer / 4 / kBlockBytes * kBlockBytes;
  if (!given("max_log_entry_size")) options.max_log_entry_size = std::min(options.max_log_entry_size, quarter);
  if (!given("flush_block_size")) options.log_flush_block_bytes = std::min(options.log_flush_block_bytes, quarter);
  Bound("FLUSH_BLOCK_SIZE", options.log_flush_block_bytes, half, "half of LOG_BUFFER_SIZE", warnings);
  Bound("MAX_LOG_ENTRY_SIZE", options.max_log_entry_size, quarter, "a quarter of LOG_BUFFER_SIZE", warnings);
  CompleteHoppingDistance(given, options);
}

void CompleteStreams(const Given& given, Options& options) {
  if (!HasOneLog(options.log)) return;
  if (given("num_logger") && options.num_logger != 1) {
    Usage(fmt::format("{} writes one stream, not {}: leave --num_logger out, or choose a --log that takes several",
                      options.log, options.num_logger));
  }
  options.num_logger = 1;
}

// Without a core for each, a worker stalls whenever a writer wakes: the writers share the interval.
void CompleteFlushInterval(const Given& given, Options& options) {
  const uint64_t writers = options.log_writers();
  if (given("log_flush_interval") || options.thread_cnt + writers <= UsableCores()) return;
  options.log_flush_interval_us *= writers;
}

void CheckBackupDirectories(const Options& options) {
  if (options.backup_dirs < options.log_dirs.size()) return;
  Usage(fmt::format("BACKUP_DIRS {} leaves none of the {} directories of --log_dir to the logs", options.backup_dirs,
                    options.log_dirs.size()));
}

void CheckHeap(const Options& options) {
  if (options.log_dirs.size() > 1) Usage(options.log + " keeps its heap in one directory: name one in --log_dir");
  if (options.log_no_flush) Usage(options.log + " makes all it writes durable: leave LOG_NO_FLUSH out");
  if (options.checkpoint) Usage(options.log + " goes on in the same heap: leave --checkpoint out");
}

void CheckMode(const Given& given, const Options& options) {
  if (options.log_recover && options.continue_run) Usage("-Lr1 only recovers, --continue runs on: leave one out");
  if (options.checkpoint && !options.continue_run) Usage("--checkpoint belongs to --continue");
  if (options.redo_on_demand() && !options.continue_run) Usage("--redo=ON_DEMAND belongs to --continue");
  if (options.drop_old_runs && !options.checkpoint)
    Usage("--drop_old_runs needs --checkpoint: new logs build on the old");
  if (options.checkpoint && options.log_dirs.size() > format::kMaxCheckpointParts) {
    Usage(fmt::format("--checkpoint takes at most {} directories of --log_dir", format::kMaxCheckpointParts));
  }
  if (!options.log_recover) CheckBackupDirectories(options);
  if (!options.reads_log() && NeedsPages(options.log) && options.log_dirs.size() > format::kMaxCheckpointParts) {
    Usage(fmt::format("{} has a part of its backup in each directory of --log_dir, at most {}", options.log,
                      format::kMaxCheckpointParts));
  }
  if (!options.log_recover && HasVersionHeap(options.log)) CheckHeap(options);
  if (!options.log_recover && NeedsPages(options.log) && options.diff_method == "PL2P" &&
      options.diff_image == "RUNS") {
    Usage("DIFF_METHOD PL2P logs whole images: leave --diff_image=RUNS out");
  }
  if (options.log_recover && !options.ack_file.empty() && !options.verify) {
    Usage("--ack_file is checked by --verify: add it, or leave --ack_file out");
  }
  if (options.reads_log()) {
    if (options.log_overwrite) Usage("--log_overwrite would delete what is to be recovered");
    return;
  }
  for (const char* name : {"run", "recover_serial", "restart_level"}) {
    if (given(name)) Usage(fmt::format("--{} belongs to recovery: add -Lr1 or --continue", name));
  }
}

// A recovery takes the identity switches from the log; flags that affect only runs are no error, as scripts give both
// the same ones.
void WarnOfIgnored(const Given& given, const Options& options, Warnings& warnings) {
  if (!options.log_recover) return;
  std::string names;
  for (const Switch& s : Switches()) {
    if (s.recovers || s.identity != Identity::kNo || !given(s.LongName().c_str())) continue;
    names += (names.empty() ? "--" : ", --") + s.LongName();
  }
  if (!names.empty()) warnings.push_back(fmt::format("a recovery ignores {}: they are for runs", names));
}

void CompleteOptions(Options& options, Warnings& warnings) {
  const Given given(options);
  given.NotBoth("seconds", "max_txns_per_thread");
  given.NotBoth("update_simd", "simd");
  if (!options.update_simd && !given("simd")) options.simd = "scalar";
  options.update_simd = options.simd != "scalar";
  // DBx1000 has two names of optimistic multi-version concurrency control; here they are one.
  if (const ControlInfo* named = ControlNamed(options.cc)) options.cc = named->name;
  CompleteShares(given, options);
  if (options.tpcc_full_mix && given("perc_payment")) {
    Usage("PERC_PAYMENT divides Payment and New-Order, TPCC_FULL_MIX 1 is the standard's mix: leave one out");
  }
  CompleteTest(given, options);
  CompleteDirectories(given, options);
  CompleteSizes(given, options, warnings);
  // What a log's header decides is not checked before it has been read.
  if (!options.reads_log()) {
    CompleteStreams(given, options);
    CompleteFlushInterval(given, options);
    CheckScans(options);
  }
  CheckMode(given, options);
  if (const std::string mistake = ReplicationMistake(options); !mistake.empty()) Usage(mistake);
  if (const std::string mistake = ClusterMistake(options); !mistake.empty()) Usage(mistake);
  if (!options.log_recover) {
    if (const std::string mistake = CompleteSeries(given("series_interval"), options); !mistake.empty()) Usage(mistake);
  }
  WarnOfIgnored(given, options, warnings);
}

bool BelongsToLogsOf(Identity identity, WorkloadKind workload) {
  switch (identity) {
    case Identity::kNo:
      return false;
    case Identity::kAlways:
      return true;
    case Identity::kYcsb:
      return workload == WorkloadKind::kYcsb;
    case Identity::kTpcc:
      return workload == WorkloadKind::kTpcc;
    case Identity::kTest:
      return workload == WorkloadKind::kTest;
    case Identity::kSms:
      return workload == WorkloadKind::kSms;
    case Identity::kSysbench:
      return workload == WorkloadKind::kSysbench;
  }
  return false;
}

std::map<std::string, std::string, std::less<>> ParseIdentityLines(std::string_view text) {
  std::map<std::string, std::string, std::less<>> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n'), equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end) {
      throw Error(ExitStatus::kCorrupt, "the configuration in the log's header is not lines of NAME=value");
    }
    const std::string name(text.substr(0, equals));
    if (!lines.emplace(name, text.substr(equals + 1, end - equals - 1)).second) {
      throw Error(ExitStatus::kCorrupt, fmt::format("the configuration in the log's header names {} twice", name));
    }
    text.remove_prefix(end + 1);
  }
  return lines;
}

// Sets each switch of the log's identity from its line; returns those switches.
std::vector<const Switch*> SetIdentity(const std::map<std::string, std::string, std::less<>>& lines, Options& theirs) {
  std::vector<const Switch*> set;
  for (const auto& [name, value] : lines) {
    const auto all = Switches();
    const auto s = std::find_if(all.begin(), all.end(), [&wanted = name](const Switch& x) {
      return x.name == wanted && x.identity != Identity::kNo;
    });
    if (s == all.end()) {
      throw Error(ExitStatus::kMismatch, fmt::format("the log has a switch that this version does not know: {}", name));
    }
    try {
      SetSwitch(*s, value, theirs);
    } catch (const BadValue& e) {
      throw Error(ExitStatus::kCorrupt, fmt::format("the log's header says {}={}: {}", name, value, e.what()));
    }
    set.push_back(&*s);
  }
  return set;
}

std::string HelpLine(const Switch& s, const Options& defaults) {
  std::string left = "  --" + s.LongName();
  if (!s.value.empty()) left += fmt::format("={}", s.value);
  if (!s.flag.empty()) left += fmt::format(", -{}{}", s.flag, s.kind == SwitchKind::kBare ? "" : std::string(s.value));
  std::string right(s.help);
  if (!s.built.empty()) right += fmt::format(": {}", fmt::join(s.built, " "));
  std::string value = FormatSwitch(s, defaults);
  if (!value.empty() && s.kind != SwitchKind::kBare) right += fmt::format(" [{}]", value);
  return fmt::format("{:<44} {}\n", left, right);
}

}  // namespace

Options DefaultOptions() {
  using C = Configured;
  Options o;
  o.cc = C::kCcName;
  o.use_locktable = C::kUseLocktable;
  o.log = C::kLogName;
  o.log_type = C::kLogTypeName;
  o.workload = WorkloadNamed(C::kWorkloadName);
  o.index = C::kIndexName;
  o.isolation_level = C::kIsolationName;
  o.thread_cnt = C::kThreadCnt;
  o.max_txns_per_thread = C::kMaxTxnsPerThread;
  o.warmup = C::kWarmup;
  o.lookahead = C::kLookahead;
  o.abort_penalty_ns = C::kAbortPenaltyNs;
  o.epoch_period_ms = C::kEpochPeriodMs;
  o.prt_lat_distr = C::kPrtLatDistr;
  o.synth_table_size = C::kSynthTableSize;
  o.zipf_theta = C::kZipfTheta;
  o.read_perc = C::kReadPerc;
  o.write_perc = C::kWritePerc;
  o.scan_perc = C::kScanPerc;
  o.scan_len = C::kScanLen;
  o.req_per_query = C::kReqPerQuery;
  o.field_per_tuple = C::kFieldPerTuple;
  o.num_wh = C::kNumWh;
  o.perc_payment = C::kPercPayment;
  o.wh_update = C::kWhUpdate;
  o.tpcc_full_mix = C::kTpccFullMix;
  o.tpcc_small = C::kTpccSmall;
  o.sms_rows = C::kSmsRows;
  o.sms_slot_bytes = C::kSmsSlotBytes;
  o.sms_abort_perc = C::kSmsAbortPerc;
  o.num_logger = C::kNumLogger;
  o.time_breakdown = C::kTimeEnable;
  o.stripe_unit_bytes = C::kStripeUnitBytes;
  o.log_buffer_size = C::kLogBufferBytes;
  o.max_log_entry_size = C::kMaxLogEntryBytes;
  o.log_no_flush = C::kLogNoFlush;
  o.log_flush_interval_us = C::kLogFlushIntervalUs;
  o.log_flush_block_bytes = C::kFlushBlockBytes;
  o.log_read_block_bytes = C::kReadBlockBytes;
  o.log_limit_bytes = C::kLogLimitBytes;
  o.compress_lsn_log = C::kCompressLsnLog;
  o.psn_flush_freq = C::kPsnFlushFreq;
  o.latency_hiding = C::kLatencyHiding;
  o.central_log = C::kCentralLogName;
  o.hopping_distance_bytes = C::kHoppingDistanceBytes;
  o.page_bytes = C::kPageBytes;
  o.checkpoint_interval_ms = C::kCheckpointIntervalMs;
  o.checkpoint_bytes = C::kCheckpointBytes;
  o.checkpoint_cpu_perc = C::kCheckpointCpuPercent;
  o.diff_method = C::kDiffMethodName;
  o.log_truncation = C::kLogTruncation;
  o.diff_image = C::kDiffImageName;
  o.heap_bytes = C::kHeapBytes;
  o.index_lines = C::kIndexLines;
  o.flush = C::kFlushName;
  o.adopt_on_demand = C::kAdoptOnDemand;
  o.restart_level = C::kRestartLevel;
  o.update_simd = C::kUpdateSimd;
  o.locktable_modifier = C::kLocktableModifier;
  o.locktable_evict_buffer = C::kLocktableEvictBufferBytes;
  o.log_dirs = {"./logs"};
  Warnings of_config;  // sizes that were rounded; -S shows them
  CompleteOptions(o, of_config);
  return o;
}

Options ParseOptions(int argc, char** argv, std::vector<std::string>& warnings) {
  Options options = DefaultOptions();
  std::map<const Switch*, std::string> seen;
  for (const Flag& flag : ParseFlags(argc, argv)) {
    if (flag.what->kind == SwitchKind::kIgnored) {
      warnings.push_back(fmt::format("{} ({}) ignored: {}", flag.typed, flag.what->name, flag.what->help));
      continue;
    }
    Set(flag, options);
    const auto [before, is_first] = seen.emplace(flag.what, flag.typed);
    if (is_first) {
      options.given.push_back(flag.what->LongName());
      continue;
    }
    warnings.push_back(fmt::format("{} ignored: {} sets {} later", before->second, flag.typed, flag.what->name));
    before->second = flag.typed;
  }
  CompleteOptions(options, warnings);
  return options;
}

std::string IdentityText(const Options& options) {
  std::string text;
  for (const Switch& s : Switches()) {
    if (!BelongsToLogsOf(s.identity, options.workload)) continue;
    text += fmt::format("{}={}\n", s.name, FormatSwitch(s, options));
  }
  return text;
}

void AdoptIdentity(const std::string& identity_text, Options& options) {
  const auto lines = ParseIdentityLines(identity_text);
  Options theirs = options;
  const std::vector<const Switch*> in_log = SetIdentity(lines, theirs);
  for (const Switch& s : Switches()) {
    if (BelongsToLogsOf(s.identity, theirs.workload) && lines.find(s.name) == lines.end()) {
      throw Error(ExitStatus::kMismatch, fmt::format("the log does not say which {} it was written with", s.name));
    }
  }
  for (const Switch* s : in_log) {
    const auto& given = options.given;
    if (std::find(given.begin(), given.end(), s->LongName()) == given.end()) continue;
    const std::string ours = FormatSwitch(*s, options), logged = FormatSwitch(*s, theirs);
    if (ours != logged) {
      throw Error(ExitStatus::kMismatch,
                  fmt::format("{}: the command line says {}, the log was written with {}", s->name, ours, logged));
    }
  }
  options = theirs;
  // A continuing run has as many logs as the one before.
  if (options.continue_run) CompleteFlushInterval(Given(options), options);
}

std::vector<std::pair<std::string, std::string>> EffectiveConfiguration(const Options& options) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const Switch& s : Switches()) {
    if (s.kind == SwitchKind::kIgnored) continue;
    // -h and its like request no run.
    if (s.kind == SwitchKind::kBare && s.identity == Identity::kNo) continue;
    values.emplace_back(s.name, FormatSwitch(s, options));
  }
  return values;
}

bool SwitchIsNumeric(const std::string& name) {
  for (const Switch& s : Switches()) {
    if (s.name != name) continue;
    return s.kind != SwitchKind::kText && s.kind != SwitchKind::kList && s.kind != SwitchKind::kChoice &&
           s.kind != SwitchKind::kDevice && s.kind != SwitchKind::kCpus;
  }
  return false;
}

std::string HelpText() {
  const Options defaults = DefaultOptions();
  std::string text =
      "usage: rundb [flags]\n"
      "Short flags carry their value glued on (-t4), long ones take --name=value or --name value.\n"
      "Numbers take K, M, G (2^10, 2^20, 2^30), times ns, us, ms, s. The default is in brackets.\n\n";
  std::string ignored;
  for (const Switch& s : Switches()) {
    if (s.kind == SwitchKind::kIgnored) {
      ignored += fmt::format("{}{}", ignored.empty() ? "" : ", ",
                             s.flag.empty() ? std::string(s.name) : fmt::format("-{} {}", s.flag, s.name));
    } else {
      text += HelpLine(s, defaults);
    }
  }
  text += "\nAccepted for the sake of DBx1000 and its forks, without effect: " + ignored + ".\n";
  text += "Exit status: 0 ok, 2 usage, 3 corrupt log, 4 I/O, 5 no space or memory, 6 mismatch, 7 failed check.\n";
  return text;
}

}  // namespace dbx
