#include "system/replay/heap_restart.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/parallel.h"
#include "storage/heap/table_versions.h"
#include "system/pairs/pair_types.h"
#include "system/reference/reference_heap.h"
#include "system/replay/laps.h"
#include "system/replay/verify.h"
#include "system/replay/workload_check.h"
#include "system/runs/index_file.h"
#include "system/transaction/ack_file.h"
#include "system/transaction/observer.h"

namespace dbx {
namespace {

// Of rows whose versions lie in a heap.
constexpr RowLayout kHeapRowLayout{.cc_bytes = sizeof(RowVersions)};

RunNames NamesOf(const OldRun& run) {
  return {run.header().run_id, run.header().database_id, run.header().schema_hash, run.heap_path,
          run.gaps_path,       run.indexes_path};
}

// The rows that the reference finds, over tables of its own.
template <class WorkloadT>
Digest128 ReferenceDigest(const Options& options, FileSystem& files, const OldRun& run) {
  WorkloadT fresh = MakeWorkload<WorkloadT>(options);
  Database expected({}, options.thread_cnt);
  CreateTables(options, fresh, expected);
  reference::LoadHeap(ImageOf(run, files), expected);
  fresh.Adopt(expected, options.seed);
  return DigestOf(expected, options.thread_cnt);
}

// Whether a restart would map what was built from the rows; true, if it would map nothing.
template <class WorkloadT>
bool HasIndexesOf(const Options& options, FileSystem& files, const OldRun& run, const Database& database) {
  WorkloadT fresh = MakeWorkload<WorkloadT>(options);
  Database mapped({}, options.thread_cnt);
  CreateTables(options, fresh, mapped);
  const auto memory = MapIndexFile(files, run.indexes_path, run.header().run_id, mapped);
  const auto equal = [](const auto& a, const auto& b) {
    // Places of search keys included: they depend on the entries alone.
    return std::ranges::equal(a->slots(), b->slots()) && std::ranges::equal(a->primaries(), b->primaries());
  };
  return memory == nullptr || std::ranges::equal(mapped.secondary_indexes(), database.secondary_indexes(), equal);
}

// By worker, of as many as the ack file has: the number below which the record covers its transactions. Those of an
// earlier life were checked, or lost, when the next one began: its record does not name them, nor workers that it does
// not have.
std::vector<uint64_t> CoveredBelow(const GapRecord& record, uint32_t workers) {
  std::vector<uint64_t> below = record.last_sequences;
  below.resize(std::max<size_t>(below.size(), workers), HeapRun::FirstSequenceOf(record.life));
  return below;
}

// A database that was adopted as a whole from a private copy.
template <class WorkloadT>
Verification VerifyAdopted(const Options& options, FileSystem& files, const OldRun& run, const WorkloadT& workload,
                           const HeapRun& heap, const Database& database) {
  const auto acks = options.ack_file.empty() ? nullptr : AckFile::Open(options.ack_file, NamesOf(run).run_id);
  Digest128 digest, expected;
  RunInParallel(2, [&](uint32_t part) {
    if (part == 1) {
      expected = ReferenceDigest<WorkloadT>(options, files, run);
    } else {
      digest = DigestOf(database, options.thread_cnt);
      if (const auto what = CheckWorkload(options, workload, database, acks.get())) ThrowViolated("d failed: " + *what);
    }
  });
  if (expected != digest) ThrowViolated("a failed: the database differs from the rows that the reference finds");
  if (!HasIndexesOf<WorkloadT>(options, files, run, database)) {
    ThrowViolated("a failed: " + run.indexes_path + " differs from the indexes of the rows");
  }
  std::string checks = "a,";
  const GapRecord& record = heap.newest();
  if (record.digest) {
    if (Digest128{record.digest->first, record.digest->second} != digest) {
      ThrowViolated("b failed: the database differs from the one that the run ended with");
    }
    checks += "b,";
  }
  if (acks != nullptr) {
    CheckAcknowledged(options.ack_file, NamesOf(run).run_id, /*recovered=*/{}, CoveredBelow(record, acks->workers()));
    checks += "c,";
  }
  return {checks + "d", digest};
}

// What a recovery, or a verification, makes of a run: a database over a private copy of its heap.
struct PrivateHeap {
  Database database;
  std::unique_ptr<HeapRun> heap;

