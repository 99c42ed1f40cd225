// Drives a run in miniature (paged_run.h) by chance: transactions, aborts, retries, dependencies across logs, and
// checkpoints between their steps. Single-threaded.
#pragma once

#include <array>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/logging/differential/paged_run.h"

namespace dbx {

class PagedHistory {
 public:
  using Place = PagedRun::Place;
  static constexpr uint64_t kWorkers = 4;

  PagedHistory(uint64_t seed, DiffMethod method)
      : random_(seed),
        run_({.logs = LogsOf(Below(4)),
              .parts = 1 + static_cast<uint32_t>(Below(2)),
              .runs = Below(2) == 0,
              .method = method}),
        logs_(run_.shape().logs) {
    for (uint32_t i = 0; i < 6 + Below(10); ++i) {
      const Place at = AnyPlace(3);
      if (at.page < run_.pages(at.table) && run_.IsPresent(at)) continue;
      run_.Load(at, KeyOf(at, 0), NextValue());
    }
    run_.Start();
    for (uint64_t worker = 0; worker < kWorkers; ++worker) ids_[worker] = NextId(worker);
  }

  void Step() {
    const uint64_t dice = Below(100);
    if (dice < 70) return StepTxn(Below(kWorkers));
    if (dice < 90) return StepCheckpoint();
    const auto log = static_cast<uint32_t>(Below(logs_));
    if (dice < 91) return run_.Flush(log);
    if (dice < 94) return run_.AppendLvAnchor(log);
    if (dice < 95) run_.log(log).Void(static_cast<uint32_t>(40 + 8 * Below(700)));
  }

  // Logs that end anywhere behind what is durable.
  PagedRun::Crashed Crash() {
    std::vector<uint64_t> ends;
    for (uint32_t log = 0; log < logs_; ++log) {
      std::vector<uint64_t> cuts;
      for (const uint64_t start : run_.log(log).Starts()) {
        if (start >= run_.durable(log)) cuts.push_back(start);
      }
      cuts.push_back(run_.end(log));
      // All of it, no more than what is durable, or something between.
      const uint64_t choice = Below(3);
      ends.push_back(choice == 0 ? cuts.back() : choice == 1 ? cuts.front() : cuts[Below(cuts.size())]);
    }
    return run_.Crash(ends);
  }
  PagedRun& run() { return run_; }

 private:
  static uint32_t LogsOf(uint64_t dice) { return std::array<uint32_t, 4>{1, 2, 3, 5}[dice]; }
  uint64_t Below(uint64_t n) { return random_() % n; }
  uint64_t NextValue() { return random_(); }
  // All earlier ones of the worker have ended.
  uint64_t NextId(uint64_t worker) {
    const auto number = static_cast<uint32_t>(worker);
    run_.SetEndedBelow(number, ++last_sequence_);
    return TxnId::Make(WorkerId(number), last_sequence_).value;
  }
  Place AnyPlace(uint32_t pages) {
    return {static_cast<uint16_t>(Below(2)), static_cast<uint32_t>(Below(pages)), static_cast<uint16_t>(Below(4))};
  }
  // Keys of a slot are no other slot's.
  static Key KeyOf(const Place& at, uint64_t turn) { return (turn * 100 + at.page) * 8 + at.slot + 1; }

