// Differential logging (Lee, Kim, Cha: Differential Logging: A Commutative and Associative Logging Scheme for Highly
// Parallel Main Memory Database, ICDE 2001): a record holds the XOR of a slot's images before and after a change. It
// redoes as well as undoes, in any order, so that logs can be replayed in parallel and backward, in one pass, over a
// fuzzy backup: method DL1P. Its baseline DL2P has the same records, and compensations for whatever an abort undoes.
// The baseline PL2P does so too, and has the images before and after in its records; its COMMITs and ABORTs have
// stamps, which order them over all logs.
//
// A transaction appends a record of each change when it makes it, and a COMMIT when it commits; its locks go then
// (early lock release). Optimistic controls make their changes once they are validated, and take none back. All records
// of one attempt are in one log, that with the least to flush when a worker chose it. LSN vectors in the rows
// (lv_metadata.h) and in COMMIT order the transactions of all logs: one whose COMMIT is durable, and whose vector is
// covered by the logs' ends, is recovered.
//
//   change   Reserve -> latch of the page: its number, dirty bits, XOR into the row, presence bit -> unlatch -> number
//            and XOR into the place, seal, Submit
//   abort    DL1P, and no checkpoint runs: Reserve ABORT -> does one run now? then VOID it, else undo under latches,
//            seal ABORT
//            else: undo each change, newest first, as a change with a record (a compensation); then ABORT
//            nothing was changed: no record
//
// The place precedes the change, so that a change that a checkpoint copies has its place below the checkpoint's END;
// and the checkpoint waits until all places below its BEGIN are filled (backup/checkpointer.h). An ABORT without
// compensations lies below the BEGIN of every checkpoint that copied what it undid. Where the paper's algorithms
// differ, they lose changes or apply them twice: docs/errata.md.
//
// No worker waits under a latch, and with an unfilled place it waits for a latch at most.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/error.h"
#include "base/spin.h"
#include "base/xor_bytes.h"
#include "logging/backup/backup_options.h"
#include "logging/backup/checkpointer.h"
#include "logging/contract.h"
#include "logging/differential/active_transactions.h"
#include "logging/differential/slot_change.h"
#include "logging/log_set.h"
#include "logging/lv_metadata.h"
#include "logging/payload.h"
#include "storage/database.h"
#include "storage/touched_words.h"

namespace dbx {

template <class Payload>
class DifferentialLog : public FlushHooks, public LogDefaults, private CheckpointedLog {
 public:
  static constexpr LogTraits kTraits = {.name = "LOG_DIFFERENTIAL",
                                        .scheme = format::Scheme::kDifferential,
                                        .payload = Payload::kKind,
                                        .logs = true,
                                        .fixed_bytes = sizeof(format::RecordHeader) + kTxnIdBytes,
                                        .tracks_reads = false,
                                        .reserve_before_recheck = false,
                                        .single_stream = false,
                                        .appends_changes = true,
                                        .needs_pages = true,
                                        .replay_order = ReplayOrder::kAny};
  using CommitPoint = VectorPoint;

  struct TxnState {
    alignas(kCacheLineBytes) uint64_t lv[format::kMaxLogs] = {};
    uint64_t own_dependency = 0;  // lv[log] before the own place was merged
    uint32_t lv_mask = 0;         // elements that COMMIT stores
    uint64_t stamp = 0;           // of COMMIT or ABORT (PL2P)
    uint32_t log = 0;
    uint32_t worker = 0;
    uint32_t attempts_in_log = 0;  // since the log was chosen
    TxnId id;
    LogStream::Place place;       // of COMMIT or ABORT
    uint64_t own_bytes = 0;       // of the attempt's records
    uint32_t changes = 0;         // of the attempt
    std::vector<std::byte> undo;  // places and XORs of the attempt's changes, oldest first
    size_t undo_used = 0;
    std::vector<std::byte> runs;  // room for an image
  };

