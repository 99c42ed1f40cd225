// log_dump --parallelism: costs the records of a run's logs, and reports work, critical path and modelled times of each
// order in which they may be replayed (replay_parallelism.h), as a table and as a JSON record.
//
// Begin with a log, Take its records in order, End it; then Finish. Main's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "logging/format.h"
#include "logging/log_reader.h"
#include "logging/records/record_type.h"
#include "system/runs/replay_parallelism.h"

namespace dbx {

struct ParallelismOptions {
  bool asked = false;
  std::vector<ModelledOrder> orders;  // none: all that the records allow
  std::vector<uint32_t> threads = {1, 2, 4, 8, 16, 32, 64, kUnlimitedThreads};
  // A record costs `replay_ns` for each change of a row, at least once, or for its command, and `byte_ns` for each
  // byte.
  double replay_ns = 100;
  double byte_ns = 0.05;
  std::map<uint16_t, double> procedure_ns;  // of commands, instead of replay_ns
  double device_mb_per_s = 0;               // of each log, or stripe; 0: no limit
  std::string json_file;

  static constexpr std::string_view kHelp =
      "\n"
      "--parallelism reads all logs of a run (files, or its directories) and models their replay:\n"
      "  --orders=LIST        of total, lsn_vectors, lanes, partitions, newest_wins (default: all that the records "
      "allow)\n"
      "  --threads=LIST       numbers and `unlimited` (default: 1,2,4,8,16,32,64,unlimited)\n"
      "  --replay_ns=N        cost of each change of a row, or of a command (default: 100)\n"
      "  --byte_ns=N          cost of each byte of a record, besides (default: 0.05)\n"
      "  --procedure_ns=ID:N,...   cost of a command by its procedure, instead of --replay_ns\n"
      "  --device_mb_per_s=N  each log, or stripe, is read at this speed (default: no limit)\n"
      "  --json=FILE          appends the figures as a record";
};

// False: the argument is another one's. Throws Error(kUsage) for a value that makes no sense.
bool ParseParallelismFlag(std::string_view argument, ParallelismOptions& options);

struct ParallelismReport {
  uint64_t run_id = 0;
  std::string scheme;   // its folder
  std::string payload;  // of the records
  size_t logs = 0;
  size_t records = 0;
  uint64_t dropped = 0;
  double work_ns = 0;
  ParallelismOptions options;

  struct Time {
    uint32_t threads = 0;
    double ns = 0;
  };
  struct Order {
    ModelledOrder order{};
    double critical_path_ns = 0;
    std::vector<Time> times;
  };
  std::vector<Order> orders;

  // Every row says that it is modelled.
  std::string Table() const;
  std::string JsonRecord() const;
};

class ParallelismMeter {
 public:
  explicit ParallelismMeter(const ParallelismOptions& options) : options_(options) {}

  // Throws Error(kUsage) for a log whose records are not replayed transaction by transaction.
  static void CheckModelled(const format::FileHeader& header);

  void Begin(const format::FileHeader& header, const LogSource& source);
  // `anchor` is the one in force, `batch` the number of the reader's batch in the log.
  void Take(const RecordType& type, const RecordView& record, const LsnPerLog& anchor, uint32_t batch);
  void End(Lsn end);
  // Are the records whole transactions with stamps, which count up to a frontier?
  bool needs_frontier() const { return has_stamps_ && !has_parts_; }

  // Above `last` no transaction counts. Throws Error: kUsage for an order that the records do not allow, kCorrupt where
  // they wait for each other.
  ParallelismReport Finish(std::optional<Stamp> last);

 private:
  double CostOf(const RecordType& type, const RecordView& record) const;
  std::vector<ModelledOrder> Orders() const;

  const ParallelismOptions options_;
  format::FileHeader header_{};  // of one of the logs
  std::vector<ReplayedLog> logs_;
  ReplayedLog* log_ = nullptr;  // begun
  uint32_t log_count_ = 0;
  bool has_lsn_vectors_ = false;
  bool has_images_ = false;  // the records are images of rows
  bool has_stamps_ = false;
  bool has_parts_ = false;  // of transactions, by partition
};

}  // namespace dbx
