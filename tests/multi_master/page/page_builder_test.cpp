// The pages of a load.
#include "multi_master/page/page_builder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "tests/multi_master/page/memory_source.h"
#include "tests/multi_master/reference/tree_checker.h"

namespace dbx::mm {
namespace {

constexpr TreeId kTree{4};
constexpr PageId kRoot{1};

using Pages = std::map<PageId, SlottedPage>;

std::string ImageOf(Key key) { return "row " + std::to_string(key); }

Pages Build(uint64_t rows, size_t page_bytes_max = 512, PageId* next = nullptr) {
  Pages pages;
  PageBuilder builder({kTree, kRoot, PageId(10), page_bytes_max}, [&](const SlottedPage& page) {
    EXPECT_EQ(page.WhyInvalid(page.id()), nullptr);
    EXPECT_LE(page.bytes_used(), page_bytes_max);
    EXPECT_TRUE(pages.emplace(page.id(), page).second) << "a page twice";
  });
  for (uint64_t i = 0; i < rows; ++i) {
    const std::string image = ImageOf(3 * i);
    builder.Add(3 * i, std::as_bytes(std::span(image)));
  }
  const PageId end = builder.Finish();
  if (next != nullptr) *next = end;
  return pages;
}

reference::CheckedTree Check(const Pages& pages) {
  reference::ModelPages model;
  for (const auto& [id, page] : pages) model[id.value()] = reference::ParsePage(page.bytes());
  return reference::CheckTree(model, kTree.value(), kRoot.value());
}

TEST(PageBuilderTest, TreesOfAllHeightsHoldTheirRows) {
  for (const uint64_t rows : {0, 1, 7, 8, 50, 200, 201, 10000}) {
    SCOPED_TRACE(rows);
    const Pages pages = Build(rows);
    const reference::CheckedTree tree = Check(pages);
    EXPECT_EQ(tree.problems, std::vector<std::string>());
    EXPECT_EQ(tree.pages, pages.size());
    EXPECT_EQ(tree.unposted, 0u);
    ASSERT_EQ(tree.rows.size(), rows);
    for (const auto& [key, row] : tree.rows) {
      EXPECT_EQ(row.current, (reference::ModelVersion{{}, true, ImageOf(key)}));
      EXPECT_FALSE(row.has_before);
    }
  }
  EXPECT_EQ(Build(10000).at(kRoot).level(), 3);
}

TEST(PageBuilderTest, TheSameRowsGiveTheSamePages) {
  const Pages first = Build(1000), second = Build(1000);
  ASSERT_EQ(first.size(), second.size());
  for (const auto& [id, page] : first) {
    EXPECT_EQ(std::memcmp(page.bytes().data(), second.at(id).bytes().data(), kPageBytes), 0);
    EXPECT_EQ(page.lsn(), PageLsn());
  }
}

TEST(PageBuilderTest, IdsAreNumberedWithoutGaps) {
  PageId next;
  const Pages pages = Build(1000, 512, &next);
  EXPECT_EQ(next.value(), 10 + pages.size() - 1) << "all but the root";
  EXPECT_EQ(std::prev(pages.end())->first.value(), next.value() - 1);
  Build(3, 512, &next);
  EXPECT_EQ(next, PageId(10)) << "a root alone";
}

TEST(PageBuilderTest, PagesAreFilled) {
  const Pages pages = Build(3000, kPageBytes);
  size_t full = 0;
  for (const auto& [id, page] : pages) full += page.bytes_free() < 100;
  EXPECT_GE(full + 2, pages.size()) << "but the root and the last leaf";
}

}  // namespace
}  // namespace dbx::mm
