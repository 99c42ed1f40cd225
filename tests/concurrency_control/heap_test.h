// A test of rows whose versions lie in a persistent heap, and what it may ask of the heap's slots. `Engine` is a
// Harness over a log of heap_only_log.h.
#pragma once

#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {

template <class Engine>
class HeapTest : public ::testing::Test {
 protected:
  HeapTest() {
    for (const Key key : {1, 2, 3}) h_.LoadRow(key, key * 100);
  }

  // Slots with a stamp, in the memory and after a power failure that keeps what is durable alone.
  uint64_t Stamped() {
    uint64_t stamped = 0;
    ForEachSlot([&](const HeapSlot* slot) { stamped += slot->begin.load() != 0; });
    return stamped;
  }
  uint64_t DurablyStamped() {
    const auto image = Image();
    uint64_t stamped = 0;
    ForEachSlot([&](const HeapSlot* slot) { stamped += BeginIn(image, slot) != 0; });
    return stamped;
  }
  uint64_t DurableBegin(const HeapSlot* slot) { return BeginIn(Image(), slot); }
  // Of the tuple of a key's newest version.
  uint64_t DurableValue(Key key) { return WordIn(Image(), VersionsOf(key).newest.load()->tuple()); }

  RowVersions& VersionsOf(Key key) { return h_.table().versions_of(h_.table().Find(key)); }
  // Slots that are not free.
  uint64_t Taken() {
    const size_t bytes = h_.table().versions()->slot_bytes();
    return h_.heap().used_bytes() / bytes - h_.table().versions()->free_slots();
  }

  // A tombstone that hides nothing is freed, and its row unlinked, once its delete is durable.
  void TestThatATombstoneIsKeptUntilItsDeleteIsDurable() {
    h_.log().SetDurableUntil(Timestamp(1));
    h_.Run(0, [&](TestContext& ctx) {
      const Tuple tuple{9, {}};
      EXPECT_EQ(ctx.Insert(h_.table(), 9, std::as_bytes(std::span(&tuple, 1))), Outcome::kOk);
      return ctx.Delete(h_.table(), 9);
    });
    h_.Sweep(0);
    ASSERT_NE(h_.table().Find(9), nullptr);
    EXPECT_EQ(VersionsOf(9).slots.load(), 1u);
    h_.log().SetDurableUntil(Timestamp(1000));
    h_.Sweep(0);
    EXPECT_EQ(h_.table().Find(9), nullptr);
  }

  Engine h_{EngineOptions{.heap_bytes = 1 << 20}};

 private:
  auto Image() { return h_.files().CrashImage(FaultyFileSystem::Crash::kDurableOnly).files.at("heap.pm"); }
  uint64_t WordIn(const auto& image, const std::byte* at) {
    uint64_t word = 0;
    const auto offset = static_cast<uint64_t>(at - h_.heap().memory().bytes().data());
    image.Read(offset, std::as_writable_bytes(std::span(&word, 1)));
    return word;
  }
  uint64_t BeginIn(const auto& image, const HeapSlot* slot) {
    return WordIn(image, reinterpret_cast<const std::byte*>(slot));
  }
  void ForEachSlot(auto&& visit) {
    for (uint32_t extent = 0; extent < h_.heap().extent_count(); ++extent) {
      if (h_.heap().directory()[extent].load() == 0) continue;
      const size_t bytes = h_.table().versions()->slot_bytes();
      for (size_t i = 0; i < h_.heap().extent_bytes() / bytes; ++i) visit(h_.heap().SlotAt(extent, i, bytes));
    }
  }
};

}  // namespace dbx::testing
