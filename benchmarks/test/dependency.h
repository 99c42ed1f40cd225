// Dependencies between the transactions of a history, and the events that they order; shared by history.cpp, which
// derives them, and order_search.cpp, which looks for an order. A transaction is known by its index.
//
// Under serializability a transaction is one event. Under snapshot isolation it is two, a start, at which it reads, and
// a commit, at which it writes: ww and wr say that one commits before the other starts, rw that it starts before the
// other commits. A history is of that isolation level if and only if its events have an order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dbx::history {

inline constexpr uint32_t kNone = UINT32_MAX;

enum class EdgeKind : uint8_t { kWw, kWr, kRw };

struct Edge {
  uint32_t from;
  uint32_t to;
  EdgeKind kind;
  uint64_t object;
};

// From the insert (kNone: the start of the history) to the delete (kNone: its end) of one object.
struct Life {
  uint32_t begin;
  uint32_t end;
};

// The lives of an object, and the transactions that saw it absent.
struct Presence {
  uint64_t object;
  std::vector<Life> lives;
  std::vector<uint32_t> missers;
};

struct Events {
  bool snapshots;

  size_t Count(size_t transactions) const { return snapshots ? 2 * transactions : transactions; }
  uint32_t Start(uint32_t transaction) const { return snapshots ? 2 * transaction : transaction; }
  uint32_t Commit(uint32_t transaction) const { return snapshots ? 2 * transaction + 1 : transaction; }
  uint32_t TransactionOf(uint32_t event) const { return snapshots ? event / 2 : event; }
  bool IsStart(uint32_t event) const { return !snapshots || event % 2 == 0; }
  bool IsCommit(uint32_t event) const { return !snapshots || event % 2 == 1; }
  // The event that must come first, and the one that must follow.
  std::pair<uint32_t, uint32_t> ArcOf(const Edge& edge) const {
    if (edge.kind == EdgeKind::kRw) return {Start(edge.from), Commit(edge.to)};
    return {Commit(edge.from), Start(edge.to)};
  }
};

}  // namespace dbx::history