  void StepTxn(uint64_t worker) {
    uint64_t& id = ids_[worker];
    if (lingers_[worker] && Below(3) != 0) return;
    if (std::exchange(lingers_[worker], false)) run_.Forget(id);
    if (ended_[worker]) id = NextId(worker), ended_[worker] = false;
    if (!run_.IsAnnounced(id)) return Begin(worker);
    // Others may commit between a transaction's stamp and its end.
    const bool is_stamped = std::exchange(stamped_[worker], false);
    const uint64_t dice = Below(20);
    if (dice < 14 && !is_stamped) return Access(id);
    if (dice < 16 && !is_stamped) {
      run_.DrawStamp(id);
      stamped_[worker] = true;
      return;
    }
    End(worker, /*commits=*/dice % 3 != 0);
  }
  void Begin(uint64_t worker) {
    announced_[worker] = {static_cast<uint32_t>(Below(logs_)), 0};
    announced_[worker].second = run_.end(announced_[worker].first);
    run_.Announce(ids_[worker], announced_[worker].first);
  }
  void End(uint64_t worker, bool commits) {
    commits ? run_.Commit(ids_[worker]) : run_.Abort(ids_[worker]);
    if (commits) run_.SetEndedBelow(static_cast<uint32_t>(worker), TxnId{ids_[worker]}.sequence() + 1);
    // An aborted transaction is tried again under its id, or given up.
    ended_[worker] = commits || Below(4) == 0;
    lingers_[worker] = Below(3) == 0;
    if (lingers_[worker]) run_.Linger(ids_[worker], announced_[worker].first, announced_[worker].second);
  }
  void Access(uint64_t id) {
    // The table becomes longer.
    const Place at = AnyPlace(4 + static_cast<uint32_t>(last_sequence_ / 20));
    if (!run_.IsFree(at, id)) return;
    const bool present = at.page < run_.pages(at.table) && run_.IsPresent(at);
    if (present && Below(4) == 0) return run_.Delete(id, at);
    if (present && Below(3) == 0) return run_.Read(id, at);
    Key& key = keys_[at];
    if (!present) key = KeyOf(at, Below(3));
    run_.Put(id, at, present ? run_.KeyAt(at) : key, NextValue());
  }

  // A step of a checkpoint; transactions go on between two of them.
  enum class Phase { kNone, kBegins, kCount, kCopy, kList, kEnds, kAnchor };
  void StepCheckpoint() {
    switch (phase_) {
      case Phase::kNone:
        if (Below(3) != 0) return;
        run_.RaiseFlag();
        return Enter(Phase::kBegins);
      case Phase::kBegins:
        run_.AppendBegin(log_++);
        if (log_ == logs_) Enter(Phase::kCount);
        return;
      case Phase::kCount:
        run_.CountPages();
        for (uint16_t table = 0; table < 2; ++table) {
          for (uint32_t page = 0; page < run_.pages_to_copy(table); ++page) to_copy_.push_back({table, page, 0});
        }
        return Enter(Phase::kCopy);
      case Phase::kCopy:
        return StepCopy();
      case Phase::kList:
        run_.ListActive();
        return Enter(Phase::kEnds);
      case Phase::kEnds:
        run_.AppendEnd(log_++);
        if (log_ == logs_) Enter(Phase::kAnchor);
        return;
      case Phase::kAnchor:
        run_.WriteAnchor();
        return Enter(Phase::kNone);
    }
  }
  void StepCopy() {
    if (Below(60) == 0) {
      to_copy_.clear();
      run_.FailCheckpoint();
      return Enter(Phase::kNone);
    }
    for (int i = 0; i < 2 && !to_copy_.empty(); ++i) {
      run_.CopyPage(to_copy_.front().table, to_copy_.front().page);
      to_copy_.erase(to_copy_.begin());
    }
    if (!to_copy_.empty()) return;
    run_.EndCheckpoint();
    Enter(Phase::kList);
  }
  void Enter(Phase phase) {
    phase_ = phase;
    log_ = 0;
  }

  std::mt19937_64 random_;
  PagedRun run_;
  const uint32_t logs_;
  uint64_t last_sequence_ = 0;
  uint64_t ids_[kWorkers] = {};
  bool ended_[kWorkers] = {};
  bool stamped_[kWorkers] = {};
  bool lingers_[kWorkers] = {};
  std::pair<uint32_t, uint64_t> announced_[kWorkers] = {};
  std::map<Place, Key> keys_;
  Phase phase_ = Phase::kNone;
  uint32_t log_ = 0;  // the next to get its record of a checkpoint
  std::vector<Place> to_copy_;
};

}  // namespace dbx
