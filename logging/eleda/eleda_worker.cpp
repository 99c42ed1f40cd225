#include "logging/eleda/eleda_worker.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "logging/format.h"

namespace dbx {
namespace {

// Of a list. A worker's transactions in flight are bounded by its queue of acknowledgements anyway.
constexpr uint64_t kNodesMax = 1 << 15;

constexpr std::chrono::microseconds kSpaceWait{20};

size_t NodesFor(uint64_t ring_bytes) {
  return std::bit_ceil(std::min<uint64_t>(kNodesMax, ring_bytes / sizeof(format::RecordHeader)));
}

}  // namespace

EledaWorker::EledaWorker(LogStream& stream, uint32_t workers, uint64_t hopping_distance)
    : stream_(stream),
      index_(hopping_distance, stream.ring_bytes(), stream.reserved_until()),
      lists_([&] {
        std::vector<std::unique_ptr<GrasshopperList>> lists;
        for (uint32_t i = 0; i < workers + 1; ++i) {
          lists.push_back(std::make_unique<GrasshopperList>(index_, NodesFor(stream.ring_bytes())));
        }
        return lists;
      }()),
      producers_(workers + 1),
      grasshopper_(index_, lists_, stream.reserved_until()) {}

void EledaWorker::AwaitSpace(uint32_t worker) {
  for (; !lists_[worker]->HasSpace(); Collect(worker)) {
    stream_.ThrowIfFailed();
    host::SleepFor(kSpaceWait);
  }
}

void EledaWorker::FilledByWriter(const LogPlace& place) {
  // The writer appends a few records per flush, and each flush makes the earlier ones durable: it never waits.
  Collect(writers_list());
  CHECK(lists_[writers_list()]->HasSpace());
  lists_[writers_list()]->Enqueue(place, false);
}

void EledaWorker::CatchUp() {
  std::unique_lock lock(mutex_);
  const uint64_t request = ++requested_;
  wake_.notify_one();
  done_.wait(lock, [&] { return served_ >= request; });
}

void EledaWorker::LookAhead() {
  {
    std::lock_guard lock(mutex_);
    ++requested_;
  }
  wake_.notify_one();
}

void EledaWorker::Start() {
  thread_ = Thread([this] { Loop(); });
}

void EledaWorker::Stop() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EledaWorker::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_ || requested_ != served_; });
    if (stop_) return;
    const uint64_t request = requested_;
    lock.unlock();
    grasshopper_.Advance(stream_.reserved_until());
    lock.lock();
    served_ = request;
    done_.notify_one();
  }
}

void EledaWorker::CollectAll() {
  for (uint32_t i = 0; i < lists_.size(); ++i) Collect(i);
}

uint64_t EledaWorker::callbacks() const {
  uint64_t callbacks = 0;
  for (const Producer& producer : producers_) callbacks += producer.callbacks;
  return callbacks;
}

}  // namespace dbx