  template <class WorkloadT>
  PrivateHeap(const Options& options, FileSystem& files, const OldRun& run, WorkloadT& workload)
      : database(kHeapRowLayout, options.thread_cnt) {
    database.ExpectVersionHeap();
    CreateTables(options, workload, database);
    heap = HeapRun::Open(files, NamesOf(run), /*private_copy=*/true, FlushInstruction::kAuto, database);
  }
  template <class WorkloadT>
  void Adopt(const Options& options, WorkloadT& workload) {
    heap->Check(options.thread_cnt, /*checksums=*/options.verify);
    heap->AdoptAll(options.thread_cnt);
    workload.Adopt(database, options.seed);
  }
};

template <class WorkloadT>
RecoveryResult RecoverHeapOf(const Options& options, LogStorage& storage, const LogTraits& traits,
                             WorkloadT& workload) {
  RecoveryResult result;
  Laps laps;
  const OldRuns runs = storage.Open(options);
  const OldRun& run = runs.newest();
  result.run_number = run.number;
  result.directories = storage.Describe(options, run);
  result.threads = options.thread_cnt;
  PrivateHeap copy(options, storage.files(), run, workload);
  CheckLogsMatch(run, traits, SchemaHash(copy.database));
  result.open_seconds = laps.Next();
  copy.Adopt(options, workload);
  result.replay_seconds = laps.Next();
  observer::Recovered(copy.database);
  result.heap = ResultOf(*copy.heap);
  result.clean_end = copy.heap->newest().clean;
  result.ended_below = copy.heap->newest().last_sequences;
  result.finish_seconds = laps.Next();
  if (options.verify) {
    const Verification verification = VerifyAdopted(options, storage.files(), run, workload, *copy.heap, copy.database);
    result.verified = verification.checks;
    result.digest = verification.digest.Hex();
    result.verify_seconds = laps.Next();
  }
  return result;
}

}  // namespace

void RefuseForHeaps(const Options& options, const OldRun& run) {
  if (options.checkpoint) {
    throw Error(ExitStatus::kUsage, "cannot continue " + run.heap_path +
                                        " with --checkpoint: the run goes on in the same heap; leave it out");
  }
  if (options.workload == WorkloadKind::kSms) {
    throw Error(ExitStatus::kUsage, "cannot continue " + run.heap_path +
                                        ": SMS numbers its messages as its transactions, and these begin anew in each "
                                        "life of a heap; start a new run");
  }
}

std::unique_ptr<HeapRun> RestartHeap(const Options& options, LogStorage& storage, const OldRun& run,
                                     WorkloadRef workload, Database& database) {
  auto heap = HeapRun::Open(storage.files(), NamesOf(run), /*private_copy=*/false, FlushOf(options), database);
  // Secondary indexes that are not mapped are built from all rows.
  const bool on_demand =
      options.adopt_on_demand &&
      std::ranges::all_of(database.secondary_indexes(), [](const auto& index) { return index->frozen(); });
  if (!on_demand) heap->Check(options.thread_cnt, /*checksums=*/false);
  storage.KeepServed(run);
  heap->StartLife(options.thread_cnt);
  if (!on_demand) heap->AdoptAll(options.thread_cnt);
  std::visit([&](auto* adopting) { adopting->Adopt(database, options.seed); }, workload);
  heap->NoteReady();
  return heap;
}

RecoveryResult RecoverHeap(const Options& options, LogStorage& storage, const LogTraits& traits) {
  return WithWorkload(options, [&](auto& workload) { return RecoverHeapOf(options, storage, traits, workload); });
}

void VerifyHeap(const Options& options, FileSystem& files, const OldRun& run, WorkloadRef workload) {
  const auto verify = [&]<class WorkloadT>(WorkloadT*) {
    WorkloadT fresh = MakeWorkload<WorkloadT>(options);
    PrivateHeap copy(options, files, run, fresh);
    copy.Adopt(options, fresh);
    // The ack and history files are those of the life that begins.
    Options without_files = options;
    without_files.ack_file.clear();
    without_files.history_file.clear();
    (void)VerifyAdopted(without_files, files, run, fresh, *copy.heap, copy.database);
  };
  std::visit(verify, workload);
}

HeapResult ResultOf(const HeapRun& heap) {
  HeapResult result;
  result.memory = heap.memory_kind();
  result.bytes = heap.heap().memory().bytes().size();
  result.used_bytes = heap.heap().used_bytes();
  result.life = heap.newest().life;
  result.records = heap.newest().sequence;
  result.gaps = heap.newest().gaps.gaps().size();
  const auto since_open = [&](uint64_t ticks) {
    return ticks == 0 ? 0 : Clock::ToSeconds(ticks - heap.opened_ticks());
  };
  result.ready_seconds = since_open(heap.ready_ticks());
  result.adopted_seconds = since_open(heap.adopted_ticks());
  return result;
}

}  // namespace dbx
