#include "base/stop.h"

#include <signal.h>

namespace dbx {
namespace {

constinit std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores to it");

}  // namespace

std::atomic<bool>& StopRequested() { return stop_requested; }

void InstallStopHandlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { stop_requested.store(true, std::memory_order_relaxed); };
  sigemptyset(&action.sa_mask);
  // One shot: whoever does not want to wait for the clean end presses the key again. SA_RESTART: a device's
  // write must not fail because a run is asked to stop.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace dbx
