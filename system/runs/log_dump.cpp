// log_dump [--verify] [--backward] [--records N] [--parallelism [FLAG...]] FILE...
//
// Prints log files readably and checks them: the header, each record of the valid prefix, totals by kind, and whether
// the log ends where it may. Damage to bytes that had been durable is told apart from a torn tail by the evidence of
// all given files of the same run (logging/README.md, "What is valid"). With --backward the last record comes first.
// A log that was truncated below what the newest backup or row checkpoint needs is read from there on: its run's
// anchor, which is among the files or beside one of them, says where that is. The other files of a run are printed in a
// few lines, and checked; of a part of a backup each page is, of the log of a heap's gaps each record.
//
// Of a cluster of masters it takes the directory cluster-NNNN, one of its Log Stores', or files of that: of the first
// it prints each master's log as the stores have it together, of the others frames (print_cluster.h).
//
// With --verify the files must be all logs of one run, and no records are printed unless --records asks for some. The
// same holds with --parallelism (parallelism_report.h), which also takes the directory of a run for its logs.
//
// Each fault is one line on standard error, "error: <what> <file>@<offset>: <why>"; the exit status is the first
// one's: 0 none (a torn tail is none), 2 usage, 3 damage, 4 input or output, 5 memory, 6 mismatch.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/types.h"
#include "logging/backup/anchor_file.h"
#include "logging/device/file_device.h"
#include "logging/device/posix_file_system.h"
#include "logging/device/striped_device.h"
#include "logging/format.h"
#include "logging/frontier_file.h"
#include "logging/log_reader.h"
#include "logging/log_tail.h"
#include "logging/records/record_type.h"
#include "logging/row_changes.h"
#include "logging/schemes.h"
#include "logging/write_entries.h"
#include "system/command_line/output_file.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"
#include "system/runs/parallelism_report.h"
#include "system/runs/print_cluster.h"
#include "system/runs/print_run_files.h"
#include "system/runs/row_anchor.h"

namespace dbx {
namespace {

using format::RecordHeader;

constexpr std::string_view kUsage =
    "usage: log_dump [--verify] [--backward] [--records N] [--parallelism [FLAG...]] FILE...";
constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kArgumentBytesShown = 32;

struct Options {
  bool verify = false;
  bool backward = false;
  bool help = false;
  ParallelismOptions parallelism;
  uint64_t records = std::numeric_limits<uint64_t>::max();  // printed per log
  std::vector<std::string> paths;
};

// Records of the valid prefix, by RecordKind.
struct Counts {
  uint64_t records[records::kKinds] = {};
  uint64_t bytes[records::kKinds] = {};
};

struct DumpedLog {
  std::unique_ptr<BlockDevice> device;  // of a file, or of all stripes
  format::FileHeader header;
  LogSource source;
  Counts counts;
  std::vector<RecordBatch> batches;  // without their buffers, where they are printed once the end is known
  bool readable = false;             // up to the frontier without a contradiction
  bool clean_end = false;
  Lsn frontier;
  std::string end_reason;
  uint64_t cut_bytes = 0;
  ProofPerLog proofs;
};

Options Parse(int argc, char** argv) {
  Options options;
  std::optional<uint64_t> records;
  std::string_view parallelism_flag;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--verify") {
      options.verify = true;
    } else if (arg == "--backward") {
      options.backward = true;
    } else if (arg == "--help" || arg == "-h") {
      options.help = true;
    } else if (arg == "--records" || arg.starts_with("--records=")) {
      std::string_view value;
      if (arg.size() > 10) value = arg.substr(10);
      if (arg.size() == 9 && ++i < argc) value = argv[i];
      uint64_t count = 0;
      const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), count);
      if (problem != std::errc() || end != value.data() + value.size()) {
        throw Error(ExitStatus::kUsage, "--records wants a number; " + std::string(kUsage));
      }
      records = count;
    } else if (ParseParallelismFlag(arg, options.parallelism)) {
      parallelism_flag = arg;
    } else if (arg.starts_with("-")) {
      throw Error(ExitStatus::kUsage, "unknown flag " + std::string(arg) + "; " + std::string(kUsage));
    } else {
      options.paths.emplace_back(arg);
    }
  }
  if (options.paths.empty() && !options.help) throw Error(ExitStatus::kUsage, std::string(kUsage));
  if (!parallelism_flag.empty() && !options.parallelism.asked) {
    throw Error(ExitStatus::kUsage,
                std::string(parallelism_flag) + " belongs to --parallelism; " + std::string(kUsage));
  }
  if (options.verify || options.parallelism.asked) options.records = 0;
  if (records) options.records = *records;
  return options;
}