  DifferentialLog(LogSet& logs, const LogOptions& options)
      : logs_(logs),
        options_(options),
        n_(logs.count()),
        is_physical_(options.diff_method == DiffMethod::kPl2p),
        metadata_(logs, options.forget_delta_bytes),
        anchors_(logs, options.compress),
        active_(logs.workers()),
        checkpoints_(options.backup->database->checkpoints()),
        checkpointer_(*this, *options.backup) {
    for (uint32_t i = 0; i < n_; ++i) {
      logs.stream(i).SetSlots(logs.workers() + 1);
      CheckTables(*options.backup->database, options, logs.stream(i).max_record_bytes());
      if (ActiveTransactions::HasRoomFor(logs.stream(i).reserved_until())) continue;
      throw Error(ExitStatus::kMismatch, "the run begins at an LSN that is too large for this log scheme");
    }
  }

  static void CheckTables(const Database& database, const LogOptions& options, uint64_t max_record_bytes) {
    const auto check = [&](const std::string& what, size_t bytes) {
      if (bytes <= max_record_bytes) return;
      throw Error(ExitStatus::kUsage,
                  what + " needs records of " + std::to_string(bytes) +
                      " bytes, of which MAX_LOG_ENTRY_SIZE and a quarter of LOG_BUFFER_SIZE allow " +
                      std::to_string(max_record_bytes));
    };
    for (uint16_t i = 0; i < database.table_count(); ++i) {
      const Table& table = database.table(TableId(i));
      check("table " + table.schema().name, ChangeBytes(table.tuple_bytes(), /*presence=*/true, options.diff_method));
    }
    check("the end of a checkpoint",
          sizeof(format::RecordHeader) + sizeof(format::CheckpointEndBody) + database.workers() * sizeof(TxnId));
  }

  static constexpr size_t meta_bytes(uint32_t logs) { return LvMetadata::bytes(logs); }
  size_t meta_bytes() const { return meta_bytes(n_); }

  void InitWorker(TxnState& state, WorkerId worker) {
    state.worker = worker.value();
    state.log = worker.value() % n_;
    state.undo.resize(kUndoBytesInitial);
    state.runs.resize(RoundedUpToWords(LargestTuple(*options_.backup->database)) + 8);
  }
  // Once the writers run.
  void StartCheckpoints() { checkpointer_.Start(); }

  void Begin(TxnState& state) {
    std::memset(state.lv, 0, n_ * sizeof(uint64_t));
    state.changes = 0;
    state.own_bytes = state.undo_used = 0;
  }
  void OnRead(TxnState& state, const RowRef& row) { metadata_.Raise(state.lv, row.meta); }
  void OnWrite(TxnState& state, const RowRef& row) { metadata_.Raise(state.lv, row.meta); }
  void FreshMeta(Meta meta) const { metadata_.Fresh(meta); }
  void Absorb(Meta into, Meta from) const { metadata_.Absorb(into, from); }
  bool Forgettable(Meta meta) const { return metadata_.Forgettable(meta); }

  void StartChanges(TxnState& state, TxnId id) {
    state.id = id;
    active_.Begin(state.worker, id);
  }

  void Change(TxnState& state, const Table& table, Row* row, const std::byte* tuple, const TouchedWords* touched) {
    PageSpace& pages = *table.pages();
    const PageSpace::Place at = pages.PlaceOf(row);
    const bool was_present = pages.IsPresent(at), is_present = tuple != nullptr;
    ASSERT(was_present || is_present);
    const Undo undo{&pages, row, at, table.id(), was_present != is_present};
    std::byte* const delta = Remember(state, undo);
    ASSERT(touched == nullptr || !undo.flips_presence);
    Differ(was_present ? pages.TupleOf(row) : nullptr, tuple, pages.tuple_bytes(), delta, touched);
    if (state.changes++ == 0) Announce(state);
    Append(state, undo, delta, state.changes == 1 ? format::kChangeFirst : 0, touched);
  }

