// Page images: rows by key under any sequence of changes, and no image from outside that is trusted without a look.
#include "multi_master/page/slotted_page.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "base/random.h"
#include "tests/multi_master/reference/page_model.h"

namespace dbx::mm {
namespace {

constexpr PageId kPage{7};
constexpr TreeId kTree{3};

std::span<const std::byte> AsBytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::unique_ptr<SlottedPage> Leaf(PageId right = PageId(), Key high_key = 0) {
  auto page = std::make_unique<SlottedPage>();
  page->Format(kPage, kTree, 0, right, high_key);
  return page;
}

std::vector<std::byte> Cell(Key key, const std::string& image) {
  std::vector<std::byte> cell;
  EncodeRow({key, {TxnName(), true, AsBytes(image)}, false, {}}, cell);
  return cell;
}

std::string TextAt(const SlottedPage& page, uint32_t slot) {
  const std::span<const std::byte> image = page.RowAt(slot).current.image;
  return {reinterpret_cast<const char*>(image.data()), image.size()};
}

TEST(SlottedPageTest, ARowIsReadAsItWasWritten) {
  const std::string now = "now", before = "before";
  const TxnName writer{MasterId(2), ClusterEpoch(5), 9}, earlier{MasterId(15), ClusterEpoch(4), UINT64_MAX};
  std::vector<std::byte> cell;
  EncodeRow({42, {writer, true, AsBytes(now)}, true, {earlier, true, AsBytes(before)}}, cell);
  const auto page = Leaf();
  ASSERT_TRUE(page->Insert(0, cell));
  const RowView row = page->RowAt(*page->Find(42));
  EXPECT_EQ(row.key, 42u);
  EXPECT_EQ(row.current.writer, writer);
  EXPECT_EQ(row.before.writer, earlier);
  EXPECT_TRUE(row.has_before && row.before.present && row.current.present);
  EXPECT_EQ(std::memcmp(row.before.image.data(), "before", 6), 0);
  EXPECT_EQ(TextAt(*page, 0), "now");
}

TEST(SlottedPageTest, FourOfTheLargestRowsFit) {
  const auto page = Leaf();
  const std::string image(kImageBytesMax, 'x');
  std::vector<std::byte> cell;
  for (Key key = 0; key < 4; ++key) {
    cell.clear();
    EncodeRow({key, {TxnName(), true, AsBytes(image)}, true, {TxnName(), true, AsBytes(image)}}, cell);
    EXPECT_TRUE(page->Insert(static_cast<uint32_t>(key), cell)) << key;
  }
  EXPECT_FALSE(page->Insert(4, Cell(5, std::string(100, 'y'))));
  EXPECT_EQ(page->WhyInvalid(kPage), nullptr);
}

TEST(SlottedPageTest, ASplitDropsTheUpperRowsAndLinksToTheRight) {
  const auto page = Leaf();
  for (uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(page->Insert(i, Cell(10 * i, "row")));
  page->SplitAt(page->LowerBound(45), PageId(8), 45);
  EXPECT_EQ(page->slots(), 5u);
  EXPECT_TRUE(page->IsBelowHighKey(44));
  EXPECT_FALSE(page->IsBelowHighKey(45));
  EXPECT_EQ(page->right(), PageId(8));
  EXPECT_EQ(page->WhyInvalid(kPage), nullptr);
}

// Rows of all sizes come, change and go until the page is full; compaction keeps them all.
void RunRandomChanges(uint64_t seed) {
  Random random(seed);
  const auto page = Leaf();
  std::map<Key, std::string> expected;
  size_t refused = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    const Key key = random.Below(120);
    const std::string image(random.Below(random.Chance(0.1) ? kImageBytesMax : 200), static_cast<char>('a' + i % 26));
    const std::optional<uint32_t> slot = page->Find(key);
    ASSERT_EQ(slot.has_value(), expected.contains(key));
    if (slot && random.Chance(0.3)) {
      page->Remove(*slot);
      expected.erase(key);
    } else if (slot ? page->Replace(*slot, Cell(key, image)) : page->Insert(page->LowerBound(key), Cell(key, image))) {
      expected[key] = image;
    } else {
      ++refused;
      const size_t growth = image.size() + kRowCellBytes - (slot ? page->CellAt(*slot).size() : 0);
      ASSERT_GT(page->bytes_used() + growth + (slot ? 0 : kSlotBytes), kPageBytes) << "it had room";
    }
    const char* why = page->WhyInvalid(kPage);
    ASSERT_EQ(why, nullptr) << why;
  }
  EXPECT_GT(refused, 0u);
  ASSERT_EQ(page->slots(), expected.size());
  for (const auto& [key, image] : expected) ASSERT_EQ(TextAt(*page, *page->Find(key)), image);
  EXPECT_EQ(reference::ParsePage(page->bytes()).rows.size(), expected.size());
}

TEST(SlottedPageTest, RowsSurviveAnySequenceOfChanges) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RunRandomChanges(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// --- Images from outside ---

template <class T>
std::unique_ptr<SlottedPage> With(const SlottedPage& page, size_t offset, T value) {
  auto copy = std::make_unique<SlottedPage>(page);
  std::memcpy(copy->bytes().data() + offset, &value, sizeof value);
  return copy;
}

std::unique_ptr<SlottedPage> SampleLeaf() {
  auto page = Leaf(PageId(9), 1000);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_TRUE(page->Insert(i, Cell(10 * i, std::string(5 + i, 'r'))));
  page->set_lsn({MasterId(1), VsTime(77)});
  return page;
}

TEST(SlottedPageTest, EveryFieldOfTheHeaderIsChecked) {
  const auto page = SampleLeaf();
  ASSERT_EQ(page->WhyInvalid(kPage), nullptr);
  EXPECT_NE(page->WhyInvalid(PageId(8)), nullptr) << "the id";
  EXPECT_NE(SlottedPage().WhyInvalid(PageId(0)), nullptr) << "never formatted";
  EXPECT_NE(With(*page, offsetof(PageHeader, right), uint64_t{0})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, right), kPage.value())->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, high_key), uint64_t{190})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, lsn_time), kPageTimeEnd)->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, slots), uint16_t{21})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, slots), UINT16_MAX)->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, cells_begin), uint16_t{60})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, cells_begin), UINT16_MAX)->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, cell_bytes), uint16_t{1})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, level), kLevelsMax)->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, lsn_master), uint8_t{kMastersMax})->WhyInvalid(kPage), nullptr);
  EXPECT_NE(With(*page, offsetof(PageHeader, zero), uint32_t{1})->WhyInvalid(kPage), nullptr);
}