void PrintHeader(const DumpedLog& log) {
  const format::FileHeader& h = log.header;
  std::printf("%s\n", log.device->path().c_str());
  std::printf("  version %" PRIu32 ", database %016" PRIx64 ", run %016" PRIx64 ", log %u of %u, %s, %s\n", h.version,
              h.database_id, h.run_id, h.log_index, h.log_count, kSchemes[h.scheme].folder.data(),
              kPayloadNames[h.payload]);
  if (log.source.is_cut()) std::printf("  truncated below LSN %" PRIu64 "\n", log.source.needed.value());
  if (IsStripe(h)) std::printf("  one log in stripes of %" PRIu32 " bytes\n", h.stripe_bytes);
  std::printf("  ring %" PRIu64 " bytes, schema %016" PRIx64 "\n", h.ring_bytes, h.schema_hash);
  if (Continues(h)) {
    std::printf("  continues run-%04" PRIu32 " (%016" PRIx64 ") from LSN %" PRIu64 "\n", h.parent_run, h.parent_run_id,
                h.start_lsn);
  }
  std::string_view config = ConfigText(h);
  while (!config.empty()) {
    const size_t line = std::min(config.find('\n'), config.size());
    std::printf("  %.*s\n", static_cast<int>(line), config.data());
    config.remove_prefix(std::min(line + 1, config.size()));
  }
}

void PrintArguments(std::span<const std::byte> args) {
  std::printf(" args %zu bytes", args.size());
  for (size_t i = 0; i < std::min(args.size(), kArgumentBytesShown); ++i) {
    std::printf("%s%02x", i % 8 == 0 ? " " : "", std::to_integer<unsigned>(args[i]));
  }
  std::printf("%s\n", args.size() > kArgumentBytesShown ? " ..." : "");
}

void PrintWrites(std::span<const std::byte> rows) {
  std::printf("\n");
  WriteEntries entries(rows);
  for (WriteImage image; entries.Next(image);) {
    std::printf("      %s table %u key %" PRIu64 " (%zu bytes)\n", image.op == format::WriteOp::kPut ? "put" : "delete",
                image.table.value(), image.key, image.image.size());
  }
}

void PrintChanges(std::span<const std::byte> rows) {
  constexpr const char* kOps[] = {"", "insert", "delete", "update"};
  static_assert(std::size(kOps) == static_cast<size_t>(format::RowChangeOp::kLast) + 1);
  std::printf("\n");
  RowChanges changes(rows);
  for (RowChange change; changes.Next(change);) {
    std::printf("      %s table %u key %" PRIu64 " (%zu bytes)", kOps[static_cast<size_t>(change.op)],
                change.table.value(), change.key, change.bytes.size());
    if (!change.previous.is_none()) std::printf(" previous lsn %" PRIu64, change.previous.record().value());
    std::printf("\n");
  }
}

void PrintRecord(const DumpedLog& log, const RecordType& type, const RecordView& record, const LsnPerLog& anchor) {
  const RecordHeader& header = record.header;
  const bool is_transaction = type.role == RecordRole::kTransaction;
  std::printf("  lsn %" PRIu64 " %s (%" PRIu32 " bytes)", header.lsn, type.name, header.length);
  if (is_transaction) {
    const TxnId id = *FieldOf<TxnId>(record.body);
    std::printf(" txn %" PRIu32 ":%" PRIu64, id.worker().value(), id.sequence());
  }
  std::string text;
  const bool has_vectors = kSchemes[log.header.scheme].has_lsn_vectors;
  if (type.describe != nullptr) type.describe(record, has_vectors ? &anchor : nullptr, text);
  std::printf("%s", text.c_str());
  if (!is_transaction) {
    std::printf("\n");
    return;
  }
  const auto payload = record.body.subspan(type.leading_bytes(header));
  if (type.has_rows) return PrintWrites(payload);
  if (type.has_row_changes) return PrintChanges(payload);
  std::printf(" procedure %u", header.procedure);
  PrintArguments(payload);
}

