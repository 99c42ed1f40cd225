#include "benchmarks/ycsb/ycsb.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/error.h"
#include "benchmarks/parallel_load.h"

namespace dbx {
namespace {

// Prefetching more of the tuples than this for one call would evict the lines fetched first.
constexpr size_t kPrefetchBytesMax = 256 * kCacheLineBytes;

// Ranks are scattered over the keys in the same way in every process.
constexpr uint64_t kPermutationSalt = 0x59435342;

constexpr uint64_t kRowsPerLoadTask = 4096;
constexpr uint64_t kRowsCheckedMax = uint64_t{1} << 20;

constexpr size_t kHeadBytes = sizeof(uint64_t);

uint64_t RowsWritten(const YcsbConfig& config) {
  return std::max<uint64_t>(1,
                            static_cast<uint64_t>(std::llround(config.write_keys * static_cast<double>(config.rows))));
}

YcsbConfig Checked(const YcsbConfig& config) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ExitStatus::kUsage, what);
  };
  require(config.rows > 0 && config.rows < Ycsb::kScanFlag, "SYNTH_TABLE_SIZE must be at least 1 row");
  require(config.req_per_query > 0 && config.req_per_query <= Ycsb::kRequestsMax, "REQ_PER_QUERY must be 1 to 4096");
  require(config.req_per_query <= config.rows,
          "REQ_PER_QUERY exceeds SYNTH_TABLE_SIZE: the keys of a transaction are distinct, so enlarge the table");
  require(config.field_per_tuple > 0 && config.field_per_tuple <= Ycsb::kFieldsMax,
          "FIELD_PER_TUPLE must be 1 to 1024");
  require(config.theta >= 0 && config.theta <= 10, "ZIPF_THETA must be 0 to 10");
  require(config.read_perc >= 0 && config.read_perc <= 1, "READ_PERC must be 0 to 1");
  require(config.scan_perc >= 0 && config.read_perc + config.scan_perc < 1 + 1e-6,
          "SCAN_PERC must be 0 to 1, and no more than READ_PERC leaves");
  require(config.write_keys >= 0 && config.write_keys <= 1, "WRITE_KEYS must be 0 to 1");
  require(config.write_keys == 1 || config.req_per_query <= RowsWritten(config),
          "REQ_PER_QUERY exceeds the rows that WRITE_KEYS leaves: the keys of a transaction are distinct");
  require(config.scan_len > 0 && config.scan_len <= Ycsb::kScanLenMax, "SCAN_LEN must be 1 to 65536");
  return config;
}

// Of a tuple, up to the head of its last field.
size_t BytesToLastHead(uint32_t fields) { return (fields - 1) * Ycsb::kFieldBytes + kHeadBytes; }

}  // namespace

Ycsb::Ycsb(const YcsbConfig& config)
    : config_(Checked(config)),
      zipf_(config.rows, config.theta),
      key_of_rank_(config.rows, kPermutationSalt),
      written_rows_(RowsWritten(config)) {
  const size_t affordable = std::max<size_t>(kCacheLineBytes, kPrefetchBytesMax / config_.req_per_query);
  prefetch_bytes_ = std::min(BytesToLastHead(config_.field_per_tuple), affordable);
  whole_prefetch_bytes_ = std::min<size_t>(config_.field_per_tuple * kFieldBytes, affordable);
}

void Ycsb::CreateTables(Database& db) {
  Schema schema;
  schema.name = "MAIN_TABLE";
  for (uint32_t field = 0; field < config_.field_per_tuple; ++field) {
    schema.columns.push_back({"F" + std::to_string(field), field * kFieldBytes, kFieldBytes});
  }
  schema.tuple_bytes = config_.field_per_tuple * kFieldBytes;
  schema.row_alignment_bytes = 16;
  schema.expected_rows = config_.rows;
  if (config_.scan_perc > 0) schema.heap_range_bits = 9;
  table_ = &db.CreateTable(std::move(schema));
}

void Ycsb::Load(Database& db, uint64_t seed, uint32_t threads) {
  load_seed_ = seed;
  const uint64_t tasks = (config_.rows + kRowsPerLoadTask - 1) / kRowsPerLoadTask;
  RunLoadTasks(std::min(threads, db.workers()), tasks, [&](WorkerId worker, uint64_t task) {
    std::vector<std::byte> tuple(table_->tuple_bytes());
    const Key end = std::min(config_.rows, (task + 1) * kRowsPerLoadTask);
    for (Key key = task * kRowsPerLoadTask; key < end; ++key) {
      FillInitialTuple(key, tuple);
      table_->LoadRow(worker, key, tuple);
    }
  });
}

void Ycsb::FillInitialTuple(Key key, std::span<std::byte> tuple) const {
  uint64_t state = HashPair(load_seed_, key);
  for (size_t at = 0; at < tuple.size(); at += sizeof state) {
    state = Mix64(state);
    std::memcpy(tuple.data() + at, &state, std::min(sizeof state, tuple.size() - at));
  }
}

