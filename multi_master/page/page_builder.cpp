#include "multi_master/page/page_builder.h"

#include "base/check.h"

namespace dbx::mm {

PageBuilder::PageBuilder(const Options& options, Sink sink)
    : options_(options), sink_(std::move(sink)), next_(options.first) {
  BeginPage(0, 0);
}

void PageBuilder::Add(Key key, std::span<const std::byte> image) {
  CHECK(page_.slots() == 0 || page_.KeyAt(page_.slots() - 1) < key);
  std::vector<std::byte> cell;
  EncodeRow({key, {TxnName(), true, image}, false, {}}, cell);
  AddCell(key, cell);
}

PageId PageBuilder::Finish() {
  // A level of one page is the root.
  while (!children_.empty()) {
    EmitPage();
    const Children below = std::exchange(children_, {});
    BeginPage(static_cast<uint8_t>(page_.level() + 1), 0);
    for (const auto& [separator, child] : below) {
      std::vector<std::byte> cell;
      EncodeChild(separator, child, cell);
      AddCell(separator, cell);
    }
  }
  EmitRoot();
  return next_;
}

void PageBuilder::BeginPage(uint8_t level, Key lowest) {
  CHECK(next_ != options_.root);
  page_.Format(next_, options_.tree, level, PageId(), 0);
  lowest_ = lowest;
}

void PageBuilder::AddCell(Key key, std::span<const std::byte> cell) {
  if (page_.bytes_used() + cell.size() + kSlotBytes > options_.page_bytes_max) {
    page_.SplitAt(page_.slots(), PageId(next_.value() + 1), key);
    EmitPage();
    BeginPage(page_.level(), key);
  }
  CHECK(page_.Insert(page_.slots(), cell));
}

void PageBuilder::EmitPage() {
  sink_(page_);
  children_.emplace_back(lowest_, page_.id());
  next_ = PageId(next_.value() + 1);
}

void PageBuilder::EmitRoot() {
  page_.Renumber(options_.root);
  sink_(page_);
}

}  // namespace dbx::mm