// The check that LogReader leaves to decoders: that a transaction's body fits its kind and its LSN vector.
void CheckShape(const DumpedLog& log, const RecordType& type, const RecordView& record) {
  if (type.role != RecordRole::kTransaction) return;
  const auto refuse = [&](const char* why) { ThrowDamaged(log.source, Lsn(record.header.lsn), why); };
  const size_t leading = type.leading_bytes(record.header);
  if (record.header.lv_mask >> log.source.log_count != 0) refuse("it names a log that does not exist");
  if (record.body.size() < leading) refuse("its LSN vector or stamp is cut off");
  if (type.has_row_changes) {
    RowChanges changes(record.body.subspan(leading));
    for (RowChange change; changes.Next(change);) {
      if (!change.previous.IsBelow(Lsn(record.header.lsn))) refuse("the previous record of a row is not below it");
    }
    if (changes.malformed()) refuse("a change of a row makes no sense");
  }
  if (!type.has_rows) return;
  WriteEntries entries(record.body.subspan(leading));
  WriteImage image;
  while (entries.Next(image)) continue;
  if (entries.malformed()) refuse("a row image makes no sense");
}

// Calls `visit(type, record, anchor)` with each record of the batch and the anchor in force at it.
template <class Visit>
void ForEachRecord(const DumpedLog& log, const RecordBatch& batch, Visit&& visit) {
  LsnPerLog anchor = batch.anchor;
  const std::byte* at = batch.bytes;
  for (Lsn lsn = batch.first; lsn < batch.end;) {
    RecordHeader header;
    std::memcpy(&header, at, sizeof header);
    const RecordType& type = *TypeOf(header.kind);
    const RecordView record{header, {at + sizeof header, header.length - sizeof header}, log.source.log_count};
    visit(type, record, anchor);
    if (type.role == RecordRole::kAnchor) std::memcpy(anchor.data(), record.body.data(), record.body.size());
    at += header.length;
    lsn += header.length;
  }
}

void DumpBatch(DumpedLog& log, const RecordBatch& batch, uint64_t& records_left) {
  ForEachRecord(log, batch, [&](const RecordType& type, const RecordView& record, const LsnPerLog& anchor) {
    CheckShape(log, type, record);
    ++log.counts.records[record.header.kind];
    log.counts.bytes[record.header.kind] += record.header.length;
    if (records_left == 0) return;
    --records_left;
    PrintRecord(log, type, record, anchor);
  });
}

// The batches that Read has found, last record first.
void PrintBackward(const DumpedLog& log, uint64_t records_left) {
  struct Found {
    const RecordType* type;
    RecordHeader header;
    std::span<const std::byte> body;
    LsnPerLog anchor;
  };
  for (auto batch = log.batches.rbegin(); batch != log.batches.rend() && records_left > 0; ++batch) {
    std::vector<std::byte> bytes(static_cast<size_t>(batch->end - batch->first));
    log.device->Read(log.source.OffsetOf(batch->first), bytes);
    RecordBatch again = *batch;
    again.bytes = bytes.data();
    std::vector<Found> records;
    ForEachRecord(log, again, [&](const RecordType& type, const RecordView& record, const LsnPerLog& anchor) {
      records.push_back({&type, record.header, record.body, anchor});
    });
    for (auto record = records.rbegin(); record != records.rend() && records_left > 0; ++record, --records_left) {
      PrintRecord(log, *record->type, {record->header, record->body, log.source.log_count}, record->anchor);
    }
  }
}

DumpedLog Open(const std::string& path) {
  DumpedLog log;
  log.device = OpenFileDevice(path);
  log.header = ReadHeader(*log.device);
  log.source = {log.device.get(),     log.header.run_id,    log.header.ring_bytes,
                log.header.log_index, log.header.log_count, Lsn(log.header.start_lsn)};
  return log;
}

