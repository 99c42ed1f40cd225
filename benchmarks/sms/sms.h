// SMS: the message table of the differential logging paper (Lee, Kim, Cha, ICDE 2001, section 5), as one queue for each
// worker.
//
// A message is a row of slot_bytes: its id (4 bytes), a destination address (12 bytes) and a text. The key is the queue
// and the id; address and text are hashes of both. Each of the 64 queues is loaded with the ids below B. Of the
// transactions of worker w, an even sequence number s inserts the messages B + s and B + s + 1 into queue w, an odd one
// deletes the messages s - 1 and s, so that a queue keeps its length. A transaction passes over a message that it
// should insert and that exists, or that it should delete and that is missing. abort_perc percent of the transactions,
// chosen by a hash of their ids, roll back after both changes: the messages that one of them would have deleted stay.
//
// All of this follows from the transaction id, which is the only argument of the only procedure. So it does not matter
// where a run begins: after a warm-up, or, if it continues another run, above the highest sequence number of all
// workers; messages of skipped numbers are never inserted, or never deleted.
//
// Bound: ids wrap around after 2^32 transactions of a worker. A queue then still holds messages of its first turn whose
// deletion rolled back or was skipped, and an insert passes over those.
// Threads: Generate, Run, ValidArgs and the prefetches may run in any number of threads after Load.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "benchmarks/workload.h"

namespace dbx {

struct SmsConfig {
  uint64_t rows = 1'000'000;  // rounded down to a multiple of the queues
  uint32_t slot_bytes = 256;
  uint32_t abort_perc = 2;  // percent
  uint32_t workers = 1;     // that run transactions
};

class Sms {
 public:
  static constexpr uint32_t kQueues = 64;
  static constexpr uint64_t kRowsMax = uint64_t{1} << 30;
  static constexpr uint32_t kSlotBytesMin = 64;
  static constexpr uint32_t kSlotBytesMax = 2048;
  static constexpr ProcedureId kExchange{0};
  static constexpr std::array kProcedureNames = {"exchange"};
  static constexpr bool kKeysFollowFromId = true;

  static constexpr Key KeyOf(uint64_t queue, uint32_t id) { return queue << kIdBits | id; }
  static constexpr uint64_t QueueOf(Key key) { return key >> kIdBits; }
  static constexpr uint32_t IdOf(Key key) { return static_cast<uint32_t>(key); }

  // The messages of a transaction, in the order of its changes.
  struct Exchange {
    bool inserts;  // otherwise it deletes
    std::array<Key, 2> keys;
  };

  // Throws Error(kUsage) where a value is out of range, or where there are more workers than queues.
  explicit Sms(const SmsConfig& config);

  void CreateTables(Database& db);
  // The messages do not depend on the seed.
  void Load(Database& db, uint64_t seed, uint32_t threads);
  void Adopt(Database&, uint64_t) {}
  CallList Generate(WorkerId worker, uint64_t count, uint64_t seed) const;

  void Prefault(WorkerId worker, uint64_t transactions);

  template <TxnContext Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args);

  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const;
  void PrefetchBuckets(const Call& call) const;
  void PrefetchRows(const Call& call, WrittenRows written) const;

  // Every message is in one of the queues, and all its bytes are those of its key.
  std::optional<std::string> Inconsistency(const Database& db) const;

  Exchange ExchangeOf(TxnId id) const;
  bool RollsBack(TxnId id) const { return HashPair(id.value, kRollbackSalt) % 100 < config_.abort_perc; }

 private:
  static constexpr int kIdBits = 32;
  static constexpr uint64_t kRollbackSalt = 0x534d53;

  // A whole row.
  static void FillMessage(Key key, std::span<std::byte> message);
  template <TxnContext Ctx>
  Outcome Insert(Ctx& ctx, Key key);

  SmsConfig config_;
  uint64_t messages_per_queue_;  // that are loaded
  Table* table_ = nullptr;
};

inline Sms::Exchange Sms::ExchangeOf(TxnId id) const {
  const uint64_t sequence = id.sequence();
  const bool inserts = sequence % 2 == 0;
  const uint64_t first = inserts ? messages_per_queue_ + sequence : sequence - 1;
  const uint64_t queue = id.worker().value();
  return {inserts, {KeyOf(queue, static_cast<uint32_t>(first)), KeyOf(queue, static_cast<uint32_t>(first + 1))}};
}

template <TxnContext Ctx>
Outcome Sms::Insert(Ctx& ctx, Key key) {
  std::array<std::byte, kSlotBytesMax> buffer;
  const std::span<std::byte> message(buffer.data(), config_.slot_bytes);
  FillMessage(key, message);
  return ctx.Insert(*table_, key, message);
}

template <TxnContext Ctx>
Outcome Sms::Run(Ctx& ctx, ProcedureId, std::span<const std::byte> args) {
  TxnId id;
  std::memcpy(&id, args.data(), sizeof id);
  const Exchange exchange = ExchangeOf(id);
  for (const Key key : exchange.keys) {
    const Outcome outcome = exchange.inserts ? Insert(ctx, key) : ctx.Delete(*table_, key);
    if (outcome == Outcome::kConflict) return outcome;
  }
  // After both changes, so that there is something to undo.
  return RollsBack(id) ? Outcome::kRollback : Outcome::kOk;
}

static_assert(Workload<Sms>);

}  // namespace dbx
