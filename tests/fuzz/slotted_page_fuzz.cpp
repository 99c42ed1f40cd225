// Images of pages: whatever passes WhyInvalid can be read and changed within the page. The input is where bytes go, and
// the bytes, on top of a page of twenty rows.
#include <memory>

#include "multi_master/page/slotted_page.h"
#include "tests/fuzz/fuzz.h"
#include "tests/multi_master/reference/page_model.h"

namespace dbx::fuzz {
namespace {

constexpr mm::PageId kPage{7};

std::vector<std::byte> Cell(Key key, size_t image_bytes) {
  const std::vector<std::byte> image(image_bytes, std::byte{1});
  std::vector<std::byte> cell;
  mm::EncodeRow({key, {mm::TxnName(), true, image}, false, {}}, cell);
  return cell;
}

void Use(mm::SlottedPage& page) {
  const mm::reference::ModelPage model = mm::reference::ParsePage(page.bytes());
  Require(model.rows.size() + model.children.size() == page.slots(), "the reference sees other slots");
  if (!page.is_leaf()) {
    for (uint32_t slot = 0; slot < page.slots(); ++slot) Require(page.ChildAt(slot) != mm::PageId(), "no child");
    return;
  }
  for (uint32_t slot = 0; slot < page.slots(); ++slot) page.RowAt(slot);
  const uint32_t slot = page.LowerBound(77);
  if (!page.IsBelowHighKey(77)) return;
  if (slot < page.slots() && page.KeyAt(slot) == 77) {
    page.Replace(slot, Cell(77, 1500));
  } else {
    page.Insert(slot, Cell(77, 1500));
  }
  Require(page.WhyInvalid(kPage) == nullptr, "a valid page became another one");
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  using namespace dbx::fuzz;
  auto page = std::make_unique<mm::SlottedPage>();
  page->Format(kPage, mm::TreeId(3), 0, mm::PageId(9), 1000);
  for (uint32_t i = 0; i < 20; ++i) Require(page->Insert(i, Cell(10 * i, 5 + i)), "no room");
  Input in(data, size);
  while (!in.empty()) {
    const auto at = in.Take<uint16_t>();
    page->bytes()[at % mm::kPageBytes] = in.Take<std::byte>();
  }
  if (page->WhyInvalid(kPage) == nullptr) Use(*page);
  return 0;
}
