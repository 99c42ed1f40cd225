// Pages at fixed addresses: their geometry, their words, the images of their slots, and the arenas that take them.
#include "storage/heap/page_space.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "storage/database.h"
#include "storage/tuple.h"

namespace dbx {
namespace {

PageShape ShapeOf(size_t tuple_bytes, size_t meta_bytes, uint32_t rows_per_page = 0, size_t alignment = 16) {
  const size_t offset = sizeof(Row) + meta_bytes;
  return {.row_bytes = (offset + tuple_bytes + alignment - 1) / alignment * alignment,
          .tuple_offset = offset,
          .tuple_bytes = tuple_bytes,
          .alignment_bytes = alignment,
          .page_bytes_min = 16 << 10,
          .rows_per_page = rows_per_page};
}

void Put(PageSpace& pages, const PageSpace::Place& at, Key key, const std::string& tuple) {
  Row* const row = pages.RowAt(at);
  PageSpace::Latched page(pages, at.page);
  row->key = key;
  std::memcpy(pages.TupleOf(row), tuple.data(), tuple.size());
  page.SetPresent(at.slot, true);
}

std::vector<std::byte> ImagesOf(const PageSpace& pages, uint32_t page) {
  std::vector<std::byte> images(pages.PageImageBytes(), std::byte{0xee});
  pages.CopyImages(page, images.data());
  return images;
}

TEST(PageSpaceTest, WordsAndPresenceBitsTakeAtMostHalfAPercent) {
  CheckpointClock clock;
  for (const size_t tuple_bytes : {8, 100, 256, 672, 1000, 20000}) {
    for (const size_t meta_bytes : {0, 8, 128}) {
      for (const size_t alignment : {16, 64}) {
        PageSpace pages(ShapeOf(tuple_bytes, meta_bytes, 0, alignment), clock);
        pages.TakePages(1);
        const size_t bits_bytes = reinterpret_cast<uintptr_t>(pages.RowAt({0, 0})) % pages.page_bytes();
        EXPECT_LE((bits_bytes + sizeof(uint32_t)) * 200, pages.page_bytes())
            << tuple_bytes << " bytes of tuple, " << meta_bytes << " of metadata";
      }
    }
  }
}

TEST(PageSpaceTest, APlaceLeadsToItsRowAndBack) {
  CheckpointClock clock;
  for (const size_t tuple_bytes : {8, 100, 1000, 20000}) {
    for (const size_t alignment : {16, 64}) {
      PageSpace pages(ShapeOf(tuple_bytes, 8, 0, alignment), clock);
      ASSERT_EQ(pages.TakePages(3), 0u);
      EXPECT_GE(pages.rows_per_page(), 4u);
      EXPECT_GE(pages.page_bytes(), size_t{16} << 10);
      for (uint32_t page = 0; page < 3; ++page) {
        for (uint32_t slot = 0; slot < pages.rows_per_page(); ++slot) {
          const PageSpace::Place at = pages.PlaceOf(pages.RowAt({page, slot}));
          ASSERT_EQ(at.page, page);
          ASSERT_EQ(at.slot, slot);
          ASSERT_EQ(reinterpret_cast<uintptr_t>(pages.RowAt(at)) % alignment, 0u);
        }
      }
    }
  }
}

TEST(PageSpaceTest, AGivenNumberOfRowsPerPageIsKeptWhateverTheRowsHoldBesides) {
  CheckpointClock clock;
  const PageSpace narrow(ShapeOf(100, 8), clock);
  const PageSpace wide(ShapeOf(100, 16 * 8, narrow.rows_per_page()), clock);
  EXPECT_EQ(wide.rows_per_page(), narrow.rows_per_page());
  EXPECT_GT(wide.page_bytes(), narrow.page_bytes());
  EXPECT_EQ(wide.PageImageBytes(), narrow.PageImageBytes());
}

TEST(PageSpaceTest, ASlotsImageIsZerosUnlessItIsPresent) {
  CheckpointClock clock;
  PageSpace pages(ShapeOf(13, 8), clock);
  pages.TakePages(1);
  Put(pages, {0, 2}, 7, "thirteen byte");
  Row* const absent = pages.RowAt({0, 3});
  absent->key = 99;  // an absent row keeps its key
  absent->control.store(Row::kAbsent);
  std::memset(absent->meta(), 0x55, 8);
  const std::vector<std::byte> images = ImagesOf(pages, 0);
  std::vector<std::byte> expected(pages.PageImageBytes());
  expected[0] = std::byte{1 << 2};
  std::byte* const image = expected.data() + pages.BitsImageBytes() + 2 * pages.ImageBytes();
  const Key key = 7;
  std::memcpy(image, &key, sizeof key);
  std::memcpy(image + sizeof key, "thirteen byte", 13);
  EXPECT_EQ(images, expected);
}

TEST(PageSpaceTest, ImagesThatArePutOrCombinedGiveTheSamePage) {
  CheckpointClock clock;
  PageSpace pages(ShapeOf(24, 8), clock), put(ShapeOf(24, 64, pages.rows_per_page()), clock),
      combined(ShapeOf(24, 0, pages.rows_per_page()), clock);
  for (PageSpace* space : {&pages, &put, &combined}) space->TakePages(2);
  Put(pages, {1, 0}, 3, "abcdefghijklmnopqrstuvwx");
  Put(pages, {1, 9}, 4, "the last of this page");
  const std::vector<std::byte> images = ImagesOf(pages, 1);
  put.PutImages(1, images.data());
  combined.XorImages(1, images.data());
  EXPECT_EQ(ImagesOf(put, 1), images);
  EXPECT_EQ(ImagesOf(combined, 1), images);
  combined.XorImages(1, images.data());
  EXPECT_EQ(ImagesOf(combined, 1), std::vector<std::byte>(pages.PageImageBytes()));
}

TEST(PageSpaceTest, ANumberIsThatOfTheLastCheckpointThatReachedThePage) {
  CheckpointClock clock;
  PageSpace pages(ShapeOf(24, 8), clock);
  pages.TakePages(2);
  const auto number_of = [&](uint32_t page) { return PageSpace::Latched(pages, page).number(); };
  EXPECT_EQ(number_of(0), 0u);
  for (uint32_t checkpoint = 1; checkpoint < 4; ++checkpoint) {
    uint32_t counted = 0;
    EXPECT_EQ(clock.Begin(), checkpoint);
    EXPECT_TRUE(clock.is_active());
    // One that is added before the number changes is counted.
    EXPECT_EQ(number_of(pages.TakePages(1)), checkpoint - 1);
    clock.Advance([&] { counted = pages.page_count(); });
    EXPECT_EQ(counted, 2 * checkpoint + 1);
    EXPECT_EQ(number_of(0), checkpoint - 1);
    // One that is added during the checkpoint is not among those that it counted.
    const uint32_t added = pages.TakePages(1);
    EXPECT_EQ(number_of(added), checkpoint);
    for (uint32_t page = 0; page < counted; ++page) PageSpace::Latched(pages, page).SetNumber(checkpoint);
    for (uint32_t page = 0; page <= added; ++page) EXPECT_EQ(number_of(page), checkpoint);
    clock.End();
    EXPECT_FALSE(clock.is_active());
  }
}

TEST(PageSpaceTest, APageIsBornDirtyForBothCopies) {
  CheckpointClock clock;
  PageSpace pages(ShapeOf(24, 8), clock);
  pages.TakePages(1);
  {
    PageSpace::Latched page(pages, 0);
    EXPECT_TRUE(page.IsDirty(0));
    EXPECT_TRUE(page.IsDirty(1));
    page.SetClean(0);
  }
  PageSpace::Latched page(pages, 0);
  EXPECT_FALSE(page.IsDirty(0));
  EXPECT_TRUE(page.IsDirty(1));
  page.SetDirty();
  EXPECT_TRUE(page.IsDirty(0));
}

TEST(PageSpaceTest, ALatchExcludesOthers) {
  CheckpointClock clock;
  PageSpace pages(ShapeOf(8, 8), clock);
  pages.TakePages(1);
  constexpr int kRounds = 20000;
  uint64_t counter = 0;
  const auto add = [&] {
    for (int i = 0; i < kRounds; ++i) {
      const PageSpace::Latched page(pages, 0);
      ++counter;
    }
  };
  std::thread other(add);
  add();
  other.join();
  EXPECT_EQ(counter, uint64_t{2} * kRounds);
}

Schema TwoWords(bool ordered) {
  Schema schema;
  schema.name = "T";
  schema.tuple_bytes = 16;
  schema.expected_rows = 1000;
  schema.ordered = ordered;
  return schema;
}

TEST(PageSpaceTest, TheRowsOfAPagedDatabaseLieInPagesAndReturnByAdoption) {
  for (const bool ordered : {false, true}) {
    Database database({.log_bytes = 8}, 2);
    database.PageEveryTable(1024);
    Table& table = database.CreateTable(TwoWords(ordered));
    for (Key key = 0; key < 300; ++key) {
      const uint64_t tuple[] = {key, ~key};
      table.LoadRow(WorkerId(key % 2), key, std::as_bytes(std::span(tuple)));
    }
    PageSpace& pages = *table.pages();
    Database other({}, 1);
    other.PageEveryTable(256, {pages.rows_per_page()});
    Table& adopted = other.CreateTable(TwoWords(ordered));
    adopted.pages()->GrowTo(pages.page_count());
    size_t free_slots = 0;
    for (uint32_t page = 0; page < pages.page_count(); ++page) {
      adopted.pages()->PutImages(page, ImagesOf(pages, page).data());
      for (uint32_t slot = 0; slot < pages.rows_per_page(); ++slot) {
        Row* const row = adopted.pages()->RowAt({page, slot});
        const bool present = adopted.pages()->IsPresent({page, slot});
        free_slots += !present;
        present ? adopted.AdoptRow(WorkerId(0), row) : adopted.AdoptFreeSlot(WorkerId(0), row);
      }
    }
    EXPECT_EQ(adopted.row_count(), 300u);
    for (Key key = 0; key < 300; ++key) {
      const Row* const row = adopted.Find(key);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(TupleReader(adopted.tuple(row)).GetAt<uint64_t>(8), ~key);
    }
    // New rows fill the free slots before a new page is taken.
    const uint32_t count = adopted.pages()->page_count();
    for (Key key = 1000; key < 1000 + free_slots; ++key) {
      const uint64_t tuple[] = {key, ~key};
      adopted.LoadRow(WorkerId(0), key, std::as_bytes(std::span(tuple)));
    }
    EXPECT_EQ(adopted.pages()->page_count(), count);
  }
}

TEST(PageSpaceTest, AKeyInTwoSlotsIsDamage) {
  Database database({}, 1);
  database.PageEveryTable(1024);
  Table& table = database.CreateTable(TwoWords(false));
  table.pages()->TakePages(1);
  for (uint32_t slot : {0, 1}) table.pages()->RowAt({0, slot})->key = 5;
  table.AdoptRow(WorkerId(0), table.pages()->RowAt({0, 0}));
  EXPECT_THROW(table.AdoptRow(WorkerId(0), table.pages()->RowAt({0, 1})), Error);
}

TEST(PageSpaceTest, PagesAreFaultedInAheadWithoutBeingAdded) {
  Database database({}, 2);
  database.PageEveryTable(1024);
  Table& table = database.CreateTable(TwoWords(false));
  for (const uint32_t worker : {0, 1}) table.PrefaultRows(WorkerId(worker), 100);
  EXPECT_EQ(table.pages()->page_count(), 0u);
  const uint64_t tuple[] = {1, 2};
  for (Key key = 0; key < 100; ++key) table.LoadRow(WorkerId(0), key, std::as_bytes(std::span(tuple)));
  EXPECT_EQ(table.row_count(), 100u);
}

}  // namespace
}  // namespace dbx
