// Bodies of PAGES records: what is decoded is what would be encoded; a change that is applied leaves a valid page, the
// same that the reference makes of it. The target makes the versions right, as a log's reader has checked them before.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "multi_master/page/page_change.h"
#include "tests/fuzz/fuzz.h"
#include "tests/multi_master/reference/page_model.h"

namespace dbx::fuzz {
namespace {

void ApplyBoth(const std::vector<mm::PageChange>& changes) {
  std::map<mm::PageId, std::unique_ptr<mm::SlottedPage>> pages;
  mm::reference::ModelPages model;
  for (mm::PageChange change : changes) {
    auto& page = pages[change.page];
    if (page == nullptr) page = std::make_unique<mm::SlottedPage>();
    change.previous = page->lsn();
    change.lsn.time = mm::VsTime(change.previous.time.value() + 1);
    if (mm::Apply(*page, change) != mm::ApplyStatus::kApplied) continue;
    const char* why = page->WhyInvalid(change.page);
    Require(why == nullptr, why == nullptr ? "" : why);
    try {
      mm::reference::Replay(mm::EncodePages(std::span(&change, 1)), model);
    } catch (const std::runtime_error& error) {
      Found(error.what());
    }
    Require(mm::reference::ParsePage(page->bytes()) == model.at(change.page.value()), "the reference differs");
  }
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  const std::span body(reinterpret_cast<const std::byte*>(data), size);
  const std::optional<std::vector<mm::PageChange>> changes = mm::DecodePages(body);
  if (!changes) return 0;
  const std::vector<std::byte> again = mm::EncodePages(*changes);
  fuzz::Require(std::equal(again.begin(), again.end(), body.begin(), body.end()), "two bodies of the same changes");
  fuzz::ApplyBoth(*changes);
  return 0;
}