  void TakeBack(TxnState& state) {
    if (state.changes == 0) return;
    LogStream& stream = logs_.stream(state.log);
    LogStream::Place place;
    bool compensates = options_.diff_method != DiffMethod::kDl1p || checkpoints_.is_active();
    if (!compensates) {
      place = stream.Reserve(state.worker, kEndBytes);
      compensates = checkpoints_.is_active();
      // One place at a time.
      if (compensates) stream.Void(state.worker, place);
    }
    while (state.undo_used > 0) {
      const auto [undo, delta] = TakeLast(state);
      if (compensates) {
        Append(state, undo, delta, format::kChangeCompensation);
      } else {
        Apply(undo, delta);
      }
    }
    if (is_physical_) return AppendStampedAbort(state);
    if (compensates) place = stream.Reserve(state.worker, kEndBytes);
    std::memcpy(stream.at(place) + sizeof(format::RecordHeader), &state.id, sizeof state.id);
    SealRecord(stream.at(place), stream.HeaderFor(place, format::RecordKind::kAbort));
    stream.SubmitPart(state.worker, place);
    active_.Abort(state.worker);
    state.changes = 0;
  }

  // COMMIT.
  bool Reserve(TxnState& state, const LoggedTxn auto&) {
    // A COMMIT without changes would stand for those of an earlier attempt, as a retry has the same id.
    CHECK(state.changes > 0);
    ReserveEnd(state);
    state.lv[state.log] = state.place.end().value();
    state.own_bytes += state.place.bytes;
    return true;
  }
  void Submit(TxnState& state, const LoggedTxn auto&) {
    FillEnd(state, format::RecordKind::kCommit);
    logs_.stream(state.log).Submit(state.worker, state.place);
    active_.Commit(state.worker, state.id);
  }
  // Nothing is reserved that the transaction could give up.
  void Void(TxnState&) { CHECK(false); }

  void PublishWrite(TxnState& state, Meta meta) { metadata_.Publish(meta, state.lv); }

  void BeforeFlush(LogStream& stream) override { anchors_.Append(stream); }
  void BeforeStop() override {
    stopping_.store(true);
    checkpointer_.Stop();
  }

  size_t point_words() const { return n_; }
  void SetCommitPoint(const TxnState& state, CommitPoint point) const {
    for (uint32_t j = 0; j < n_; ++j) point.lsns()[j] = state.lv[j];
  }
  void SetReadOnlyPoint(const TxnState& state, CommitPoint point) const { SetCommitPoint(state, point); }
  void OwnEnds(const TxnState& state, LsnPerLog& ends) const { ends[state.log] = state.place.end(); }
  uint64_t OwnBytes(const TxnState& state) const { return state.own_bytes; }
  const DurableVector& durable() const { return logs_.durable(); }
  bool IsDurable(CommitPoint point) const { return lv::CoveredBy(point.lsns(), logs_.durable().lsn, n_); }
  void ThrowIfFailed() const {
    logs_.ThrowIfFailed();
    checkpointer_.ThrowIfFailed();
  }
  CheckpointMarks checkpoint_marks() const { return checkpointer_.marks(); }
  // After BeforeStop.
  std::optional<CheckpointCounters> checkpoint_counters() const { return checkpointer_.counters(); }

 private:
  // Of a COMMIT without vector, and of an ABORT.
  static constexpr uint32_t kEndBytes = sizeof(format::RecordHeader) + kTxnIdBytes;
  static constexpr size_t kUndoBytesInitial = 64 << 10;
  // Of a place in the log, prefetched while the change is made.
  static constexpr size_t kPrefetchedBytes = 1024;
  // Attempts of a worker in one log before it chooses again.
  static constexpr uint32_t kAttemptsPerLog = 32;
  // Unless that log has so much more to flush than the idlest.
  static constexpr uint64_t kBehindBytes = 512 << 10;
  static constexpr std::chrono::microseconds kWait{20};

  static size_t LargestTuple(const Database& database) {
    size_t bytes = 0;
    for (size_t i = 0; i < database.table_count(); ++i) {
      bytes = std::max<size_t>(bytes, database.table(Database::IdOf(i)).tuple_bytes());
    }
    return bytes;
  }

  // A change: of which slot, and whether its presence bit is flipped. In TxnState::undo the tuples' XOR precedes it.
  struct Undo {
    PageSpace* pages;
    Row* row;
    PageSpace::Place at;
    TableId table;
    bool flips_presence;
  };
  static_assert(sizeof(Undo) % 8 == 0);

