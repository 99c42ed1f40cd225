// The procedures of the TEST workload. Include test.h.
//
// A concurrency control that validates at the end may show a transaction that it is going to abort two versions of one
// row. The procedures still record what they saw: if such a transaction commits, the history shows it.
#pragma once

#include <cstring>

#include "benchmarks/test/test_workload.h"

namespace dbx {

template <TxnContext Ctx>
Outcome TestWorkload::Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args) {
  if (procedure == test::kProgram) return Program(ctx, args);
  if (procedure == test::kTransfer) {
    test::TransferArgs transfer;
    std::memcpy(&transfer, args.data(), sizeof transfer);
    return Transfer(ctx, transfer);
  }
  test::AuditArgs audit;
  std::memcpy(&audit, args.data(), sizeof audit);
  return Audit(ctx, audit);
}

inline void TestWorkload::Note(Progress& progress, AccessKind kind, uint64_t object, TxnId version, uint64_t chain) {
  progress.seen = HashPair(progress.seen, HashPair(object, HashPair(version.value, chain)));
  progress.row.Add(kind, object, version);
}

template <TxnContext Ctx>
Outcome TestWorkload::Look(Ctx& ctx, uint64_t object, test::TestRow& row) {
  return ctx.Read(table(test::PlaceOf(object)), test::KeyOf(object),
                  [&](const auto& tuple) { row = tuple.template GetAt<test::TestRow>(0); });
}

template <TxnContext Ctx>
Outcome TestWorkload::LookForUpdate(Ctx& ctx, uint64_t object, test::TestRow& row) {
  return ReadForUpdate(ctx, table(test::PlaceOf(object)), test::KeyOf(object),
                       [&](const auto& tuple) { row = tuple.template GetAt<test::TestRow>(0); });
}

// `before` is the row that was rewritten.
template <TxnContext Ctx>
Outcome TestWorkload::Rewrite(Ctx& ctx, uint64_t object, int64_t value_change, Progress& progress,
                              test::TestRow& before) {
  return ctx.Update(table(test::PlaceOf(object)), test::KeyOf(object), [&](auto& tuple) {
    before = tuple.template GetAt<test::TestRow>(0);
    // Column by column, so that undo and logs see several changes of one row.
    tuple.Set(&test::TestRow::writer, progress.id);
    tuple.Set(&test::TestRow::predecessor, before.writer);
    tuple.Set(&test::TestRow::chain, HashPair(HashPair(before.chain, progress.id.value), progress.seen));
    tuple.Set(&test::TestRow::value, before.value + value_change);
  });
}

template <TxnContext Ctx>
Outcome TestWorkload::Finish(Ctx& ctx, Progress& progress) {
  return ctx.Insert(*history_, progress.id.value, std::as_bytes(std::span(&progress.row, 1)));
}

// The commit may still fail; the next attempt's note then takes the place of this one, the last place of all included.
inline Outcome TestWorkload::FinishQuietly(const Progress& progress) {
  Notes& notes = notes_[progress.id.worker().value() % notes_.size()];
  if (notes.last == nullptr || notes.last_id != progress.id) {
    if (notes.left.size() < kNoteBytes) return Outcome::kOk;
    notes.last_id = progress.id;
    notes.last = notes.left.data();
    notes.left = notes.left.subspan(kNoteBytes);
  }
  const test::QuietReader reader{progress.id, progress.row};
  std::memcpy(notes.last, &reader, sizeof reader);
  return Outcome::kOk;
}

template <TxnContext Ctx>
Outcome TestWorkload::Transfer(Ctx& ctx, const test::TransferArgs& args) {
  Progress progress{args.id, args.id.value};
  progress.row.procedure = test::kTransfer.value();
  const Key first = Key{args.group} * test::kAccountsPerGroup;
  const uint64_t from = test::MakeObject(test::Place::kAccount, first + args.from);
  const uint64_t to = test::MakeObject(test::Place::kAccount, first + args.to);
  test::TestRow before;
  Outcome outcome = Rewrite(ctx, from, -int64_t{args.amount}, progress, before);
  if (outcome != Outcome::kOk) return outcome;
  // Too late on purpose: there is something to undo.
  if (before.value < args.amount) return Outcome::kRollback;
  Note(progress, AccessKind::kWrite, from, before.writer, before.chain);
  outcome = Rewrite(ctx, to, args.amount, progress, before);
  if (outcome != Outcome::kOk) return outcome;
  Note(progress, AccessKind::kWrite, to, before.writer, before.chain);
  return Finish(ctx, progress);
}

