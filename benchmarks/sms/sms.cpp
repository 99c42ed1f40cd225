#include "benchmarks/sms/sms.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "benchmarks/parallel_load.h"

namespace dbx {
namespace {

constexpr uint64_t kRowsPerLoadTask = 4096;

// The memory of deleted messages is reused, once no thread can still hold a pointer to them: a worker needs new memory
// only for about as many messages as it inserts in the meantime.
constexpr uint64_t kPrefaultRowsMax = 1 << 16;

constexpr uint32_t kIdBytes = 4;
constexpr uint32_t kAddressBytes = 12;

SmsConfig Checked(const SmsConfig& config) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw Error(ExitStatus::kUsage, what);
  };
  require(config.rows >= Sms::kQueues && config.rows <= Sms::kRowsMax,
          "SMS_ROWS must be 64 to 1G: at least one message in each queue");
  require(config.slot_bytes >= Sms::kSlotBytesMin && config.slot_bytes <= Sms::kSlotBytesMax,
          "SMS_SLOT_BYTES must be 64 to 2048");
  require(config.slot_bytes % sizeof(uint64_t) == 0,
          "SMS_SLOT_BYTES " + std::to_string(config.slot_bytes) + " is not a multiple of 8");
  require(config.abort_perc <= 100, "SMS_ABORT_PERC must be 0 to 100");
  require(config.workers <= Sms::kQueues, "SMS has 64 queues, one for each worker: set THREAD_CNT to 64 at most, not " +
                                              std::to_string(config.workers));
  return config;
}

}  // namespace

Sms::Sms(const SmsConfig& config) : config_(Checked(config)), messages_per_queue_(config.rows / kQueues) {}

void Sms::CreateTables(Database& db) {
  Schema schema;
  schema.name = "MESSAGES";
  const uint32_t text = kIdBytes + kAddressBytes;
  schema.columns = {
      {"ID", 0, kIdBytes}, {"ADDRESS", kIdBytes, kAddressBytes}, {"TEXT", text, config_.slot_bytes - text}};
  schema.tuple_bytes = config_.slot_bytes;
  schema.row_alignment_bytes = 16;
  schema.expected_rows = kQueues * messages_per_queue_;
  schema.partition_key_bits = kIdBits;
  table_ = &db.CreateTable(std::move(schema));
}

void Sms::FillMessage(Key key, std::span<std::byte> message) {
  const uint64_t hash = HashPair(QueueOf(key), IdOf(key));
  for (size_t at = 0; at < message.size(); at += sizeof(uint64_t)) {
    const uint64_t word = Mix64(hash + at);
    std::memcpy(message.data() + at, &word, sizeof word);
  }
  const uint32_t id = IdOf(key);
  static_assert(sizeof id == kIdBytes);
  std::memcpy(message.data(), &id, sizeof id);
}

void Sms::Load(Database& db, uint64_t, uint32_t threads) {
  const uint64_t rows = kQueues * messages_per_queue_;
  const uint64_t tasks = (rows + kRowsPerLoadTask - 1) / kRowsPerLoadTask;
  RunLoadTasks(std::min(threads, db.workers()), tasks, [&](WorkerId worker, uint64_t task) {
    std::vector<std::byte> message(config_.slot_bytes);
    const uint64_t end = std::min(rows, (task + 1) * kRowsPerLoadTask);
    for (uint64_t row = task * kRowsPerLoadTask; row < end; ++row) {
      const Key key = KeyOf(row / messages_per_queue_, static_cast<uint32_t>(row % messages_per_queue_));
      FillMessage(key, message);
      table_->LoadRow(worker, key, message);
    }
  });
}

// The first run of a list has these ids, unless it continues another run.
CallList Sms::Generate(WorkerId worker, uint64_t count, uint64_t) const {
  CallList list;
  list.storage.resize(count);
  list.calls.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    list.calls.push_back({kExchange, std::as_writable_bytes(std::span(&list.storage[i], 1))});
    list.calls.back().set_txn_id(TxnId::Make(worker, i));
  }
  return list;
}

void Sms::Prefault(WorkerId worker, uint64_t transactions) {
  table_->PrefaultRows(worker, std::min(transactions, kPrefaultRowsMax));
}

bool Sms::ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
  if (procedure != kExchange || args.size() != sizeof(TxnId)) return false;
  TxnId id;
  std::memcpy(&id, args.data(), sizeof id);
  return id.worker().value() < kQueues;
}

void Sms::PrefetchBuckets(const Call& call) const {
  for (const Key key : ExchangeOf(call.txn_id()).keys) table_->PrefetchBucket(key);
}

void Sms::PrefetchRows(const Call& call, WrittenRows written) const {
  const Exchange exchange = ExchangeOf(call.txn_id());
  if (exchange.inserts) return;
  const size_t bytes = written == WrittenRows::kWhole ? config_.slot_bytes : written == WrittenRows::kTouched ? 1 : 0;
  for (const Key key : exchange.keys) table_->PrefetchRow(key, bytes);
}

std::optional<std::string> Sms::Inconsistency(const Database& db) const {
  const Table& table = db.table(table_->id());
  std::vector<std::byte> expected(config_.slot_bytes);
  std::optional<std::string> failure;
  table.ForEachRow([&](const Row& row) {
    if (failure || (row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
    if (QueueOf(row.key) >= kQueues) {
      failure = "MESSAGES holds key " + std::to_string(row.key) + ", of no queue";
      return;
    }
    FillMessage(row.key, expected);
    if (std::memcmp(table.tuple(&row), expected.data(), expected.size()) == 0) return;
    failure = "MESSAGES queue " + std::to_string(QueueOf(row.key)) + ", id " + std::to_string(IdOf(row.key)) +
              ": bytes that no transaction writes";
  });
  return failure;
}

}  // namespace dbx
