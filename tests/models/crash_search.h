// Tries every interleaving of a model in which a crash may come at any moment: every state is judged.
//
// explorer.h searches programs of single memory accesses for steps that fail and for states without a way out. Here a
// step is what one actor does atomically (under a latch, or by one atomic access), and the verdict about a state looks
// at everything that a crash in it may leave behind.
//
// The search is breadth-first, so that the trace of what is found is a shortest one. A state is stored while its depth
// is searched, afterwards only as a 64-bit fingerprint. Two states with the same one would be taken for one, and what
// lies behind the second not searched: among 10 million states that happens once in 370,000 searches.
//
// A model M has:
//   State                      bytes only, compared by FingerprintOf(state)
//   kMoves                     the number of moves; each leads from a state to at most one other
//   Initial()
//   Take(state, move, text)    false, and the state unchanged, if the move is not possible; text, if not null, gets a
//                              description of the step
//   Judge(state)               what is wrong if all stops here; empty: nothing
//   IsEnd(state)               all is done; a state without moves that is no end is a fault
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "tests/models/explorer.h"

namespace dbx::models {

// A set of 64-bit fingerprints: open addressing, at most half full.
class Fingerprints {
 public:
  // Whether it was not in the set.
  bool Insert(uint64_t fingerprint) {
    if (2 * ++count_ > slots_.size()) Grow();
    const bool is_new = Place(fingerprint == 0 ? 1 : fingerprint);
    count_ -= is_new ? 0 : 1;
    return is_new;
  }
  size_t size() const { return count_; }

 private:
  bool Place(uint64_t fingerprint) {
    const size_t mask = slots_.size() - 1;
    size_t slot = fingerprint & mask;
    while (slots_[slot] != 0 && slots_[slot] != fingerprint) slot = (slot + 1) & mask;
    return std::exchange(slots_[slot], fingerprint) == 0;
  }
  void Grow() {
    const std::vector<uint64_t> old = std::exchange(slots_, std::vector<uint64_t>(2 * slots_.size()));
    for (const uint64_t fingerprint : old) {
      if (fingerprint != 0) Place(fingerprint);
    }
  }

  std::vector<uint64_t> slots_ = std::vector<uint64_t>(1024);  // 0: empty
  size_t count_ = 0;
};

template <class M>
class CrashSearch {
 public:
  using State = typename M::State;
  static constexpr size_t kStatesMax = 30'000'000;
  static_assert(std::has_unique_object_representations_v<State>, "a fingerprint is taken of a state's bytes");

  explicit CrashSearch(M& model) : model_(model) {}

  Findings Run() {
    Visit(model_.Initial(), 0, 0);
    uint32_t node = 0;
    while (!found_ && !deeper_.empty()) {
      const std::vector<State> level = std::exchange(deeper_, {});
      for (size_t i = 0; i < level.size() && !found_; ++i) Expand(level[i], node++);
    }
    findings_.states = origins_.size();
    return std::move(findings_);
  }

 private:
  struct Origin {
    uint32_t parent;
    uint8_t move;
  };

  void Visit(const State& state, uint32_t parent, uint8_t move) {
    if (!seen_.Insert(M::FingerprintOf(state))) return;
    CHECK(origins_.size() < kStatesMax);
    origins_.push_back({parent, move});
    deeper_.push_back(state);
    std::string fault = model_.Judge(state);
    if (!fault.empty() && !found_) Report(std::move(fault), static_cast<uint32_t>(origins_.size() - 1));
  }

  void Expand(const State& state, uint32_t node) {
    bool moved = false;
    State next = state;
    for (uint8_t move = 0; move < M::kMoves && !found_; ++move) {
      if (!model_.Take(next, move, nullptr)) continue;
      moved = true;
      Visit(next, node, move);
      next = state;
    }
    if (!moved && !model_.IsEnd(state)) Report("nothing can move", node);
  }

  void Report(std::string fault, uint32_t node) {
    found_ = true;
    findings_.fault = std::move(fault);
    std::vector<uint8_t> moves;
    for (; node != 0; node = origins_[node].parent) moves.insert(moves.begin(), origins_[node].move);
    State state = model_.Initial();
    for (const uint8_t move : moves) {
      std::string text;
      CHECK(model_.Take(state, move, &text));
      findings_.trace.push_back(std::move(text));
    }
  }

  M& model_;
  Findings findings_;
  bool found_ = false;
  Fingerprints seen_;
  std::vector<Origin> origins_;  // by node, in the order of the search
  std::vector<State> deeper_;    // the states one step further than those that are being searched
};

}  // namespace dbx::models