// The stripes of a run's log as one log; a stripe by itself holds pieces of records only.
DumpedLog Joined(std::vector<DumpedLog> stripes) {
  DumpedLog log = std::move(stripes.front());
  std::vector<std::unique_ptr<BlockDevice>> devices(log.header.log_count);
  const std::string first = log.device->PlaceOf(0);
  devices[log.header.log_index] = std::move(log.device);
  for (size_t i = 1; i < stripes.size(); ++i) devices[stripes[i].header.log_index] = std::move(stripes[i].device);
  if (std::count(devices.begin(), devices.end(), nullptr) > 0) {
    throw Error(ExitStatus::kMismatch, "cannot read " + first + ": one of " + std::to_string(devices.size()) +
                                           " stripes of a log, and not all are given; name all of them");
  }
  log.device = std::make_unique<StripedDevice>(std::move(devices), format::kStreamOffset, log.header.stripe_bytes);
  log.source = {log.device.get(), log.header.run_id, log.header.ring_bytes, 0, 1, Lsn(log.header.start_lsn)};
  return log;
}

// `meter`: where the parallelism of the replay is asked for.
void Read(DumpedLog& log, uint64_t records_max, bool backward, ParallelismMeter* meter) {
  LogReader reader(log.source, kReadBytes, 2);
  uint64_t records_left = backward ? 0 : records_max;
  uint32_t batches = 0;
  if (meter != nullptr) meter->Begin(log.header, log.source);
  for (RecordBatch batch; reader.Cut(batch) == LogReader::Result::kBatch; batch.buffer->Release(), ++batches) {
    DumpBatch(log, batch, records_left);
    if (backward) log.batches.push_back(batch);
    if (meter == nullptr) continue;
    ForEachRecord(log, batch, [&](const RecordType& type, const RecordView& record, const LsnPerLog& anchor) {
      meter->Take(type, record, anchor, batches);
    });
  }
  if (meter != nullptr) meter->End(reader.position());
  PrintBackward(log, records_max);
  log.frontier = reader.position();
  log.end_reason = reader.end_reason();
  log.clean_end = reader.run_end().has_value();
  log.proofs = reader.totals().proofs;
  const TailFindings tail = ExamineTail(log.source, log.frontier);
  log.cut_bytes = tail.cut_bytes;
  for (size_t i = 0; i < log.proofs.size(); ++i) log.proofs[i].Raise(tail.proofs[i]);
  log.readable = true;
}

void PrintSummary(const DumpedLog& log) {
  std::printf("  valid up to LSN %" PRIu64 " (offset %" PRIu64 "):", log.frontier.value(),
              log.source.OffsetOf(log.frontier));
  const char* separator = " ";
  for (size_t kind = 1; kind < records::kKinds; ++kind) {
    if (log.counts.records[kind] == 0) continue;
    std::printf("%s%" PRIu64 " %s in %" PRIu64 " bytes", separator, log.counts.records[kind],
                records::kTypes[kind]->name, log.counts.bytes[kind]);
    separator = ", ";
  }
  std::printf("%s\n", *separator == ' ' ? " no records" : "");
  if (log.clean_end) {
    std::printf("  clean end\n");
  } else if (log.cut_bytes > 0) {
    std::printf("  no clean end; a tail of %" PRIu64 " bytes follows that is no record: %s\n", log.cut_bytes,
                log.end_reason.c_str());
  } else {
    std::printf("  no clean end; nothing follows\n");
  }
}

// Does any of `logs` show that `log` had been durable beyond its frontier?
void CheckEvidence(const DumpedLog& log, const std::vector<DumpedLog>& logs) {
  for (const DumpedLog& witness : logs) {
    const DurabilityProof& proof = witness.proofs[log.source.log_index];
    if (witness.header.run_id != log.header.run_id || proof.until <= log.frontier) continue;
    ThrowDamaged(log.source, log.frontier,
                 log.end_reason + ", but the " + proof.what + " at " + PlaceOf(witness.source, proof.at) +
                     " shows that it was durable up to LSN " + std::to_string(proof.until.value()));
  }
}