  // Room for the XOR of the change.
  static std::byte* Remember(TxnState& state, const Undo& undo) {
    const size_t bytes = RoundedUpToWords(undo.pages->tuple_bytes());
    const size_t need = bytes + sizeof undo;
    if (state.undo_used + need > state.undo.size()) state.undo.resize(2 * (state.undo_used + need));
    std::byte* const delta = state.undo.data() + state.undo_used;
    std::memcpy(delta + bytes, &undo, sizeof undo);
    state.undo_used += need;
    return delta;
  }
  static std::pair<Undo, const std::byte*> TakeLast(TxnState& state) {
    Undo undo;
    state.undo_used -= sizeof undo;
    std::memcpy(&undo, state.undo.data() + state.undo_used, sizeof undo);
    state.undo_used -= RoundedUpToWords(undo.pages->tuple_bytes());
    return {undo, state.undo.data() + state.undo_used};
  }

  // Calls visit(offset, bytes) for the words touched, or for all of the tuple.
  static void ForEach(const TouchedWords* touched, size_t tuple_bytes, auto&& visit) {
    if (touched == nullptr) return visit(size_t{0}, tuple_bytes);
    touched->ForEach(visit);
  }

  // to = before XOR after, where null stands for zeros; filled up with zeros to whole words.
  static void Differ(const std::byte* before, const std::byte* after, size_t bytes, std::byte* to,
                     const TouchedWords* touched) {
    const size_t zeros_from = touched != nullptr ? 0 : RoundedUpToWords(bytes) - 8;
    std::memset(to + zeros_from, 0, RoundedUpToWords(bytes) - zeros_from);
    if (before == nullptr || after == nullptr) {
      std::memcpy(to, before != nullptr ? before : after, bytes);
    } else {
      ForEach(touched, bytes, [&](size_t at, size_t count) { XorInto(to + at, before + at, after + at, count); });
    }
  }

  // The first record of an attempt is about to be appended.
  void Announce(TxnState& state) {
    ChooseLog(state);
    active_.Announce(state.worker, state.id, state.log, logs_.stream(state.log).reserved_until());
  }

  // The paper's idlest log manager (section 4.1).
  void ChooseLog(TxnState& state) {
    if (n_ == 1) return;
    const auto waiting = [this](uint32_t log) {
      const LogStream& stream = logs_.stream(log);
      // In this order the difference is never negative.
      const Lsn persistent = stream.persistent_until();
      return std::max(stream.reserved_until(), persistent) - persistent;
    };
    const uint64_t own = waiting(state.log);
    if (++state.attempts_in_log < kAttemptsPerLog && own < kBehindBytes) return;
    uint32_t idlest = state.log;
    uint64_t least = own;
    for (uint32_t i = 1; i < n_; ++i) {
      const uint32_t log = (state.log + i) % n_;
      const uint64_t bytes = waiting(log);
      if (bytes < least) idlest = log, least = bytes;
    }
    if (state.attempts_in_log < kAttemptsPerLog && own - least < kBehindBytes) return;
    state.log = idlest;
    state.attempts_in_log = 0;
  }

  // Under the page's latch alone: what the row's lock protects changes. Returns the number for a record.
  static uint32_t Apply(const Undo& undo, const std::byte* delta, const TouchedWords* touched = nullptr) {
    PageSpace::Latched page(*undo.pages, undo.at.page);
    const uint32_t number = page.number();
    page.SetDirty();
    std::byte* const tuple = undo.pages->TupleOf(undo.row);
    ForEach(touched, undo.pages->tuple_bytes(),
            [&](size_t at, size_t bytes) { XorBytes(tuple + at, delta + at, bytes); });
    if (undo.flips_presence) page.SetPresent(undo.at.slot, !undo.pages->IsPresent(undo.at));
    return number;
  }

