// Tries every interleaving of a small concurrent program, over the memory of an x86-64 processor.
//
// A model is a step machine: each thread has local variables with a program counter, and a step does at most one
// access to shared memory. The memory is x86-TSO with the compiler's freedom added: every thread has a store buffer
// from which it reads its own stores; a release store leaves the buffer only after all that are older, a relaxed one
// may overtake what goes to other cells; atomic read-modify-writes and sequentially consistent stores wait until the
// buffer is empty. Loads happen in program order: a model that wants them reordered writes them in the other order.
//
// The search is breadth-first over memoised states, so that the trace of what is found is a shortest one. What it
// looks for: a step that fails (Core::Fail), and a state from which no end can be reached any more, whichever
// thread runs: a deadlock, a lost wake-up, or a loop without a way out.
//
// A model M has:
//   kCells, kThreads, Locals (bytes only)    cells hold one byte each; positions in a log are small numbers
//   kBufferedMax                             a store buffer's size; the fewer, the fewer states
//   Initial(machine)                         sets what is not 0 at the start
//   Step(core)                               one step of thread core.thread(); core.Block() if it cannot take one
//   IsEnd(machine)                           all is done
//   CellName(cell), ThreadName(thread)       for traces
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace dbx::models {

enum class Order : uint8_t { kRelaxed, kRelease, kSeqCst };

template <class M>
struct Machine {
  struct Buffer {
    struct Entry {
      uint8_t cell, value, release;
    };
    uint8_t count;
    Entry entries[M::kBufferedMax];  // oldest first, zeros behind the last
  };
  uint8_t memory[M::kCells];
  typename M::Locals locals[M::kThreads];
  Buffer buffers[M::kThreads];

  bool operator==(const Machine& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
  bool BuffersAreEmpty() const {
    for (const Buffer& buffer : buffers) {
      if (buffer.count > 0) return false;
    }
    return true;
  }
};

// What one step of one thread may do.
template <class M>
class Core {
 public:
  Core(const M& model, Machine<M>& machine, uint8_t thread, bool tracing)
      : model_(model), machine_(machine), thread_(thread), tracing_(tracing) {}

  uint8_t thread() const { return thread_; }
  typename M::Locals& locals() { return machine_.locals[thread_]; }
  const typename M::Locals& LocalsOf(size_t thread) const { return machine_.locals[thread]; }  // for a verdict
  // Beside the memory: what a lock protects anyhow, or what only the test knows. Never buffered.
  uint8_t& Ghost(size_t cell) { return machine_.memory[cell]; }

  uint8_t Load(size_t cell) {
    uint8_t value = machine_.memory[cell];
    for (size_t i = 0; i < buffer().count; ++i) {
      if (buffer().entries[i].cell == cell) value = buffer().entries[i].value;
    }
    Tell("reads", cell, value);
    return value;
  }
  void Store(size_t cell, uint8_t value, Order order) {
    if (order == Order::kSeqCst) {
      if (!Drained()) return;
      machine_.memory[cell] = value;
    } else {
      if (buffer().count == M::kBufferedMax) return Block();
      buffer().entries[buffer().count++] = {static_cast<uint8_t>(cell), value, order == Order::kRelease};
    }
    Tell(order == Order::kSeqCst ? "stores at once" : "stores", cell, value);
  }
  uint8_t Exchange(size_t cell, uint8_t value) {
    if (!Drained()) return 0;
    Tell("exchanges, giving", cell, value);
    return std::exchange(machine_.memory[cell], value);
  }
  uint8_t FetchAdd(size_t cell, uint8_t more) {
    if (!Drained()) return 0;
    Tell("fetches and adds to", cell, machine_.memory[cell]);
    return std::exchange(machine_.memory[cell], static_cast<uint8_t>(machine_.memory[cell] + more));
  }
  // As std::atomic's; `expected` gets what was there.
  bool CompareExchange(size_t cell, uint8_t& expected, uint8_t value) {
    if (!Drained()) return false;
    const bool same = machine_.memory[cell] == expected;
    Tell(same ? "compares and swaps" : "fails to swap", cell, same ? value : machine_.memory[cell]);
    expected = machine_.memory[cell];
    if (same) machine_.memory[cell] = value;
    return same;
  }

  // The thread cannot step now: whatever this step did is undone.
  void Block() { blocked_ = true; }
  void Fail(const char* what) { failure_ = what; }
  void Say(std::string_view what) {
    if (tracing_) text_ += (text_.empty() ? "" : ", ") + std::string(what);
  }

  bool blocked() const { return blocked_; }
  const char* failure() const { return failure_; }
  const std::string& text() const { return text_; }

 private:
  typename Machine<M>::Buffer& buffer() { return machine_.buffers[thread_]; }
  bool Drained() {
    if (buffer().count > 0) Block();
    return !blocked_;
  }
  void Tell(const char* verb, size_t cell, uint8_t value) {
    if (tracing_) Say(std::string(verb) + " " + model_.CellName(cell) + " = " + std::to_string(value));
  }

  const M& model_;
  Machine<M>& machine_;
  const uint8_t thread_;
  const bool tracing_;
  bool blocked_ = false;
  const char* failure_ = nullptr;
  std::string text_;
};

struct Findings {
  size_t states = 0;
  std::string fault;  // empty: none
  std::vector<std::string> trace;

  std::string Text() const {
    std::string text = fault + "\n";
    for (size_t i = 0; i < trace.size(); ++i) text += "  " + std::to_string(i + 1) + ". " + trace[i] + "\n";
    return text;
  }
};

template <class M>
class Explorer {
 public:
  static constexpr size_t kStatesMax = 20'000'000;

  explicit Explorer(const M& model) : model_(model) {
    static_assert(std::is_trivially_copyable_v<Machine<M>> && alignof(Machine<M>) == 1, "states are compared as bytes");
  }

  Findings Run() {
    Machine<M> machine;
    std::memset(&machine, 0, sizeof machine);
    model_.Initial(machine);
    Visit(machine, 0, {});
    for (uint32_t node = 0; node < states_.size() && findings_.fault.empty(); ++node) Expand(node);
    if (findings_.fault.empty()) LookForDeadEnds();
    findings_.states = states_.size();
    return std::move(findings_);
  }

 private:
  // A step of a thread, or (drain > 0) its buffered store number drain - 1 reaches memory.
  struct Move {
    uint8_t thread = 0;
    uint8_t drain = 0;
  };
  struct Origin {
    uint32_t parent = 0;
    Move move;
  };
  struct Hash {
    size_t operator()(const Machine<M>& machine) const {
      return std::hash<std::string_view>()({reinterpret_cast<const char*>(&machine), sizeof machine});
    }
  };

  void Visit(const Machine<M>& machine, uint32_t parent, Move move) {
    const auto [at, is_new] = numbers_.try_emplace(machine, static_cast<uint32_t>(states_.size()));
    if (is_new) {
      CHECK(states_.size() < kStatesMax);
      states_.push_back(&at->first);
      origins_.push_back({parent, move});
    }
    if (at->second != parent) edges_.emplace_back(at->second, parent);
  }

  void Expand(uint32_t node) {
    for (uint8_t thread = 0; thread < M::kThreads; ++thread) {
      Machine<M> next = *states_[node];
      for (uint8_t entry = 0; entry < states_[node]->buffers[thread].count; ++entry) {
        if (Drain(next, thread, entry)) Visit(next, node, {thread, static_cast<uint8_t>(entry + 1)});
        next = *states_[node];
      }
      Core<M> core(model_, next, thread, false);
      model_.Step(core);
      if (core.blocked()) continue;
      if (core.failure() != nullptr) {
        Report(core.failure(), node);
        findings_.trace.push_back(Describe(node, {thread, 0}));
        return;
      }
      Visit(next, node, {thread, 0});
    }
  }

  // Lets a buffered store reach memory, if the order of the stores allows it.
  static bool Drain(Machine<M>& machine, uint8_t thread, uint8_t entry) {
    auto& buffer = machine.buffers[thread];
    const auto store = buffer.entries[entry];
    if (store.release && entry > 0) return false;
    for (uint8_t i = 0; i < entry; ++i) {
      if (buffer.entries[i].cell == store.cell) return false;
    }
    machine.memory[store.cell] = store.value;
    for (uint8_t i = entry; i + 1 < buffer.count; ++i) buffer.entries[i] = buffer.entries[i + 1];
    buffer.entries[--buffer.count] = {};
    return true;
  }

  void LookForDeadEnds() {
    std::vector<uint32_t> first(states_.size() + 1, 0);
    for (const auto& [to, from] : edges_) ++first[to + 1];
    for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<uint32_t> before(edges_.size());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (const auto& [to, from] : edges_) before[next[to]++] = from;
    std::vector<bool> ends(states_.size());
    std::vector<uint32_t> queue;
    for (uint32_t node = 0; node < states_.size(); ++node) {
      if (model_.IsEnd(*states_[node])) queue.push_back(node), ends[node] = true;
    }
    while (!queue.empty()) {
      const uint32_t node = queue.back();
      queue.pop_back();
      for (uint32_t i = first[node]; i < first[node + 1]; ++i) {
        if (!ends[before[i]]) queue.push_back(before[i]), ends[before[i]] = true;
      }
    }
    for (uint32_t node = 0; node < states_.size(); ++node) {
      if (!ends[node]) return Report("no end can be reached any more", node);
    }
  }

  void Report(const char* fault, uint32_t node) {
    findings_.fault = fault;
    for (; node != 0; node = origins_[node].parent) {
      findings_.trace.insert(findings_.trace.begin(), Describe(origins_[node].parent, origins_[node].move));
    }
  }

  std::string Describe(uint32_t node, Move move) const {
    const std::string name = model_.ThreadName(move.thread);
    Machine<M> machine = *states_[node];
    if (move.drain > 0) {
      const auto& store = machine.buffers[move.thread].entries[move.drain - 1];
      return name + "'s store reaches memory: " + model_.CellName(store.cell) + " = " + std::to_string(store.value);
    }
    Core<M> core(model_, machine, move.thread, true);
    model_.Step(core);
    return name + " " + (core.text().empty() ? "goes on" : core.text());
  }

  const M& model_;
  Findings findings_;
  std::unordered_map<Machine<M>, uint32_t, Hash> numbers_;
  std::vector<const Machine<M>*> states_;
  std::vector<Origin> origins_;
  std::vector<std::pair<uint32_t, uint32_t>> edges_;  // to, from
};

template <class M>
Findings Explore(const M& model) {
  return Explorer<M>(model).Run();
}

}  // namespace dbx::models
