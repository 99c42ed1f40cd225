#include "system/runs/slow_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dbx {
namespace {

constexpr uint64_t kNanosPerSecond = 1'000'000'000;
constexpr uint64_t kQuietNanos = 2 * kNanosPerSecond;
constexpr uint64_t kPauseNanos = 5 * kNanosPerSecond;

double Gibibytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

}  // namespace

SlowProgress::SlowProgress(std::string step, std::string advice, uint64_t total_bytes, uint64_t now_nanos)
    : step_(std::move(step)),
      advice_(std::move(advice)),
      total_bytes_(total_bytes),
      begin_nanos_(now_nanos),
      due_nanos_(now_nanos + kQuietNanos) {}

std::string SlowProgress::Advance(uint64_t bytes, uint64_t now_nanos) {
  done_bytes_ = std::min(done_bytes_ + bytes, total_bytes_);
  if (now_nanos < due_nanos_ || done_bytes_ == 0 || done_bytes_ == total_bytes_) return {};
  due_nanos_ = now_nanos + kPauseNanos;
  const double seconds = static_cast<double>(now_nanos - begin_nanos_) / kNanosPerSecond;
  const double left = seconds * static_cast<double>(total_bytes_ - done_bytes_) / static_cast<double>(done_bytes_);
  return fmt::format("{}: {:.1f} of {:.1f} GiB, about {:.0f} s left ({})\n", step_, Gibibytes(done_bytes_),
                     Gibibytes(total_bytes_), std::max(left, 1.0), advice_);
}

}  // namespace dbx