template <TxnContext Ctx>
Outcome TestWorkload::Audit(Ctx& ctx, const test::AuditArgs& args) {
  Progress progress{args.id, args.id.value};
  progress.row.procedure = test::kAudit.value();
  for (uint32_t i = 0; i < test::kAccountsPerGroup; ++i) {
    const uint64_t account = test::MakeObject(test::Place::kAccount, Key{args.group} * test::kAccountsPerGroup + i);
    test::TestRow row;
    const Outcome outcome = Look(ctx, account, row);
    if (outcome != Outcome::kOk) return outcome;
    Note(progress, AccessKind::kRead, account, row.writer, row.chain);
    progress.row.result += row.value;
  }
  const bool right = progress.row.result == test::kAccountsPerGroup * test::kInitialBalance;
  return args.quiet != 0 && right ? FinishQuietly(progress) : Finish(ctx, progress);
}

template <TxnContext Ctx>
Outcome TestWorkload::Program(Ctx& ctx, std::span<const std::byte> args) {
  Progress progress{};
  std::memcpy(&progress.id, args.data(), sizeof progress.id);
  progress.seen = progress.id.value;
  progress.row.procedure = test::kProgram.value();
  for (size_t at = sizeof(TxnId); at < args.size(); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, args.data() + at, sizeof word);
    const auto operation = static_cast<test::Operation>(word >> test::kOperationShift);
    const Outcome outcome = Do(ctx, operation, word & ((uint64_t{1} << test::kOperationShift) - 1), progress);
    if (outcome != Outcome::kOk) return outcome;
  }
  const bool is_quiet = progress.id.sequence() % 4 == 3 && progress.row.OnlyReads();
  return is_quiet ? FinishQuietly(progress) : Finish(ctx, progress);
}

template <TxnContext Ctx>
Outcome TestWorkload::Do(Ctx& ctx, test::Operation operation, uint64_t object, Progress& progress) {
  switch (operation) {
    case test::Operation::kRead:
      return Read(ctx, object, progress);
    case test::Operation::kWrite:
      return Write(ctx, object, progress);
    case test::Operation::kReadWrite:
      return ReadWrite(ctx, object, progress);
    case test::Operation::kInsert:
      return Insert(ctx, object, progress);
    case test::Operation::kDelete:
      return Delete(ctx, object, progress);
    case test::Operation::kToggle:
      return Toggle(ctx, object, progress);
    case test::Operation::kScan:
      return Scan(ctx, ScanOrder::kAscending, object, progress);
    case test::Operation::kScanBack:
      return Scan(ctx, ScanOrder::kDescending, object, progress);
    case test::Operation::kGiveUp:
      break;
  }
  return Outcome::kRollback;
}

// A key that the scan passed without finding a row is a miss.
template <TxnContext Ctx>
Outcome TestWorkload::Scan(Ctx& ctx, ScanOrder order, uint64_t object, Progress& progress) {
  const Key low = test::KeyOf(object);
  const bool up = order == ScanOrder::kAscending;
  Key passed = 0;  // keys that the scan has passed
  const auto object_at = [&](Key n) {
    return test::MakeObject(test::PlaceOf(object), up ? low + n : low + test::kKeysPerScan - 1 - n);
  };
  const auto miss_before = [&](Key n) {
    for (; passed < n; ++passed) Note(progress, AccessKind::kMiss, object_at(passed), kNoVersion, 0);
  };
  bool ended = false;
  const auto see = [&](Key key, const auto& tuple) {
    const auto row = tuple.template GetAt<test::TestRow>(0);
    miss_before(up ? key - low : low + test::kKeysPerScan - 1 - key);
    Note(progress, AccessKind::kRead, object_at(passed++), row.writer, row.chain);
    ended = !up;
    return up;
  };
  const Outcome outcome = ctx.Scan(table(test::PlaceOf(object)), low, low + test::kKeysPerScan - 1, order, see);
  if (outcome == Outcome::kOk && !ended) miss_before(test::kKeysPerScan);
  return outcome;
}

