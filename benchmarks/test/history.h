// Is a recorded history serializable? Rebuilds the dependency graph from the versions that transactions read and wrote,
// and reports a shortest cycle (A. Adya, "Weak consistency", 1999).
//
// A version of an object is named by the transaction that wrote it. Each transaction lists its accesses:
//
//   kRead v    read version v             kInsert  created the object, which was absent
//   kWrite v   overwrote version v        kDelete v  deleted version v
//   kMiss      saw that the object was absent
//
// A transaction that is not in the history did not commit: its versions were read from an aborted transaction (G1a). A
// version that its own transaction deleted was an intermediate one (G1b). Two that overwrote one version lost an
// update.
//
// Edges, "must come before": ww from a writer to the one that overwrites it, wr from a writer to a reader of its
// version, rw from a reader to the writer that overwrites what it read. Written versions form a chain, so those edges
// are known. Absence has no version: an object that is deleted and inserted again has several lives (incarnations), and
// neither the order of its lives nor the gap of a miss is recorded. An order that satisfies all constraints is searched
// for (order_search.h), and where one is found all accesses are replayed in it (history_replay.h): "nothing" is proved.
// Where there is none, the reported cycle is real. Either way the check ends: a history that no run can have recorded
// is "malformed", and a search that exceeds its bound is "undecided".
//
// A cycle is named G0 (ww edges alone), G1c (wr too), G-single (one rw edge), G2 (several) or lost update (rw and ww
// edges of one object). An edge that is several is named by the first of ww, wr, rw.
//
// Used by one thread. Memory is about 200 bytes per access.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/types.h"

namespace dbx {

enum class AccessKind : uint8_t { kRead = 1, kMiss, kWrite, kInsert, kDelete };

// The version of initial objects, and the version of an absent one.
inline constexpr TxnId kInitialVersion = TxnId::Make(WorkerId(0xffff), 0);
inline constexpr TxnId kNoVersion{UINT64_MAX};

struct HistoryAccess {
  uint64_t object = 0;
  AccessKind kind = AccessKind::kRead;
  TxnId version = kNoVersion;  // read, overwritten or deleted
};

class History {
 public:
  // `name_object` is for messages.
  explicit History(std::function<std::string(uint64_t)> name_object) : name_object_(std::move(name_object)) {}

  void AddInitial(uint64_t object) { initial_.insert(object); }

  // Asks for snapshot isolation only: cycles with two rw edges in a row are harmless (A. Fekete et al., TODS 30(2)),
  // all others are not.
  void AllowWriteSkew() { allows_write_skew_ = true; }

  // Asks for read committed only: versions of committed transactions, which those did not overwrite again (G1a, G1b),
  // and no cycle of ww and wr edges (G0, G1c). Where transactions missed an object is not looked at.
  void AskForReadCommitted() { read_committed_ = true; }

  // A committed transaction. It accesses an object more than once only where its accesses contradict each other, or to
  // delete its own insert.
  void AddTransaction(TxnId id, std::span<const HistoryAccess> accesses);

  // The object exists at the end, written by `version` over `predecessor` (kNoVersion if it was inserted).
  void AddFinal(uint64_t object, TxnId version, TxnId predecessor) { final_[object] = {version, predecessor}; }

  // Bounds the search for an order: events that it may visit.
  void LimitWork(uint64_t work_max) { work_max_ = work_max; }

  // Nothing, or one sentence: a cycle, an impossible version, a history that is malformed or undecided.
  std::optional<std::string> FindAnomaly() const;

  struct FinalVersion {
    TxnId version;
    TxnId predecessor;
  };
  struct Entry {  // one access of one transaction
    TxnId id;
    HistoryAccess access;
  };

 private:
  friend class HistoryChecker;
  friend class ElleWriter;

  std::function<std::string(uint64_t)> name_object_;
  bool allows_write_skew_ = false;
  bool read_committed_ = false;
  uint64_t work_max_ = 1'000'000'000;
  std::unordered_set<uint64_t> initial_;
  std::unordered_map<uint64_t, FinalVersion> final_;
  std::vector<TxnId> transactions_;
  std::vector<Entry> entries_;
};

}  // namespace dbx
