// Restarts from a backup, of logs of changes that were tampered with: every level of restart gives the same state and
// the same transactions, or all refuse; and the state that the run knows, if nothing was changed.
//
//   seed:u16 method:u8 steps:u16 (log:u8 at:u16 bits:u8)*     of a random history; then changes to the logs it leaves
#include <optional>
#include <utility>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recovery_input.h"
#include "tests/logging/differential/paged_history.h"

namespace dbx::fuzz {
namespace {

constexpr uint16_t kStepsMax = 256;
constexpr uint32_t kPagesMax = 4096;
constexpr DiffMethod kMethods[] = {DiffMethod::kDl1p, DiffMethod::kDl2p, DiffMethod::kPl2p};

struct Outcome {
  PagedRun::State state;
  std::set<uint64_t> winners;
  uint64_t dropped = 0;
  bool operator==(const Outcome&) const = default;
};

std::optional<Outcome> RestartAt(const PagedRun::Crashed& crashed, uint32_t level) {
  Outcome outcome;
  const auto restart = [&] {
    Restarted restarted = Restart(crashed, {.level = level, .workers = 1});
    outcome = {std::move(restarted.state), std::move(restarted.winners), restarted.summary.dropped};
  };
  if (!IsTaken(restart)) return std::nullopt;
  return outcome;
}

// Whether a record names a page far behind the last: it is taken, and looking through all pages before it takes long.
bool NamesFarPage(std::span<const std::byte> stream) {
  for (size_t at = 0; at + sizeof(format::RecordHeader) <= stream.size();) {
    format::RecordHeader header;
    std::memcpy(&header, stream.data() + at, sizeof header);
    if (header.length < sizeof header || at + header.length > stream.size()) return false;
    const auto body = stream.subspan(at + sizeof header, header.length - sizeof header);
    if (header.kind == static_cast<uint8_t>(format::RecordKind::kChange) && body.size() >= sizeof(format::ChangeBody)) {
      format::ChangeBody change;
      std::memcpy(&change, body.data(), sizeof change);
      if (change.page > kPagesMax) return true;
    }
    at += header.length;
  }
  return false;
}

// False if the input names no change.
bool Tamper(Input& input, PagedRun::Crashed& crashed) {
  bool changed = false;
  while (!input.empty()) {
    std::vector<std::byte>& log = crashed.logs[input.Take<uint8_t>() % crashed.logs.size()];
    const auto at = input.Take<uint16_t>();
    const auto bits = input.Take<std::byte>();
    if (log.size() <= format::kStreamOffset || bits == std::byte{0}) continue;
    log[format::kStreamOffset + at % (log.size() - format::kStreamOffset)] ^= bits;
    changed = true;
  }
  const auto count = static_cast<uint32_t>(crashed.logs.size());
  for (uint32_t i = 0; i < count && changed; ++i) {
    std::vector<std::byte>& log = crashed.logs[i];
    const size_t header = std::min<size_t>(log.size(), format::kStreamOffset);
    RepairStream(std::span(log).subspan(header), PagedRun::kRunId, i, count, log.size());
  }
  return changed;
}

}  // namespace
}  // namespace dbx::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dbx;
  using namespace dbx::fuzz;
  Input input(data, size);
  const auto seed = input.Take<uint16_t>();
  const DiffMethod method = kMethods[input.Take<uint8_t>() % std::size(kMethods)];
  PagedHistory history(seed, method);
  for (uint32_t steps = input.Take<uint16_t>() % kStepsMax; steps > 0; --steps) history.Step();
  PagedRun::Crashed crashed = history.Crash();
  const bool tampered = Tamper(input, crashed);
  for (const auto& log : crashed.logs) {
    if (NamesFarPage(std::span(log).subspan(std::min<size_t>(log.size(), format::kStreamOffset)))) return 0;
  }
  const std::optional<Outcome> first = RestartAt(crashed, 1);
  for (const uint32_t level : LevelsOf(method)) {
    Require(RestartAt(crashed, level) == first, "level " + std::to_string(level) + " is not as level 1");
  }
  if (tampered) return 0;
  Require(first.has_value() && first->state == crashed.state && first->winners == crashed.winners, "another state");
  return 0;
}