template <TxnContext Ctx>
Outcome TestWorkload::Read(Ctx& ctx, uint64_t object, Progress& progress) {
  test::TestRow row;
  const Outcome outcome = Look(ctx, object, row);
  if (outcome == Outcome::kOk) Note(progress, AccessKind::kRead, object, row.writer, row.chain);
  if (outcome == Outcome::kNotFound) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
}

template <TxnContext Ctx>
Outcome TestWorkload::Write(Ctx& ctx, uint64_t object, Progress& progress) {
  test::TestRow before;
  const Outcome outcome = Rewrite(ctx, object, 1, progress, before);
  if (outcome == Outcome::kOk) Note(progress, AccessKind::kWrite, object, before.writer, before.chain);
  if (outcome == Outcome::kNotFound) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
}

template <TxnContext Ctx>
Outcome TestWorkload::ReadWrite(Ctx& ctx, uint64_t object, Progress& progress) {
  test::TestRow read;
  const Outcome outcome = Look(ctx, object, read);
  if (outcome == Outcome::kNotFound) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  if (outcome != Outcome::kOk) return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
  test::TestRow before;
  const Outcome written = Rewrite(ctx, object, 1, progress, before);
  if (written == Outcome::kConflict) return written;
  const bool same = written == Outcome::kOk && before.writer == read.writer;
  if (!same) Note(progress, AccessKind::kRead, object, read.writer, read.chain);
  if (written == Outcome::kOk) Note(progress, AccessKind::kWrite, object, before.writer, before.chain);
  if (written == Outcome::kNotFound) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  return Outcome::kOk;
}

template <TxnContext Ctx>
Outcome TestWorkload::Insert(Ctx& ctx, uint64_t object, Progress& progress) {
  const test::TestRow row{progress.id, kNoVersion, HashPair(progress.id.value, progress.seen), 0};
  const Outcome outcome =
      ctx.Insert(table(test::PlaceOf(object)), test::KeyOf(object), std::as_bytes(std::span(&row, 1)));
  if (outcome == Outcome::kOk) Note(progress, AccessKind::kInsert, object, kNoVersion, 0);
  return outcome == Outcome::kExists ? Read(ctx, object, progress) : outcome;
}

template <TxnContext Ctx>
Outcome TestWorkload::Delete(Ctx& ctx, uint64_t object, Progress& progress) {
  test::TestRow row;
  const Outcome outcome = LookForUpdate(ctx, object, row);
  if (outcome == Outcome::kNotFound) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  if (outcome != Outcome::kOk) return outcome == Outcome::kNotFound ? Outcome::kOk : outcome;
  return DeleteSeen(ctx, object, row, progress);
}

template <TxnContext Ctx>
Outcome TestWorkload::DeleteSeen(Ctx& ctx, uint64_t object, const test::TestRow& row, Progress& progress) {
  const Outcome deleted = ctx.Delete(table(test::PlaceOf(object)), test::KeyOf(object));
  if (deleted == Outcome::kConflict) return deleted;
  const bool gone = deleted == Outcome::kOk;
  Note(progress, gone ? AccessKind::kDelete : AccessKind::kRead, object, row.writer, row.chain);
  if (!gone) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  return Outcome::kOk;
}

template <TxnContext Ctx>
Outcome TestWorkload::Toggle(Ctx& ctx, uint64_t object, Progress& progress) {
  test::TestRow row;
  const Outcome outcome = LookForUpdate(ctx, object, row);
  if (outcome == Outcome::kOk) return DeleteSeen(ctx, object, row, progress);
  if (outcome != Outcome::kNotFound) return outcome;
  const Outcome inserted = Insert(ctx, object, progress);
  if (inserted != Outcome::kOk) return inserted;
  // It was seen absent, then present: two accesses that contradict each other.
  const test::LoggedAccess& last = progress.row.accesses[progress.row.access_count - 1];
  const bool was_insert = last.kind_and_object >> test::kOperationShift == static_cast<uint64_t>(AccessKind::kInsert);
  if (!was_insert) Note(progress, AccessKind::kMiss, object, kNoVersion, 0);
  return Outcome::kOk;
}

}  // namespace dbx
