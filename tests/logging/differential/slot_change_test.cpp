// Changes of slots: images and their runs against a byte-wise oracle, and what does not fit a page.
#include "logging/differential/slot_change.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/micro/tuple_pages.h"

namespace dbx {
namespace {

using Bytes = std::vector<std::byte>;

// A page space of tuples of any size.
struct Pages : TuplePages {
  explicit Pages(size_t tuple_bytes) : TuplePages(tuple_bytes, 2) {}
  const char* Apply(const SlotChange& change) {
    if (const char* fault = FaultOf(change, space)) return fault;
    PageSpace::Latched latched(space, change.page);
    ApplyChange(change, space, latched);
    return nullptr;
  }
};

Bytes Padded(Bytes bytes) {
  bytes.resize(RoundedUpToWords(bytes.size()));
  return bytes;
}

// The runs of a tuple, one byte after the other: words that changed, and single words between two of them.
std::vector<std::pair<size_t, Bytes>> NaiveRuns(Bytes delta) {
  const size_t words = (delta.size() + 3) / 4;
  delta.resize(words * 4);
  const auto changed = [&](size_t word) {
    for (size_t i = 0; i < 4; ++i) {
      if (delta[word * 4 + i] != std::byte{0}) return true;
    }
    return false;
  };
  std::vector<std::pair<size_t, Bytes>> runs;
  for (size_t word = 0; word < words; ++word) {
    if (!changed(word)) continue;
    const Bytes bytes(delta.begin() + word * 4, delta.begin() + word * 4 + 4);
    const bool adjoins = !runs.empty() && word * 4 <= runs.back().first + runs.back().second.size() + 4;
    if (!adjoins) runs.push_back({word * 4, {}});
    Bytes& run = runs.back().second;
    run.resize(word * 4 - runs.back().first);
    run.insert(run.end(), bytes.begin(), bytes.end());
  }
  return runs;
}

Bytes RandomDelta(size_t bytes, int percent, std::mt19937& random) {
  Bytes delta(bytes);
  for (std::byte& byte : delta) {
    if (static_cast<int>(random() % 100) < percent) byte = static_cast<std::byte>(random());
  }
  return delta;
}

void CompareRuns(const Bytes& delta) {
  const auto expected = NaiveRuns(delta);
  size_t bytes = 0;
  for (const auto& [at, run] : expected) bytes += 4 + run.size();
  Bytes encoded(RoundedUpToWords(delta.size()), std::byte{0xEE});
  const auto used = EncodeRuns(delta, encoded.data());
  const bool is_shorter = RoundedUpToWords(bytes) < RoundedUpToWords(delta.size());
  ASSERT_EQ(used.has_value(), is_shorter);
  if (!used) return;
  ASSERT_EQ(*used, bytes);
  encoded.resize(*used);
  ChangeRuns runs(encoded);
  for (const auto& [at, run] : expected) {
    ASSERT_TRUE(runs.Next());
    ASSERT_EQ(runs.offset(), at);
    ASSERT_EQ(Bytes(runs.bytes().begin(), runs.bytes().end()), run);
  }
  ASSERT_FALSE(runs.Next());
  ASSERT_EQ(runs.fault(), nullptr);
}

TEST(SlotChange, RunsAreThoseOfABytewiseSearch) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const size_t bytes = 1 + random() % (i % 8 == 0 ? 1200 : 70);
    SCOPED_TRACE(testing::Message() << "case " << i << ", " << bytes << " bytes");
    CompareRuns(RandomDelta(bytes, i % 40, random));
    if (HasFatalFailure()) return;
  }
}

TEST(SlotChange, ASingleWordBetweenTwoRunsIsPartOfThem) {
  Bytes delta(64);
  delta[0] = delta[8] = delta[20] = std::byte{1};
  Bytes encoded(64);
  ASSERT_EQ(EncodeRuns(delta, encoded.data()), std::optional<size_t>(4 + 12 + 4 + 4));
}

TEST(SlotChange, NoChangeHasNoRuns) {
  const Bytes delta(64);
  Bytes encoded(64);
  EXPECT_EQ(EncodeRuns(delta, encoded.data()), std::optional<size_t>(0));
  EXPECT_EQ(EncodeRuns({}, encoded.data()), std::nullopt);
}

TEST(SlotChange, TuplesOfMoreWordsThanARunCanNameAreLoggedWhole) {
  Bytes delta(4 * 65536), encoded(delta.size());
  delta.back() = std::byte{1};
  EXPECT_EQ(EncodeRuns(delta, encoded.data()), std::optional<size_t>(8));
  delta.resize(delta.size() + 1);
  EXPECT_EQ(EncodeRuns(delta, encoded.data()), std::nullopt);
}

