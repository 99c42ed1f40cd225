#include "tests/instruments/line_transfers/instrument.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

extern "C" const char __executable_start;

namespace dbx::lines {
namespace {

// A place in the code that found a line elsewhere, and the one that wrote it last.
struct Places {
  uintptr_t at;
  uintptr_t written_at;
  bool operator==(const Places&) const = default;
};
struct HashOfPlaces {
  size_t operator()(const Places& places) const { return places.at * 0x9e3779b97f4a7c15 + places.written_at; }
};

struct Counts {
  uint64_t clean = 0;
  uint64_t dirty = 0;
  uint64_t upgrades = 0;
  uint64_t invalidated = 0;
  uint64_t false_sharing = 0;  // of dirty and upgrades
};

// Of one line: the events that Counts has as dirty and upgrades, and the cores that they were of.
struct OfLine {
  uint64_t transfers = 0;
  CoreSet cores;
  // The place of most of them, if one has more than half: each other place takes a vote from it.
  uintptr_t at = 0;
  uint64_t votes = 0;

  void Add(uint32_t core, uintptr_t place) {
    ++transfers;
    cores.Add(core);
    if (votes == 0) at = place;
    if (at == place) {
      ++votes;
    } else {
      --votes;
    }
  }
};
// Lines in a report: those with most transfers.
constexpr size_t kLinesReported = 32;

struct Totals {
  uint64_t accesses = 0;
  uint64_t memory = 0;
  uint64_t waited_picos = 0;  // for a line that was on its way to another core
};

uint64_t Picos(double nanos) { return static_cast<uint64_t>(nanos * 1000); }

struct Charges {
  explicit Charges(const Costs& costs)
      : access(Picos(costs.access_nanos)),
        transfer(Picos(costs.transfer_nanos)),
        miss(Picos(costs.miss_nanos)),
        overlapped_transfer(Picos(costs.transfer_nanos * costs.following_share)),
        overlapped_miss(Picos(costs.miss_nanos * costs.following_share)) {}
  uint64_t access, transfer, miss, overlapped_transfer, overlapped_miss;
};

// A miss so few lines after the last one overlaps with it.
constexpr uint64_t kFollowingLines = 4;

class Instrument {
 public:
  explicit Instrument(const InstrumentPlan& plan)
      : plan_(plan), charges_(plan.costs), model_(kCoresMax, plan.cache), missed_(kCoresMax, 0) {}

  const Costs& costs() const { return plan_.costs; }

  void BeginInterval() {
    by_places_.clear();
    by_line_.clear();
    totals_ = {};
    begin_picos_ = NowPicos();
  }
  void EndInterval() {
    if (!has_ended()) end_picos_ = NowPicos();
  }
  bool has_ended() const { return end_picos_.has_value(); }

  void Access(uintptr_t address, size_t bytes, Kind kind, const void* at) {
    const bool writes = kind != Kind::kLoad;
    const uint32_t core = CurrentCore();
    while (bytes > 0) {
      const size_t here = std::min<size_t>(bytes, kLineBytes - address % kLineBytes);
      ++totals_.accesses;
      Advance(charges_.access);
      const Event event = model_.AccessBytes(core, address, here, writes);
      if (event.found != Found::kHit) Charge(core, address / kLineBytes, event, kind == Kind::kStore, at);
      if (writes) event.line->written_at = reinterpret_cast<uintptr_t>(at);
      address += here;
      bytes -= here;
    }
  }

  // The access itself is the model's; it takes no time of the core's. What it fetches is there when it is needed.
  void Prefetch(uintptr_t address, bool writes, const void* at) {
    const uint64_t before = clock_picos;
    const Event event = model_.AccessBytes(CurrentCore(), address, 1, writes);
    if (event.found != Found::kHit) Charge(CurrentCore(), address / kLineBytes, event, false, at);
    clock_picos = before;
  }

  std::string ReportText() const;

 private:
  nlohmann::json LinesOfMost() const;
  void Charge(uint32_t core, uint64_t number, const Event& event, bool is_buffered, const void* at) {
    const bool overlaps = is_buffered || number - missed_[core] <= kFollowingLines;
    missed_[core] = number;
    const bool is_transfer = event.found == Found::kDirty || event.found == Found::kUpgrade;
    if (event.found == Found::kMemory) {
      ++totals_.memory;
    } else {
      Count(event, at);
    }
    if (is_transfer) by_line_[number].Add(core, reinterpret_cast<uintptr_t>(at));
    if (!is_transfer) return Advance(overlaps ? charges_.overlapped_miss : charges_.miss);
    Line& line = *event.line;
    const uint64_t begin = std::max(line.busy_until, clock_picos);
    if (!is_buffered) {
      totals_.waited_picos += begin - clock_picos;
      clock_picos = begin;
    }
    line.busy_until = begin + (is_buffered || !overlaps ? charges_.transfer : charges_.overlapped_transfer);
    Advance(overlaps ? charges_.overlapped_transfer : charges_.transfer);
  }