// With what to pass instead: a file in it, or in its newest run.
void RefuseDirectory(const std::string& path) {
  PosixFileSystem files;
  if (files.KindOf(path) != FileSystem::Entry::kDirectory) return;
  std::string found = path;
  for (const char* beginning : {"run-", "log-"}) {
    std::string newest;
    for (const std::string& name : files.List(found)) {
      const bool is_first_log = name.starts_with("log-") && !newest.empty();
      if (name.starts_with(beginning) && !is_first_log) newest = name;
    }
    if (!newest.empty()) found += "/" + newest;
  }
  const bool is_file = files.KindOf(found) == FileSystem::Entry::kFile;
  throw Error(ExitStatus::kUsage, path + " is a directory; pass the files of a run" +
                                      (is_file ? ", such as " + found : std::string(" (run-NNNN/log-NN.log)")));
}

// Each directory with logs replaced by these.
std::vector<std::string> WithLogsOf(const std::vector<std::string>& paths) {
  PosixFileSystem files;
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    const size_t before = found.size();
    if (files.KindOf(path) == FileSystem::Entry::kDirectory) {
      for (const std::string& name : files.List(path)) {
        if (LogIndexOf(name)) found.push_back(path + "/" + name);
      }
    }
    if (found.size() == before) found.push_back(path);
  }
  return found;
}

// Runs the steps of a dump; an error of one is reported and does not keep the others from running.
class Dump {
 public:
  int Run(Options options) {
    const bool asked = options.parallelism.asked;
    if (asked) options.paths = WithLogsOf(options.paths);
    if (!options.parallelism.json_file.empty()) CheckAppendable(options.parallelism.json_file);
    std::vector<DumpedLog> logs;
    for (const std::string& path : options.paths) {
      if (IsOfCluster(path)) {
        Step([&] { DumpCluster(path, options); });
        continue;
      }
      Step([&] {
        RefuseDirectory(path);
        Lock(ParentDirectory(path));
        if (!PrintRunFile(path, [this](const Error& error) { Report(error); })) logs.push_back(Open(path));
      });
    }
    const bool has_logs = !std::all_of(options.paths.begin(), options.paths.end(), IsOfCluster);
    if ((options.verify || asked) && has_logs && status_ == ExitStatus::kOk) {
      Step([&] { CheckRun(logs, options.verify ? "--verify" : "--parallelism"); });
    }
    if (asked && status_ == ExitStatus::kOk) Step([&] { ParallelismMeter::CheckModelled(logs.front().header); });
    if (asked && status_ != ExitStatus::kOk) return static_cast<int>(status_);
    ParallelismMeter meter(options.parallelism);
    logs = WithStripesJoined(std::move(logs));
    for (DumpedLog& log : logs) BeginWhereNeeded(log, options.paths);
    for (DumpedLog& log : logs) {
      PrintHeader(log);
      Step([&] { Read(log, options.records, options.backward, asked ? &meter : nullptr); });
      if (log.readable) PrintSummary(log);
    }
    for (const DumpedLog& log : logs) {
      if (log.readable) Step([&] { CheckEvidence(log, logs); });
    }
    if (options.verify && has_logs && status_ == ExitStatus::kOk) std::printf("verified: %zu logs\n", logs.size());
    if (asked && status_ == ExitStatus::kOk) Step([&] { ReportParallelism(meter, logs, options.parallelism); });
    if (std::fflush(stdout) != 0) Step([] { throw Error(ExitStatus::kIo, "cannot write standard output"); });
    return static_cast<int>(status_);
  }

 private:
  void DumpCluster(const std::string& path, const Options& options) {
    if (options.backward || options.parallelism.asked) {
      throw Error(ExitStatus::kUsage, path + " is of a cluster, which takes neither --backward nor --parallelism");
    }
    Lock(ClusterDirectoryOf(path));
    PrintCluster(path, {options.records, !options.verify}, [this](const Error& error) { Report(error); });
  }

  // In a run that is still writing, a log would look damaged compared with one that was read later.
  void Lock(const std::string& directory) {
    locks_.push_back(PosixFileSystem().LockDirectory(directory, FileSystem::LockKind::kShared));
    if (locks_.back() != nullptr) return;
    throw Error(ExitStatus::kIo, "cannot read logs in use: another process is writing in " + directory);
  }

