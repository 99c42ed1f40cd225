#include "base/stop.h"

#include <signal.h>

namespace dbx {
namespace {

constinit std::atomic<bool> stop_requested{false};
constinit std::atomic<int> stop_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores to it");

}  // namespace

std::atomic<bool>& StopRequested() { return stop_requested; }
int StopSignal() { return stop_signal.load(std::memory_order_relaxed); }

void InstallStopHandlers() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    stop_signal.store(signal, std::memory_order_relaxed);
    stop_requested.store(true, std::memory_order_relaxed);
  };
  sigemptyset(&action.sa_mask);
  // SA_RESETHAND: a second Ctrl-C terminates immediately. SA_RESTART: a device's write must not fail because a run is
  // asked to stop.
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace dbx