TEST(SlotChange, BothImagesOfAChangeHaveTheEffectOfABytewiseXor) {
  std::mt19937 random(11);
  for (const size_t tuple_bytes : {1, 3, 4, 6, 8, 13, 32, 100, 101, 102, 103}) {
    Pages whole(tuple_bytes), runs(tuple_bytes);
    Bytes oracle(tuple_bytes);
    for (int i = 0; i < 100; ++i) {
      const Bytes delta = RandomDelta(tuple_bytes, i % 30, random);
      for (size_t at = 0; at < tuple_bytes; ++at) oracle[at] ^= delta[at];
      SlotChange change{.page = 1, .slot = 2};
      const Bytes image = Padded(delta);
      change.image = image;
      ASSERT_EQ(whole.Apply(change), nullptr);
      Bytes encoded(image.size());
      if (const auto used = EncodeRuns(delta, encoded.data())) {
        encoded.resize(*used);
        encoded = Padded(encoded);
        change.image = encoded;
        change.flags = format::kChangeRuns;
      }
      ASSERT_EQ(runs.Apply(change), nullptr);
      for (Pages* pages : {&whole, &runs}) {
        const std::byte* const tuple = pages->space.TupleOf(pages->space.RowAt({1, 2}));
        ASSERT_EQ(Bytes(tuple, tuple + tuple_bytes), oracle) << tuple_bytes << " bytes, change " << i;
      }
    }
  }
}

TEST(SlotChange, AChangeOfPresenceFlipsTheBitAndCombinesTheKey) {
  Pages pages(8);
  const Bytes tuple(8, std::byte{5});
  SlotChange change{.page = 1, .slot = 3, .flags = format::kChangePresence, .key = 77, .image = tuple};
  ASSERT_EQ(pages.Apply(change), nullptr);
  Row* const row = pages.space.RowAt({1, 3});
  EXPECT_TRUE(pages.space.IsPresent({1, 3}));
  EXPECT_EQ(row->key, 77u);
  ASSERT_EQ(pages.Apply(change), nullptr);
  EXPECT_FALSE(pages.space.IsPresent({1, 3}));
  EXPECT_EQ(row->key, 0u);
  EXPECT_EQ(*pages.space.TupleOf(row), std::byte{0});
}

TEST(SlotChange, AnUpdateLeavesPresenceAndKeyAlone) {
  Pages pages(8);
  const Bytes tuple(8, std::byte{5});
  ASSERT_EQ(pages.Apply({.page = 0, .slot = 1, .flags = format::kChangePresence, .key = 9, .image = tuple}), nullptr);
  ASSERT_EQ(pages.Apply({.page = 0, .slot = 1, .image = tuple}), nullptr);
  EXPECT_TRUE(pages.space.IsPresent({0, 1}));
  EXPECT_EQ(pages.space.RowAt({0, 1})->key, 9u);
  EXPECT_FALSE(pages.space.IsPresent({0, 0}));
  EXPECT_FALSE(pages.space.IsPresent({0, 2}));
}

