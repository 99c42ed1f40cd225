// The number of the current fuzzy checkpoint of a database whose tables are paged, and whether that checkpoint is being
// written (differential logging, Lee, Kim, Cha, ICDE 2001, section 3.3: the global checkpoint flag).
//
// A page has been reached by checkpoint number() or not: a bit in its word (page_space.h) tells which. That is why the
// number changes only while no page is added: pages that exist then have not been reached, later ones count as reached.
//
// The number changes after the flag is set, and after the checkpoint's BEGIN has its place in each log. A page that is
// added in between is counted, and copied. If it counted as reached, a change of it could have its place below BEGIN,
// and the backward pass, which need not go further down, would not see that the backup lacks it.
//
// Threads: the checkpointer begins and ends checkpoints; the rest is for any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/host.h"

namespace dbx {

class CheckpointClock {
 public:
  // Of the checkpoint that is being written, or of the last one. 0: the backup with which the run begins.
  uint32_t number() const { return number_.load(std::memory_order_acquire); }
  // Sequentially consistent: an abort that reserved its place before it finds no checkpoint running has that place
  // before the checkpoint's BEGIN.
  bool is_active() const { return active_.load(); }

  // The next checkpoint begins; its number is returned.
  uint32_t Begin() {
    active_.store(true);
    return number_.load(std::memory_order_relaxed) + 1;
  }
  // Its number is the current one from here on. `count_pages` runs while no page is added.
  void Advance(auto&& count_pages) {
    const std::lock_guard lock(page_additions_);
    // Release: a thread that finds a page reached by this checkpoint, under the page's latch, loads this number.
    number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    count_pages();
  }
  void End() { active_.store(false); }

  // Held while pages are added.
  Mutex& page_additions() { return page_additions_; }

 private:
  Mutex page_additions_;
  Atomic<uint32_t> number_{0};
  Atomic<bool> active_{false};
};

}  // namespace dbx