TEST(SlottedPageTest, SlotsAndCellsAreChecked) {
  const auto page = SampleLeaf();
  uint16_t first = 0, second = 0;
  std::memcpy(&first, page->bytes().data() + sizeof(PageHeader), 2);
  std::memcpy(&second, page->bytes().data() + sizeof(PageHeader) + 2, 2);
  const auto slot = [&](uint16_t offset) { return With(*page, sizeof(PageHeader), offset)->WhyInvalid(kPage); };
  EXPECT_NE(slot(second), nullptr) << "the same cell twice";
  EXPECT_NE(slot(static_cast<uint16_t>(kPageBytes)), nullptr);
  EXPECT_NE(slot(static_cast<uint16_t>(kPageBytes - 8)), nullptr) << "a cell beyond the page";
  EXPECT_NE(slot(50), nullptr) << "within the directory";
  EXPECT_NE(With(*page, first, uint64_t{500})->WhyInvalid(kPage), nullptr) << "keys do not ascend";
  EXPECT_NE(With(*page, first + 32u, UINT16_MAX)->WhyInvalid(kPage), nullptr) << "the image's length";
  EXPECT_NE(With(*page, first + 36u, uint8_t{kMastersMax})->WhyInvalid(kPage), nullptr) << "the writer";
  EXPECT_NE(With(*page, first + 38u, uint8_t{8})->WhyInvalid(kPage), nullptr) << "flags";
}

TEST(SlottedPageTest, CellsThatOverlapAreRefused) {
  // The second slot points into the image of the first row, where the bytes of a second row are.
  const std::vector<std::byte> inner = Cell(50, "inner");
  const std::string image(reinterpret_cast<const char*>(inner.data()), inner.size());
  const auto page = Leaf();
  ASSERT_TRUE(page->Insert(0, Cell(10, image)));
  ASSERT_TRUE(page->Insert(1, inner));
  ASSERT_EQ(page->WhyInvalid(kPage), nullptr);
  uint16_t first = 0;
  std::memcpy(&first, page->bytes().data() + sizeof(PageHeader), 2);
  const auto overlapping = With(*page, sizeof(PageHeader) + kSlotBytes, static_cast<uint16_t>(first + kRowCellBytes));
  ASSERT_NE(overlapping->WhyInvalid(kPage), nullptr);
  EXPECT_STREQ(overlapping->WhyInvalid(kPage), "two cells overlap");
}

// Whatever passes is safe to use: all accessors stay within the page (AddressSanitizer sees more here).
void Use(SlottedPage& page) {
  size_t bytes = 0;
  for (uint32_t slot = 0; slot < page.slots(); ++slot) {
    bytes += page.CellAt(slot).size();
    ASSERT_EQ(page.Find(page.KeyAt(slot)), slot);
    if (page.is_leaf()) bytes += page.RowAt(slot).current.image.size();
  }
  ASSERT_LE(bytes, 2 * kPageBytes);
  if (page.is_leaf() && page.IsBelowHighKey(123)) {
    const auto slot = page.Find(123);
    if (!slot) page.Insert(page.LowerBound(123), Cell(123, std::string(900, 'n')));
    ASSERT_EQ(page.WhyInvalid(kPage), nullptr);
  }
}

TEST(SlottedPageTest, DamagedImagesAreRefusedOrSafe) {
  const auto page = SampleLeaf();
  size_t refused = 0;
  Random random(11);
  for (uint32_t i = 0; i < 20'000; ++i) {
    auto copy = std::make_unique<SlottedPage>(*page);
    for (uint64_t n = random.Between(1, 4); n > 0; --n) {
      const uint64_t at = random.Chance(0.5) ? random.Below(100) : random.Between(kPageBytes - 1200, kPageBytes - 1);
      copy->bytes()[at] = std::byte{static_cast<uint8_t>(random.Next())};
    }
    if (copy->WhyInvalid(kPage) != nullptr) {
      ++refused;
    } else {
      Use(*copy);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 5'000u);
  EXPECT_LT(refused, 20'000u);
}

}  // namespace
}  // namespace dbx::mm