// The images of a change, each padded.
Bytes Images(Bytes before, Bytes after) {
  before = Padded(before);
  after = Padded(after);
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

TEST(SlotChange, AnImageIsPutWhateverTheSlotHolds) {
  Pages pages(10);
  const PageSpace::Place at{1, 2};
  const Bytes zeros(10), old(10, std::byte{3}), next(10, std::byte{5});
  const auto put = [&](uint16_t flags, const Bytes& images, Image image) {
    const auto all = static_cast<uint16_t>(flags | format::kChangeImages);
    const SlotChange change{.page = 1, .slot = 2, .flags = all, .key = 77, .image = images};
    ASSERT_EQ(FaultOf(change, pages.space), nullptr);
    PageSpace::Latched latched(pages.space, 1);
    PutImage(change, image, pages.space, latched);
  };
  const auto holds = [&](const Bytes& tuple, bool present) {
    Row* const row = pages.space.RowAt(at);
    const std::byte* const is = pages.space.TupleOf(row);
    return Bytes(is, is + 10) == tuple && pages.space.IsPresent(at) == present && row->key == (present ? 77u : 0u);
  };
  constexpr uint16_t kInsert = format::kChangePresence, kErase = format::kChangePresence | format::kChangeErases;
  for (int twice = 0; twice < 2; ++twice) {
    put(kInsert, Images(zeros, old), Image::kAfter);
    EXPECT_TRUE(holds(old, true));
  }
  put(0, Images(old, next), Image::kAfter);
  EXPECT_TRUE(holds(next, true));
  put(kErase, Images(next, zeros), Image::kAfter);
  EXPECT_TRUE(holds(zeros, false));
  put(kErase, Images(next, zeros), Image::kBefore);
  EXPECT_TRUE(holds(next, true));
  put(0, Images(old, next), Image::kBefore);
  EXPECT_TRUE(holds(old, true));
  put(kInsert, Images(zeros, old), Image::kBefore);
  EXPECT_TRUE(holds(zeros, false));
}

std::string Fault(size_t tuple_bytes, const SlotChange& change) {
  Pages pages(tuple_bytes);
  const char* const fault = FaultOf(change, pages.space);
  return fault == nullptr ? "" : fault;
}

TEST(SlotChange, WhatDoesNotFitItsPageIsNamed) {
  const uint32_t rows = Pages(12).space.rows_per_page();
  const Bytes tuple(16);
  EXPECT_EQ(Fault(12, {.slot = rows - 1, .image = tuple}), "");
  EXPECT_EQ(Fault(12, {.slot = rows, .image = tuple}), "slot beyond the end of its page");
  EXPECT_EQ(Fault(12, {.image = Bytes(8)}), "image of another length than its table's tuples");
  EXPECT_EQ(Fault(12, {.image = Bytes(24)}), "image of another length than its table's tuples");
  Bytes padded = tuple;
  padded[12] = std::byte{1};
  EXPECT_EQ(Fault(12, {.image = padded}), "padding of an image that is not zero");
}

TEST(SlotChange, ImagesThatDoNotFitTheirTupleAreNamed) {
  const auto fault = [](uint16_t flags, const Bytes& images) {
    return Fault(10, {.flags = static_cast<uint16_t>(flags | format::kChangeImages), .image = images});
  };
  const Bytes zeros(10), tuple(10, std::byte{1}), longer(12, std::byte{1});
  constexpr uint16_t kInsert = format::kChangePresence, kErase = format::kChangePresence | format::kChangeErases;
  EXPECT_EQ(fault(0, Images(tuple, tuple)), "");
  EXPECT_EQ(fault(0, tuple), "images of another length than its table's tuples");
  EXPECT_EQ(fault(0, Images(longer, tuple)), "padding of an image that is not zero");
  EXPECT_EQ(fault(0, Images(tuple, longer)), "padding of an image that is not zero");
  EXPECT_EQ(fault(kInsert, Images(zeros, tuple)), "");
  EXPECT_EQ(fault(kErase, Images(tuple, zeros)), "");
  EXPECT_EQ(fault(kInsert, Images(tuple, zeros)), "image of an absent tuple that is not zero");
  EXPECT_EQ(fault(kErase, Images(zeros, tuple)), "image of an absent tuple that is not zero");
}

Bytes OneRun(uint16_t word, uint16_t words, std::byte last = {}) {
  const format::ChangeRun run{word, words};
  Bytes image(sizeof run + words * size_t{4});
  std::memcpy(image.data(), &run, sizeof run);
  image.back() = last;
  return Padded(image);
}

TEST(SlotChange, RunsThatDoNotFitTheirTupleAreNamed) {
  const auto fault = [](const Bytes& image) { return Fault(10, {.flags = format::kChangeRuns, .image = image}); };
  EXPECT_EQ(fault(OneRun(0, 3)), "");
  EXPECT_EQ(fault(OneRun(2, 1)), "");  // the last word, of which two bytes are the tuple's
  EXPECT_EQ(fault(OneRun(2, 2)), "run beyond the end of its tuple");
  EXPECT_EQ(fault(OneRun(3, 1)), "run beyond the end of its tuple");
  EXPECT_EQ(fault(OneRun(65535, 1)), "run beyond the end of its tuple");
  EXPECT_EQ(fault(OneRun(2, 1, std::byte{1})), "padding of a run that is not zero");
  EXPECT_EQ(fault(Bytes(8, std::byte{0})), "run without words");
}

TEST(SlotChange, ARecordIsAsLongAsItsTupleInWords) {
  EXPECT_EQ(ChangeBytes(256, false, DiffMethod::kDl1p), 304u);
  EXPECT_EQ(ChangeBytes(256, true, DiffMethod::kDl2p), 312u);
  EXPECT_EQ(ChangeBytes(10, true, DiffMethod::kDl1p), 72u);
  EXPECT_EQ(ChangeBytes(256, true, DiffMethod::kPl2p), 568u);
  EXPECT_EQ(ChangeBytes(10, true, DiffMethod::kPl2p), 88u);
}

}  // namespace
}  // namespace dbx