  // Below which position an anchor lets the log be truncated, if it is of the log's run.
  static std::optional<Lsn> TruncatedBelow(const std::string& anchor_path, const DumpedLog& log) {
    const auto needed_of = [&](const auto& anchor, const std::vector<Lsn>& needed) -> std::optional<Lsn> {
      const bool is_of_run = anchor.run_id == log.header.run_id && log.source.log_index < needed.size();
      return is_of_run && anchor.truncates ? std::optional(needed[log.source.log_index]) : std::nullopt;
    };
    const FileBytes file = PosixFileSystem().Map(anchor_path);
    if (BaseNameOf(anchor_path) == kRowAnchorFileName) {
      const RowAnchor anchor = DecodeRowAnchor(file.bytes, anchor_path);
      return needed_of(anchor, anchor.start);
    }
    const BackupAnchor anchor = DecodeAnchor(file.bytes, anchor_path);
    return needed_of(anchor, anchor.needed);
  }

  // By the anchor of its run. One that cannot be read was reported if it was asked for.
  static void BeginWhereNeeded(DumpedLog& log, const std::vector<std::string>& paths) {
    const std::string name = kSchemes[log.header.scheme].needs_pages ? kAnchorFileName : kRowAnchorFileName;
    PosixFileSystem files;
    for (const std::string& path : paths) {
      for (const std::string& found : {path, ParentDirectory(path) + "/" + name}) {
        if (BaseNameOf(found) != name || files.KindOf(found) != FileSystem::Entry::kFile) continue;
        try {
          if (const auto needed = TruncatedBelow(found, log)) log.source.needed = *needed;
        } catch (const Error&) {
          continue;
        }
      }
    }
  }

  std::vector<DumpedLog> WithStripesJoined(std::vector<DumpedLog> logs) {
    std::map<uint64_t, std::vector<DumpedLog>> stripes;  // by run
    std::vector<DumpedLog> whole;
    for (DumpedLog& log : logs) {
      (IsStripe(log.header) ? stripes[log.header.run_id] : whole).push_back(std::move(log));
    }
    for (auto& of_run : stripes) {
      Step([&] { whole.push_back(Joined(std::move(of_run.second))); });
    }
    return whole;
  }

  static void CheckRun(const std::vector<DumpedLog>& logs, const std::string& flag) {
    if (logs.empty()) {
      throw Error(ExitStatus::kUsage, flag + " is of all logs of a run, and none is given; " + std::string(kUsage));
    }
    std::vector<format::FileHeader> headers(logs.size());
    std::vector<std::string> paths(logs.size());
    for (const DumpedLog& log : logs) {
      // In the order of their index, as far as there is one.
      const size_t wanted = log.header.log_index;
      size_t place = wanted < logs.size() && paths[wanted].empty() ? wanted : 0;
      while (!paths[place].empty()) ++place;
      headers[place] = log.header;
      paths[place] = log.device->path();
    }
    CheckSameRun(headers, paths);
  }

  static void ReportParallelism(ParallelismMeter& meter, const std::vector<DumpedLog>& logs,
                                const ParallelismOptions& options) {
    std::optional<Stamp> last;
    if (meter.needs_frontier()) {
      const auto first = std::ranges::find(logs, 0u, [](const DumpedLog& log) { return log.source.log_index; });
      const std::string path = ParentDirectory(first->device->path()) + "/" + kFrontierFileName;
      last = ReadFrontier(PosixFileSystem().Map(path).bytes, first->header.run_id, path).stamp;
    }
    const ParallelismReport report = meter.Finish(last);
    std::printf("%s", report.Table().c_str());
    if (!options.json_file.empty()) AppendRecord(options.json_file, report.JsonRecord());
  }

  template <class Action>
  void Step(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      Report(error);
    }
  }

  void Report(const Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: %s\n", error.what());
    if (status_ == ExitStatus::kOk) status_ = error.status();
  }

  ExitStatus status_ = ExitStatus::kOk;
  std::vector<DirectoryLock> locks_;
};

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  if (!options.help) return Dump().Run(options);
  std::printf("%.*s\n%.*s\n", static_cast<int>(kUsage.size()), kUsage.data(),
              static_cast<int>(ParallelismOptions::kHelp.size()), ParallelismOptions::kHelp.data());
  return 0;
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) {
  try {
    return dbx::Main(argc, argv);
  } catch (const dbx::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.status());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error: out of memory\n");
    return static_cast<int>(dbx::ExitStatus::kNoSpace);
  }
}