  // A place for a COMMIT, or for an ABORT with a vector. The transaction's locks are held: the stamps of those that
  // conflict ascend in the order in which they had the locks.
  void ReserveEnd(TxnState& state) {
    if (is_physical_) state.stamp = 1 + last_stamp_.value.fetch_add(1, std::memory_order_relaxed);
    state.lv_mask = anchors_.StoredMask(state.lv, state.log);
    const size_t bytes = kEndBytes + std::popcount(state.lv_mask) * sizeof(uint64_t) + StampBytes();
    state.place = logs_.stream(state.log).Reserve(state.worker, AlignRecord(bytes));
    state.own_dependency = state.lv[state.log];
  }
  void FillEnd(const TxnState& state, format::RecordKind kind) {
    LogStream& stream = logs_.stream(state.log);
    std::byte* const at = stream.at(state.place);
    std::memcpy(at + sizeof(format::RecordHeader), &state.id, sizeof state.id);
    std::byte* const behind =
        LvAnchors::Encode(state.lv, state.lv_mask, state.log, state.own_dependency, at + kEndBytes);
    std::memcpy(behind, &state.stamp, StampBytes());
    format::RecordHeader header = stream.HeaderFor(state.place, kind);
    header.lv_mask = static_cast<uint16_t>(state.lv_mask);
    header.flags = is_physical_ ? format::kEndStamped : 0;
    SealRecord(at, header);
  }
  size_t StampBytes() const { return is_physical_ ? sizeof(uint64_t) : 0; }

  // All is taken back. The ABORT depends on what was changed, as its compensations hold the images that were there.
  void AppendStampedAbort(TxnState& state) {
    ReserveEnd(state);
    FillEnd(state, format::RecordKind::kAbort);
    logs_.stream(state.log).SubmitPart(state.worker, state.place);
    active_.Abort(state.worker);
    state.changes = 0;
  }

  // The tuples before and after a change that has been made; an absent one is zeros.
  static void WriteImages(const Undo& undo, const std::byte* delta, std::byte* to) {
    const size_t bytes = undo.pages->tuple_bytes(), whole = RoundedUpToWords(bytes);
    const std::byte* const after = undo.pages->TupleOf(undo.row);
    std::memset(to, 0, 2 * whole);
    XorInto(to, after, delta, bytes);
    std::memcpy(to + whole, after, bytes);
  }

  // Makes a change and appends its record. The change comes first: the latch's atomic operation drains the store
  // buffer, and stores into the place, whose lines are cold, would keep it waiting.
  void Append(TxnState& state, const Undo& undo, const std::byte* delta, uint16_t flags,
              const TouchedWords* touched = nullptr) {
    LogStream& stream = logs_.stream(state.log);
    const uint32_t tuple_bytes = undo.pages->tuple_bytes();
    size_t image_bytes = RoundedUpToWords(tuple_bytes);
    const std::byte* image = delta;
    if (options_.change_image == ChangeImage::kRuns && !is_physical_) {
      if (const auto bytes = EncodeRuns({delta, tuple_bytes}, state.runs.data())) {
        std::memset(state.runs.data() + *bytes, 0, 8);
        image_bytes = RoundedUpToWords(*bytes);
        image = state.runs.data();
        flags |= format::kChangeRuns;
      }
    }
    if (undo.flips_presence) flags |= format::kChangePresence;
    if (is_physical_) {
      image_bytes *= 2;
      flags |= format::kChangeImages;
      if (undo.flips_presence && undo.pages->IsPresent(undo.at)) flags |= format::kChangeErases;
    }
    const size_t key_bytes = undo.flips_presence ? sizeof(Key) : 0;
    const size_t bytes = sizeof(format::RecordHeader) + sizeof(format::ChangeBody) + key_bytes + image_bytes;
    const LogStream::Place place = stream.Reserve(state.worker, static_cast<uint32_t>(bytes));
    std::byte* const body = stream.at(place) + sizeof(format::RecordHeader);
    PrefetchBytesToWrite(stream.at(place), std::min(bytes, kPrefetchedBytes));
    const format::ChangeBody change{state.id.value, undo.at.page, Apply(undo, delta, touched)};
    std::memcpy(body, &change, sizeof change);
    std::memcpy(body + sizeof(format::ChangeBody), &undo.row->key, key_bytes);
    std::byte* const image_at = body + sizeof(format::ChangeBody) + key_bytes;
    if (is_physical_) {
      WriteImages(undo, delta, image_at);
    } else {
      std::memcpy(image_at, image, image_bytes);
    }
    format::RecordHeader header = stream.HeaderFor(place, format::RecordKind::kChange);
    header.lv_mask = undo.table.value();
    header.procedure = static_cast<uint16_t>(undo.at.slot);
    header.flags = flags;
    SealRecord(stream.at(place), header);
    stream.SubmitPart(state.worker, place);
    state.own_bytes += bytes;
  }

