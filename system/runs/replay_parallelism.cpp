#include "system/runs/replay_parallelism.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dbx {
namespace {

constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

// Removes the records for which `is_lost(log, index)`, with their LSN vectors.
template <class IsLost>
uint64_t Drop(std::vector<ReplayedLog>& logs, IsLost&& is_lost) {
  uint64_t dropped = 0;
  for (ReplayedLog& log : logs) {
    size_t kept = 0;
    const size_t elements = log.lsn_vectors.empty() ? 0 : logs.size();
    for (size_t i = 0; i < log.records.size(); ++i) {
      if (is_lost(log, i)) continue;
      log.records[kept] = log.records[i];
      std::copy_n(log.lsn_vectors.begin() + static_cast<ptrdiff_t>(i * elements), elements,
                  log.lsn_vectors.begin() + static_cast<ptrdiff_t>(kept * elements));
      ++kept;
    }
    dropped += log.records.size() - kept;
    log.records.resize(kept);
    log.lsn_vectors.resize(kept * elements);
  }
  return dropped;
}

}  // namespace

uint64_t DropBehindEnds(std::vector<ReplayedLog>& logs) {
  return Drop(logs, [&](const ReplayedLog& log, size_t i) {
    for (size_t j = 0; j < logs.size(); ++j) {
      if (log.lsn_vectors[i * logs.size() + j] > logs[j].end) return true;
    }
    return false;
  });
}

uint64_t DropBehindStamps(std::vector<ReplayedLog>& logs) {
  Stamp last(std::numeric_limits<uint64_t>::max());
  for (const ReplayedLog& log : logs) last = std::min(last, log.stamps.empty() ? Stamp() : log.stamps.back().stamp);
  return DropAbove(logs, last);
}

uint64_t DropAbove(std::vector<ReplayedLog>& logs, Stamp last) {
  return Drop(logs, [last](const ReplayedLog& log, size_t i) { return log.records[i].stamp > last; });
}

void AwaitStamps(std::vector<ReplayedLog>& logs) {
  for (ReplayedLog& log : logs) {
    for (const ReplayedLog& other : logs) {
      auto read = other.stamps.begin();
      for (ReplayedRecord& record : log.records) {
        while (read->stamp < record.stamp) ++read;
        record.available_ns = std::max(record.available_ns, read->available_ns);
      }
    }
  }
}

// The replay of a model's records by some threads, step by step: at each moment free threads take the records that may
// begin, then time moves on to the next record that ends, or is available.
class ListSchedule {
 public:
  // `queues.heads` may begin at once, as far as the order and the devices let them.
  ListSchedule(const ReplayModel& model, const ReplayModel::Queues& queues, bool by_vectors, bool with_devices,
               uint32_t threads)
      : model_(model), queues_(queues), by_vectors_(by_vectors), with_devices_(with_devices), free_threads_(threads) {
    if (!by_vectors) return;
    for (const auto& records : model.of_log_) waiting_.emplace_back(records.size() + 1, kNone);
    next_waiting_.resize(model.record_count());
    has_ended_.resize(model.record_count());
    ended_.resize(model.of_log_.size());
  }

  double Run() {
    for (const uint32_t head : queues_.heads) Arrive(head);
    while (order_.size() < model_.record_count() || !running_.empty()) {
      for (; free_threads_ > 0 && !ready_.empty(); ready_.pop()) Begin(ready_.top());
      if (running_.empty() && arriving_.empty()) RefuseCycle();
      now_ = std::min(running_.empty() ? std::numeric_limits<double>::max() : running_.top().first,
                      arriving_.empty() ? std::numeric_limits<double>::max() : arriving_.top().first);
      for (; !running_.empty() && running_.top().first <= now_; running_.pop()) End(running_.top().second);
      for (; !arriving_.empty() && arriving_.top().first <= now_; arriving_.pop()) Await(arriving_.top().second);
    }
    return now_;
  }

  // In which the records began.
  const std::vector<uint32_t>& order() const { return order_; }

 private:
  template <class T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;
  using Event = std::pair<double, uint32_t>;  // when, and of which record

  // The head of a queue.
  void Arrive(uint32_t record) {
    if (with_devices_ && model_.available_ns_[record] > now_) {
      arriving_.emplace(model_.available_ns_[record], record);
    } else {
      Await(record);
    }
  }

  // It may begin, or waits for the first log that is not yet replayed as far as it must be.
  void Await(uint32_t record) {
    for (size_t log = 0; by_vectors_ && log < ended_.size(); ++log) {
      const uint32_t count = model_.waits_[record * ended_.size() + log];
      if (count <= ended_[log]) continue;
      next_waiting_[record] = std::exchange(waiting_[log][count], record);
      return;
    }
    ready_.push(record);
  }

  void Begin(uint32_t record) {
    --free_threads_;
    order_.push_back(record);
    running_.emplace(now_ + model_.cost_ns_[record], record);
  }

  void End(uint32_t record) {
    ++free_threads_;
    if (queues_.next[record] != kNone) Arrive(queues_.next[record]);
    if (!by_vectors_) return;
    has_ended_[record] = true;
    const uint32_t log = model_.log_[record];
    const std::vector<uint32_t>& records = model_.of_log_[log];
    while (ended_[log] < records.size() && has_ended_[records[ended_[log]]]) {
      uint32_t waiting = std::exchange(waiting_[log][++ended_[log]], kNone);
      while (waiting != kNone) Await(std::exchange(waiting, next_waiting_[waiting]));
    }
  }

