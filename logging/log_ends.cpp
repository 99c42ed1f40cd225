#include "logging/log_ends.h"

#include <algorithm>

#include "base/parallel.h"
#include "logging/log_tail.h"

namespace dbx {
namespace {

void Merge(ProofPerLog& to, const ProofPerLog& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i].Raise(from[i]);
}

// Below the LSN that is proved to be durable by records, by the run's frontier, or by the ring, whose space is reused
// only then.
Lsn DurableStart(const LogReader& reader, Lsn proved) {
  const LogSource& source = reader.source();
  const Lsn by_ring = source.DurableBefore(reader.position());
  return reader.RecordStartUpTo(std::max({proved, by_ring, std::min(source.durable_until, reader.position())}));
}

// Whatever one recovery exposed to clients must be in every later recovery.
void CheckFrozenEnd(const LogReader& reader) {
  const LogSource& source = reader.source();
  if (!source.frozen() || reader.position() == source.frozen_end) return;
  ThrowDamaged(source, reader.position(),
               std::string(reader.end_reason()) + ", but the run was continued from what its log held up to offset " +
                   std::to_string(source.OffsetOf(source.frozen_end)));
}

void CheckDurableEnd(const LogReader& reader) {
  const LogSource& source = reader.source();
  if (reader.position() > source.FileEnd()) {
    ThrowDamaged(source, source.FileEnd(), "the file ends before the position where recovery is to begin");
  }
  if (reader.position() >= source.durable_until) return;
  ThrowDamaged(source, reader.position(),
               std::string(reader.end_reason()) + ", but the run's " + source.durable_shown_by +
                   " shows that it was durable up to offset " + std::to_string(source.OffsetOf(source.durable_until)));
}

// For logs that do not end cleanly, each examined by one thread; the findings of others, and of frozen ones, whose
// tails were judged when they were frozen, stay empty.
std::vector<TailFindings> ExamineTails(std::span<const LogReader* const> readers, uint32_t threads_max) {
  std::vector<uint32_t> open;
  for (uint32_t log = 0; log < readers.size(); ++log) {
    if (!readers[log]->run_end() && !readers[log]->source().frozen()) open.push_back(log);
  }
  std::vector<TailFindings> tails(readers.size());
  const auto threads = std::min(static_cast<uint32_t>(open.size()), threads_max);
  const auto examine = [&](uint32_t thread) {
    for (size_t i = thread; i < open.size(); i += threads) {
      const LogReader& reader = *readers[open[i]];
      tails[open[i]] = ExamineTail(reader.source(), reader.position());
    }
  };
  if (threads > 0) RunInParallel(threads, examine);
  return tails;
}

}  // namespace

void JudgeEnds(std::span<const LogReader* const> readers, uint32_t threads_max, ReplaySummary& summary) {
  ProofPerLog proofs;
  summary.clean_end = true;
  for (uint32_t log = 0; log < readers.size(); ++log) {
    CheckFrozenEnd(*readers[log]);
    CheckDurableEnd(*readers[log]);
  }
  const std::vector<TailFindings> tails = ExamineTails(readers, threads_max);
  for (uint32_t log = 0; log < readers.size(); ++log) {
    const LogReader& reader = *readers[log];
    summary.Add(reader.totals());
    summary.log_bytes += reader.position() - std::min(reader.source().First(), reader.position());
    summary.highest_lsn = std::max(summary.highest_lsn, reader.source().FileEnd());
    summary.frontier.push_back(reader.position());
    summary.run_ends.push_back(reader.run_end());
    Merge(proofs, reader.totals().proofs);
    summary.clean_end &= reader.run_end().has_value();
    const TailFindings& tail = tails[log];
    summary.cut_bytes += tail.cut_bytes;
    summary.torn_logs += tail.cut_bytes > 0;
    Merge(proofs, tail.proofs);
    summary.next_sequence = std::max(summary.next_sequence, tail.next_sequence);
    summary.highest_stamp = std::max(summary.highest_stamp, tail.highest_stamp);
    summary.durable_stamp = std::max(summary.durable_stamp, tail.durable_stamp);
  }
  for (uint32_t log = 0; log < readers.size(); ++log) {
    const LogReader& reader = *readers[log];
    const DurabilityProof& proof = proofs[log];
    summary.durable.push_back(DurableStart(reader, proof.until));
    if (proof.until <= reader.position()) continue;
    ThrowDamaged(reader.source(), reader.position(),
                 std::string(reader.end_reason()) + ", but the " + proof.what + " at " +
                     PlaceOf(readers[proof.shown_in]->source(), proof.at) + " shows that it was durable up to offset " +
                     std::to_string(reader.source().OffsetOf(proof.until)));
  }
}

}  // namespace dbx
