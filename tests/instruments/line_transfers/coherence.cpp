#include "tests/instruments/line_transfers/coherence.h"

#include <algorithm>

#include "base/check.h"

namespace dbx::lines {

Coherence::Coherence(uint32_t cores, CacheShape shape, uint64_t seed)
    : cores_(cores),
      shape_(shape),
      tags_(size_t{cores} * shape.sets * shape.ways),
      random_(static_cast<std::minstd_rand::result_type>(seed)) {
  CHECK(cores <= kCoresMax);
}

Event Coherence::Access(uint32_t core, uint64_t line_number, uint32_t first, uint32_t last, bool writes) {
  Line& line = LineOf(line_number);
  Event event;
  event.line = &line;
  if (!line.holders.Has(core)) {
    Fetch(core, line, line_number, writes, event);
  } else if (writes && line.state != Line::State::kModified) {
    if (line.state == Line::State::kShared) {
      event.found = Found::kUpgrade;
      event.invalidated = line.holders.count() - 1;
      line.holders.Become(core);
    }
    line.state = Line::State::kModified;
  }
  if (event.found > Found::kMemory) event.is_false_sharing = !ConcernsOthers(line, core, first, last, writes);
  NoteWords(line, core, first, last, writes);
  return event;
}

Line& Coherence::LineOf(uint64_t number) {
  const uint64_t page_number = number / kLinesPerPage;
  Recent& recent = recent_[page_number % recent_.size()];
  if (recent.number != page_number) {
    std::unique_ptr<Page>& page = pages_[page_number];
    if (page == nullptr) page = std::make_unique<Page>();
    recent = {page_number, page.get()};
  }
  return (*recent.page)[number % kLinesPerPage];
}

bool Coherence::ConcernsOthers(const Line& line, uint32_t core, uint32_t first, uint32_t last, bool writes) {
  const auto me = static_cast<uint8_t>(core + 1);
  for (uint32_t word = first; word <= last; ++word) {
    const uint8_t other = writes ? line.toucher[word] : line.writer[word];
    if (other != 0 && other != me) return true;
  }
  return false;
}

void Coherence::NoteWords(Line& line, uint32_t core, uint32_t first, uint32_t last, bool writes) {
  const auto me = static_cast<uint8_t>(core + 1);
  const auto note = [me](uint8_t& core_of) { core_of = core_of == 0 || core_of == me ? me : kSeveral; };
  for (uint32_t word = first; word <= last; ++word) {
    note(line.toucher[word]);
    if (writes) note(line.writer[word]);
  }
}

void Coherence::Fetch(uint32_t core, Line& line, uint64_t number, bool writes, Event& event) {
  const bool is_held = !line.holders.empty();
  const bool is_dirty = is_held && line.state == Line::State::kModified;
  event.found = is_dirty ? Found::kDirty : is_held ? Found::kClean : Found::kMemory;
  if (writes) {
    event.invalidated = line.holders.count();
    line.holders.Become(core);
    line.state = Line::State::kModified;
  } else {
    line.holders.Add(core);
    line.state = is_held ? Line::State::kShared : Line::State::kExclusive;
  }
  if (shape_.ways != 0) Insert(core, line, number);
}

// In the way that it had, or one that is free or whose line has been invalidated meanwhile, or any.
void Coherence::Insert(uint32_t core, Line& line, uint64_t number) {
  const uint64_t set = number % shape_.sets;
  const auto ways = tags_.begin() + static_cast<ptrdiff_t>((uint64_t{core} * shape_.sets + set) * shape_.ways);
  const auto end = ways + shape_.ways;
  auto way = std::find(ways, end, &line);
  if (way == end) {
    way = std::find_if(ways, end, [core](const Line* held) { return held == nullptr || !held->holders.Has(core); });
  }
  if (way == end) {
    way = ways + static_cast<ptrdiff_t>(random_() % shape_.ways);
    (*way)->holders.Remove(core);
    // The write-back of a line in M leaves it to memory.
    if ((*way)->state == Line::State::kModified) (*way)->state = Line::State::kShared;
  }
  *way = &line;
}

}  // namespace dbx::lines