  void Count(const Event& event, const void* at) {
    Counts& counts = by_places_[{reinterpret_cast<uintptr_t>(at), event.line->written_at}];
    counts.invalidated += event.invalidated;
    counts.clean += event.found == Found::kClean;
    counts.dirty += event.found == Found::kDirty;
    counts.upgrades += event.found == Found::kUpgrade;
    counts.false_sharing += event.is_false_sharing && event.found != Found::kClean;
  }

  const InstrumentPlan plan_;
  const Charges charges_;
  Coherence model_;
  std::vector<uint64_t> missed_;  // by core: the line that it missed last
  std::unordered_map<Places, Counts, HashOfPlaces> by_places_;
  std::unordered_map<uint64_t, OfLine> by_line_;
  Totals totals_;
  uint64_t begin_picos_ = 0;
  std::optional<uint64_t> end_picos_;
};

// From the program's beginning, as addr2line wants it; 0 for none.
uintptr_t OffsetOf(uintptr_t at) { return at == 0 ? 0 : at - reinterpret_cast<uintptr_t>(&__executable_start); }

nlohmann::json Instrument::LinesOfMost() const {
  std::vector<OfLine> lines;
  for (const auto& [number, line] : by_line_) lines.push_back(line);
  const size_t count = std::min(kLinesReported, lines.size());
  std::partial_sort(
      lines.begin(), lines.begin() + static_cast<ptrdiff_t>(count), lines.end(), [](const OfLine& a, const OfLine& b) {
        return std::tuple(b.transfers, b.cores.count(), b.at) < std::tuple(a.transfers, a.cores.count(), a.at);
      });
  nlohmann::json found = nlohmann::json::array();
  for (size_t i = 0; i < count; ++i) {
    found.push_back(
        {{"transfers", lines[i].transfers}, {"cores", lines[i].cores.count()}, {"at", OffsetOf(lines[i].at)}});
  }
  return found;
}

std::string Instrument::ReportText() const {
  using nlohmann::json;
  json places = json::array();
  for (const auto& [at, counts] : by_places_) {
    places.push_back({{"at", OffsetOf(at.at)},
                      {"written_at", OffsetOf(at.written_at)},
                      {"clean", counts.clean},
                      {"dirty", counts.dirty},
                      {"upgrades", counts.upgrades},
                      {"invalidated", counts.invalidated},
                      {"false_sharing", counts.false_sharing}});
  }
  const json report = {{"seconds", static_cast<double>(end_picos_.value_or(0) - begin_picos_) * 1e-12},
                       {"accesses", totals_.accesses},
                       {"memory", totals_.memory},
                       {"waited_nanos", totals_.waited_picos / 1000},
                       {"places", places},
                       {"lines", LinesOfMost()}};
  return report.dump();
}

std::unique_ptr<Instrument> instrument;

// What the instrument does itself is not told of: its containers call memset and its like, which --wrap leads here.
class Quiet {
 public:
  Quiet() : was_on_(std::exchange(is_on, false)) {}
  ~Quiet() { is_on = was_on_; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  const bool was_on_;
};

}  // namespace

void SetUp(const InstrumentPlan& plan) { instrument = std::make_unique<Instrument>(plan); }
std::string ReportText() { return instrument->ReportText(); }

void SwitchOn() { is_on = Running() && !instrument->has_ended(); }
void BeginInterval() {
  const Quiet quiet;
  instrument->BeginInterval();
}
void EndInterval() {
  instrument->EndInterval();
  is_on = false;
}

void Access(const void* address, size_t bytes, Kind kind, const void* at) {
  const Quiet quiet;
  instrument->Access(reinterpret_cast<uintptr_t>(address), bytes, kind, at);
}
void OnPrefetch(const void* address, bool writes) {
  if (!is_on) return;
  const Quiet quiet;
  instrument->Prefetch(reinterpret_cast<uintptr_t>(address), writes, __builtin_return_address(0));
}

void OnPause() {
  if (!Running()) return;
  Advance(Picos(instrument->costs().pause_nanos));
  MayLoseTurn();
}
void OnYield() {
  if (Running()) Yield(static_cast<uint64_t>(instrument->costs().yield_nanos));
}
void OnWake() {
  if (Running()) Advance(Picos(instrument->costs().wake_nanos));
}
void OnWrite(size_t bytes) {
  if (!Running()) return;
  const double kib = static_cast<double>(bytes) / 1024;
  Advance(Picos(instrument->costs().write_nanos + kib * instrument->costs().write_nanos_per_kib));
  MayLoseTurn();
}

}  // namespace dbx::lines