  [[noreturn]] void RefuseCycle() const {
    throw Error(ExitStatus::kCorrupt, "the LSN vectors of " + std::to_string(model_.record_count() - order_.size()) +
                                          " records wait for each other");
  }

  const ReplayModel& model_;
  const ReplayModel::Queues& queues_;
  const bool by_vectors_;
  const bool with_devices_;
  uint32_t free_threads_;
  double now_ = 0;
  LeastFirst<uint32_t> ready_;
  LeastFirst<Event> running_;   // by when they end
  LeastFirst<Event> arriving_;  // by when they are available
  std::vector<uint32_t> order_;

  // By LSN vectors. By log: the number of its first records that have all ended (RLV, as a count), and for each such
  // number the list of records that wait for it.
  std::vector<uint32_t> ended_;
  std::vector<std::vector<uint32_t>> waiting_;
  std::vector<uint32_t> next_waiting_;  // of the same list, by record
  std::vector<bool> has_ended_;
};

ReplayModel::ReplayModel(const std::vector<ReplayedLog>& logs) : of_log_(logs.size()) {
  struct Place {
    uint64_t offset;
    uint32_t log;
    uint32_t index;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (uint32_t log = 0; log < logs.size(); ++log) {
    for (uint32_t i = 0; i < logs[log].records.size(); ++i) {
      places.push_back({logs[log].records[i].lsn - logs[log].first, log, i});
    }
  }
  CHECK(places.size() < kNone);
  std::sort(places.begin(), places.end());
  for (const Place& place : places) {
    const ReplayedRecord& record = logs[place.log].records[place.index];
    CHECK(record.cost_ns > 0);
    of_log_[place.log].push_back(static_cast<uint32_t>(cost_ns_.size()));
    cost_ns_.push_back(record.cost_ns);
    available_ns_.push_back(record.available_ns);
    stamp_.push_back(record.stamp);
    batch_.push_back(record.batch);
    log_.push_back(place.log);
    work_ns_ += record.cost_ns;
    if (logs[place.log].lsn_vectors.empty()) continue;
    const Lsn* element = &logs[place.log].lsn_vectors[place.index * logs.size()];
    for (const ReplayedLog& log : logs) {
      const auto behind = std::ranges::lower_bound(log.records, *element++, {}, &ReplayedRecord::lsn);
      waits_.push_back(static_cast<uint32_t>(behind - log.records.begin()));
    }
  }
}

std::vector<uint32_t> ReplayModel::TotalOrder() const {
  if (has_lsn_vectors()) {
    const Queues queues = QueuesOf(ModelledOrder::kLsnVectors, 1);
    ListSchedule schedule(*this, queues, /*by_vectors=*/true, /*with_devices=*/false, /*threads=*/1);
    schedule.Run();
    return schedule.order();
  }
  std::vector<uint32_t> order(record_count());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [this](uint32_t record) { return stamp_[record]; });
  return order;
}

ReplayModel::Queues ReplayModel::QueuesOf(ModelledOrder order, uint32_t threads) const {
  Queues queues{{}, std::vector<uint32_t>(record_count(), kNone)};
  const auto chain = [&](std::vector<uint32_t>& lasts, size_t queue, uint32_t record) {
    if (queue >= lasts.size()) lasts.resize(queue + 1, kNone);
    const uint32_t last = std::exchange(lasts[queue], record);
    (last == kNone ? queues.heads.emplace_back() : queues.next[last]) = record;
  };
  std::vector<uint32_t> lasts;
  const size_t logs = of_log_.size();
  // As a recovery by so many workers has; with any number, a lane for each batch.
  const size_t lanes = threads == kUnlimitedThreads ? std::numeric_limits<size_t>::max() : (threads + logs - 1) / logs;
  if (order == ModelledOrder::kTotal) {
    for (const uint32_t record : TotalOrder()) chain(lasts, 0, record);
    return queues;
  }
  for (uint32_t record = 0; record < record_count(); ++record) {
    switch (order) {
      case ModelledOrder::kLanes:
        chain(lasts, batch_[record] % lanes * logs + log_[record], record);
        break;
      case ModelledOrder::kPartitions:
        chain(lasts, log_[record], record);
        break;
      default:
        queues.heads.push_back(record);
    }
  }
  return queues;
}

double ReplayModel::CriticalPathNs(ModelledOrder order) const {
  return Replay(order, kUnlimitedThreads, /*with_devices=*/false);
}

double ReplayModel::TimeNs(ModelledOrder order, uint32_t threads) const {
  return Replay(order, threads, /*with_devices=*/true);
}

double ReplayModel::Replay(ModelledOrder order, uint32_t threads, bool with_devices) const {
  const Queues queues = QueuesOf(order, threads);
  const bool by_vectors = order == ModelledOrder::kLsnVectors || order == ModelledOrder::kLanes;
  return ListSchedule(*this, queues, by_vectors && has_lsn_vectors(), with_devices, threads).Run();
}

}  // namespace dbx