  // --- called by the checkpointer's thread (backup/checkpointer.h), whose slot is behind the workers' ---

  uint32_t checkpoint_slot() const { return logs_.workers(); }

  std::vector<Lsn> NeededFrom() override {
    std::vector<Lsn> needed;
    for (uint32_t log = 0; log < n_; ++log) needed.push_back(logs_.stream(log).reserved_until());
    active_.ForEach([&](TxnId, uint32_t log, Lsn first) { needed[log] = std::min(needed[log], first); });
    return needed;
  }
  std::vector<uint64_t> EndedBelow() override { return active_.EndedBelow(); }

  std::vector<Lsn> AppendBegin(uint32_t number) override {
    std::vector<Lsn> positions;
    const format::CheckpointBeginBody body{number, 0};
    for (uint32_t log = 0; log < n_; ++log) {
      positions.push_back(AppendOwn(log, format::RecordKind::kCheckpointBegin, std::as_bytes(std::span(&body, 1))));
    }
    return positions;
  }
  std::vector<Lsn> AppendEnd(uint32_t number) override {
    // The lists precede every place of an END.
    std::vector<std::vector<uint64_t>> words(n_, std::vector<uint64_t>(1));
    active_.ForEach([&](TxnId id, uint32_t log, Lsn) { words[log].push_back(id.value); });
    std::vector<Lsn> positions;
    for (uint32_t log = 0; log < n_; ++log) {
      const format::CheckpointEndBody body{number, static_cast<uint32_t>(words[log].size() - 1)};
      std::memcpy(words[log].data(), &body, sizeof body);
      positions.push_back(AppendOwn(log, format::RecordKind::kCheckpointEnd, std::as_bytes(std::span(words[log]))));
    }
    return positions;
  }
  Lsn AppendOwn(uint32_t log, format::RecordKind kind, std::span<const std::byte> body) {
    LogStream& stream = logs_.stream(log);
    const auto bytes = static_cast<uint32_t>(sizeof(format::RecordHeader) + body.size());
    const LogStream::Place place = stream.Reserve(checkpoint_slot(), bytes);
    std::memcpy(stream.at(place) + sizeof(format::RecordHeader), body.data(), body.size());
    SealRecord(stream.at(place), stream.HeaderFor(place, kind));
    stream.SubmitPart(checkpoint_slot(), place);
    return place.lsn;
  }

  void AwaitFilled(const std::vector<Lsn>& positions) override {
    Await([&](uint32_t log) { return logs_.stream(log).ReadyUntil() >= positions[log]; });
  }
  void AwaitDurable(const std::vector<Lsn>& positions) override {
    Await([&](uint32_t log) { return logs_.stream(log).persistent_until() > positions[log]; });
  }
  void Await(auto&& is_done) const {
    for (uint32_t log = 0; log < n_; ++log) {
      while (!is_done(log)) {
        if (stopping_.load()) throw Error(ExitStatus::kInternal, "the run ends during a checkpoint");
        logs_.ThrowIfFailed();
        host::SleepFor(kWait);
      }
    }
  }
  uint64_t ReservedBytes() const override { return logs_.reserved_bytes(); }
  void CountDiscarded(uint64_t bytes) override { logs_.CountDiscarded(bytes); }

  LogSet& logs_;
  const LogOptions options_;
  const uint32_t n_;
  const bool is_physical_;  // PL2P
  CachePadded<Atomic<uint64_t>> last_stamp_;
  LvMetadata metadata_;
  LvAnchors anchors_;
  ActiveTransactions active_;
  const CheckpointClock& checkpoints_;
  Atomic<bool> stopping_{false};
  Checkpointer checkpointer_;  // last: its thread uses the others
};

}  // namespace dbx