CallList Ycsb::Generate(WorkerId worker, uint64_t count, uint64_t seed) const {
  const size_t words = 1 + config_.req_per_query;
  CallList list;
  list.storage.assign(count * words, 0);
  list.calls.reserve(count);
  Random random(seed, worker.value());
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < count; ++i) {
    const std::span<uint64_t> args(list.storage.data() + i * words, words);
    keys.clear();
    for (uint64_t& access : args.subspan(1)) {
      Key key = key_of_rank_(ChooseRank(random, keys));
      const double kind = random.Unit();
      const bool reads = kind < config_.read_perc, writes = !reads && kind < 1 - config_.scan_perc;
      if (writes && written_rows_ < config_.rows) key = WrittenKey(key, keys);
      keys.push_back(key);
      access = key | (reads ? 0 : writes ? kWriteFlag : kScanFlag);
    }
    list.calls.push_back({kAccess, std::as_writable_bytes(args)});
  }
  return list;
}

uint64_t Ycsb::ChooseRank(Random& random, std::span<const uint64_t> chosen_keys) const {
  const auto taken = [&](uint64_t rank) {
    return std::find(chosen_keys.begin(), chosen_keys.end(), key_of_rank_(rank)) != chosen_keys.end();
  };
  uint64_t rank = zipf_.Sample(random);
  for (int attempt = 0; attempt < 100 && taken(rank); ++attempt) rank = zipf_.Sample(random);
  // With a large theta and few rows the rest of the ranks are hardly ever drawn; take the next free one.
  while (taken(rank)) rank = (rank + 1) % config_.rows;
  return rank;
}

Key Ycsb::WrittenKey(Key drawn, std::span<const uint64_t> chosen_keys) const {
  Key key = drawn % written_rows_;
  while (std::find(chosen_keys.begin(), chosen_keys.end(), key) != chosen_keys.end()) key = (key + 1) % written_rows_;
  return key;
}

bool Ycsb::ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
  if (procedure != kAccess || args.size() != (1 + config_.req_per_query) * sizeof(uint64_t)) return false;
  for (size_t at = sizeof(TxnId); at < args.size(); at += sizeof(uint64_t)) {
    uint64_t access;
    std::memcpy(&access, args.data() + at, sizeof access);
    if ((access & ~kFlags) >= config_.rows || (access & kFlags) == kFlags) return false;
    const bool can_scan = table_ != nullptr && table_->ordered();
    if ((access & kScanFlag) != 0 && !can_scan) return false;
  }
  return true;
}

void Ycsb::PrefetchBuckets(const Call& call) const {
  for (size_t at = sizeof(TxnId); at < call.args.size(); at += sizeof(uint64_t)) {
    uint64_t access;
    std::memcpy(&access, call.args.data() + at, sizeof access);
    table_->PrefetchBucket(access & ~kFlags);
  }
}

void Ycsb::PrefetchRows(const Call& call, WrittenRows written) const {
  const size_t read_bytes = written == WrittenRows::kNoTuple ? 0 : prefetch_bytes_;
  const size_t written_bytes = written == WrittenRows::kWhole ? whole_prefetch_bytes_ : read_bytes;
  size_t bytes_left = kPrefetchBytesMax;
  for (size_t at = sizeof(TxnId); at < call.args.size() && bytes_left >= prefetch_bytes_; at += sizeof(uint64_t)) {
    uint64_t access;
    std::memcpy(&access, call.args.data() + at, sizeof access);
    const size_t bytes = (access & kWriteFlag) != 0 ? written_bytes : read_bytes;
    table_->PrefetchRow(access & ~kFlags, bytes);
    bytes_left -= std::min(bytes_left, bytes);
  }
}

bool Ycsb::UntouchedBytesEqual(const std::byte* tuple, std::span<const std::byte> initial) const {
  for (size_t at = 0; at < initial.size(); at += kFieldBytes) {
    const size_t untouched = at + kHeadBytes;
    if (std::memcmp(tuple + untouched, initial.data() + untouched, kFieldBytes - kHeadBytes) != 0) return false;
  }
  return true;
}

std::optional<std::string> Ycsb::Inconsistency(const Database& db) const {
  const Table& table = db.table(table_->id());
  const uint64_t check_every = (config_.rows + kRowsCheckedMax - 1) / kRowsCheckedMax;
  std::vector<std::byte> initial(table.tuple_bytes());
  std::optional<std::string> failure;
  uint64_t rows = 0;
  table.ForEachRow([&](const Row& row) {
    if (row.control.load(std::memory_order_relaxed) & Row::kAbsent) return;
    ++rows;
    if (row.key >= config_.rows) failure = "MAIN_TABLE holds key " + std::to_string(row.key) + ", beyond its range";
    if (failure || row.key % check_every != 0) return;
    FillInitialTuple(row.key, initial);
    if (!UntouchedBytesEqual(table.tuple(&row), initial)) {
      failure = "MAIN_TABLE key " + std::to_string(row.key) + ": bytes changed that no transaction writes";
    }
  });
  if (!failure && rows != config_.rows) {
    failure = "MAIN_TABLE has " + std::to_string(rows) + " rows instead of " + std::to_string(config_.rows);
  }
  return failure;
}

}  // namespace dbx
