#include "multi_master/lock/kept_row_locks.h"

#include "base/check.h"
#include "base/error.h"

namespace dbx::mm {

std::vector<KeptRowLocks::Tree> KeptRowLocks::Layout(std::span<const uint64_t> rows) {
  std::vector<Tree> trees;
  uint64_t begin = 0;
  for (const uint64_t count : rows) {
    const uint64_t slots = std::bit_ceil(2 * (count + kNewRows));
    trees.push_back({begin, slots});
    begin += slots;
  }
  return trees;
}

size_t KeptRowLocks::BytesOf(const std::vector<Tree>& trees) {
  const uint64_t slots = trees.empty() ? 0 : trees.back().begin + trees.back().slots;
  return kMastersMax * sizeof(PerMaster) + slots * sizeof(Slot);
}

KeptRowLocks::KeptRowLocks(std::span<const uint64_t> rows) : trees_(Layout(rows)), memory_(BytesOf(trees_)) {}

KeptRowLocks::Slot& KeptRowLocks::SlotOf(const Tree& tree, Key row) const {
  CHECK(row + 1 != 0);
  uint64_t at = Mix64(row);
  for (uint64_t probes = 0; probes < kProbesMax; ++probes, ++at) {
    Slot& slot = slots()[tree.begin + (at & (tree.slots - 1))];
    uint64_t key = slot.key.load(std::memory_order_relaxed);
    // Of a slot that another thread takes at once, `key` is what it has set.
    if (key == 0 && slot.key.compare_exchange_strong(key, row + 1, std::memory_order_relaxed)) return slot;
    if (key == row + 1) return slot;
  }
  throw Error(ExitStatus::kNoSpace,
              "too many rows were locked to count what a lock manager of rows would send: about " +
                  std::to_string(tree.slots) + " of one table; run for a shorter time");
}

void KeptRowLocks::OnRowLock(MasterId master, TreeId tree, Key row, RowLockKind kind) {
  if (kind != RowLockKind::kShared && kind != RowLockKind::kExclusive) return;
  const bool exclusive = kind == RowLockKind::kExclusive;
  const uint32_t own = uint32_t{1} << master.value();
  Slot& slot = SlotOf(trees_.at(tree.value() - 1), row);
  uint32_t state = slot.state.load(std::memory_order_relaxed);
  for (;;) {
    const bool is_exclusive = (state & kExclusiveBit) != 0;
    if ((state & own) != 0 && (is_exclusive || !exclusive)) return;
    const uint32_t others = state & ~own & ~kExclusiveBit;
    const uint32_t reclaimed = exclusive || is_exclusive ? others : 0;
    const uint32_t kept = ((state & ~kExclusiveBit & ~reclaimed) | own) + (exclusive ? kExclusiveBit : 0);
    if (!slot.state.compare_exchange_weak(state, kept, std::memory_order_relaxed)) continue;
    const auto messages = static_cast<uint64_t>(2 + 2 * std::popcount(reclaimed));
    masters()[master.value()].messages.fetch_add(messages, std::memory_order_relaxed);
    if (state == 0) masters()[master.value()].first.fetch_add(messages, std::memory_order_relaxed);
    return;
  }
}

}  // namespace dbx::mm
