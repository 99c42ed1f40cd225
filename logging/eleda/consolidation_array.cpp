#include "logging/eleda/consolidation_array.h"

#include "base/check.h"
#include "base/spin.h"

namespace dbx {

ConsolidationArray::ConsolidationArray(LogStream& stream, uint32_t workers)
    : stream_(stream),
      first_slot_(workers),
      group_bytes_max_(stream.ring_bytes() / 4),
      groups_(kGroups),
      members_(workers) {
  stream.SetSlots(workers + kGroups);
}

LogPlace ConsolidationArray::Reserve(uint32_t worker, uint32_t bytes) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) return ReserveAlone(worker, bytes, std::move(lock));
  for (uint32_t i = 0; i < kGroups; ++i) {
    const uint32_t group = (worker / kWorkersPerGroup + i) % kGroups;
    uint64_t joined = groups_[group].joined.load(std::memory_order_relaxed);
    while (joined != kClosed && joined + bytes <= group_bytes_max_) {
      // Acquire: the group's last members are done with it.
      if (groups_[group].joined.compare_exchange_weak(joined, joined + bytes, std::memory_order_acq_rel,
                                                      std::memory_order_relaxed)) {
        return ReserveJoined(worker, group, joined, bytes);
      }
    }
  }
  lock.lock();
  return ReserveAlone(worker, bytes, std::move(lock));
}

LogPlace ConsolidationArray::ReserveAlone(uint32_t worker, uint32_t bytes, std::unique_lock<Mutex>) {
  members_[worker].group = kAlone;
  return stream_.Reserve(worker, bytes);
}

LogPlace ConsolidationArray::ReserveJoined(uint32_t worker, uint32_t group, uint64_t offset, uint32_t bytes) {
  members_[worker].group = group;
  if (offset == 0) Lead(group);
  // Acquire: pairs with the leader's release; the ring below the group's end is free.
  uint64_t base = kUnknown;
  SpinWait wait;
  while ((base = groups_[group].base.load(std::memory_order_acquire)) == kUnknown) wait.Wait();
  if (base == kFailed) stream_.ThrowIfFailed();
  CHECK(base != kFailed);
  return {Lsn(base + offset), bytes};
}

void ConsolidationArray::Lead(uint32_t group) {
  Group& mine = groups_[group];
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = mine.joined.exchange(kClosed, std::memory_order_acq_rel);
  mine.unfilled.store(bytes, std::memory_order_relaxed);
  try {
    const LogPlace place = stream_.Reserve(first_slot_ + group, static_cast<uint32_t>(bytes));
    mine.base.store(place.lsn.value(), std::memory_order_release);
  } catch (...) {
    mine.base.store(kFailed, std::memory_order_release);
    throw;
  }
}

void ConsolidationArray::Finish(uint32_t worker, const LogPlace& place) {
  const uint32_t group = members_[worker].group;
  if (group == kAlone) return stream_.Finish(worker);
  Group& mine = groups_[group];
  // Release: this member's bytes are filled. Acquire, of the last member: so are those of all others.
  if (mine.unfilled.fetch_sub(place.bytes, std::memory_order_acq_rel) != place.bytes) return;
  mine.base.store(kUnknown, std::memory_order_relaxed);
  stream_.Finish(first_slot_ + group);
  mine.joined.store(0, std::memory_order_release);
}

}  // namespace dbx
