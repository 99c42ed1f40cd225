#include "tests/simulation/cluster/cluster_checks.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "multi_master/log/store_log.h"
#include "multi_master/master/copy_rows.h"
#include "multi_master/store/store_messages.h"
#include "tests/multi_master/reference/tree_checker.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/rows.h"

namespace dbx::sim {
namespace {

using mm::MasterId;
using mm::NodeId;
using mm::PageId;
using mm::Role;
using mm::VsTime;
using mm::VsVector;
using mm::reference::ModelPage;
using mm::reference::ParsePage;

constexpr uint64_t kRestNanosMax = 10'000'000'000;
constexpr uint64_t kLookNanos = 2'000'000;

// Asks a Page Store for pages, as a master does.
class PageReader final : public mm::Network::Receiver {
 public:
  explicit PageReader(SimNetwork& net) : network_(net.Join({Role::kMaster, mm::kMastersMax - 1})) {
    network_.Start(*this);
  }
  ~PageReader() override { network_.Stop(); }

  void Ask(NodeId store, PageId page, const VsVector& tv) {
    const mm::ReadPageBelow request{mm::RequestId(page.value()), page, tv};
    network_.Send(store, mm::ReadPageBelow::kType, mm::EncodeBody(request));
  }
  std::map<uint64_t, std::unique_ptr<mm::SlottedPage>>& pages() { return pages_; }

 private:
  bool OnMessage(NodeId, mm::MessageType, std::span<const std::byte> body) override {
    auto read = mm::DecodeBody<mm::PageRead>(body);
    if (!read) return false;
    pages_[read->request.value()] = std::move(read->page);
    return true;
  }
  void OnLinkDown(NodeId) override {}

  mm::Network& network_;
  std::map<uint64_t, std::unique_ptr<mm::SlottedPage>> pages_;
};

std::string NameOfPage(uint64_t page) { return "page " + std::to_string(page); }

class Checks {
 public:
  Checks(SimCluster& cluster, const ClusterDatabase& database) : cluster_(cluster), database_(database) {}

  CheckedCluster Run() {
    AwaitRecoveries();
    AwaitRest();
    Replay();
    AwaitDeadLogs();
    CheckApplied();
    CheckOracle();
    CheckTrees();
    CheckPageStores();
    CheckBuffers();
    CheckRowsReadBy(LivingMaster());
    AwaitRest();
    AwaitNoLocks();
    return result_;
  }

 private:
  void AwaitThat(const std::string& what, const std::function<bool()>& holds) {
    const uint64_t until = NowNanos() + kRestNanosMax;
    while (!holds()) {
      cluster_.ThrowIfFailed();
      if (NowNanos() > until) throw Violation("I11: " + what);
      SleepFor(kLookNanos);
    }
  }
  bool IsAlive(uint32_t master) const { return cluster_.IsAlive({Role::kMaster, static_cast<uint8_t>(master)}); }
  uint32_t LivingMaster() const {
    std::vector<uint32_t> living;
    for (uint32_t i = 0; i < cluster_.masters(); ++i) {
      if (IsAlive(i)) living.push_back(i);
    }
    return living[Random() % living.size()];
  }

  void AwaitRecoveries() {
    size_t dead = 0;
    for (uint32_t i = 0; i < cluster_.masters(); ++i) dead += !IsAlive(i);
    AwaitThat("a dead master is not recovered", [&] {
      const std::vector<mm::MasterDeath> deaths = cluster_.locks().deaths();
      const auto is_over = [](const mm::MasterDeath& death) { return death.freed_nanos > 0; };
      return deaths.size() == dead && std::all_of(deaths.begin(), deaths.end(), is_over) &&
             cluster_.locks().losers_left() == 0;
    });
    for (const mm::MasterDeath& death : cluster_.locks().deaths()) result_.losers += death.losers;
  }

  // The logs of dead masters are read up to their seals, too.
  void AwaitDeadLogs() {
    VsVector ends;
    for (uint8_t i = 0; i < replay_.lfbs.size(); ++i) {
      if (!replay_.lfbs[i].empty()) ends.Set(MasterId(i), VsTime(replay_.lfbs[i].back().time));
    }
    AwaitThat("a dead master's log is not read to its seal", [&] { return IsReadUpTo(ends); });
  }
  bool IsReadUpTo(const VsVector& ends) const {
    for (uint32_t i = 0; i < cluster_.masters(); ++i) {
      if (IsAlive(i) && !cluster_.master(i).log().applied().Covers(ends)) return false;
    }
    for (uint32_t i = 0; i < cluster_.setup().page_stores; ++i) {
      if (!cluster_.page_store(i).store().progress().Covers(ends)) return false;
    }
    return true;
  }

  void AwaitRest() {
    AwaitThat("a log does not become durable, or is not read to its end", [&] {
      VsVector ends;
      for (uint32_t i = 0; i < cluster_.masters(); ++i) {
        if (!IsAlive(i)) continue;
        const mm::MasterLog& log = cluster_.master(i).log();
        if (log.last_record().value() > log.durable_until().value()) return false;
        ends.Set(MasterId(static_cast<uint8_t>(i)), log.durable_until());
      }
      return IsReadUpTo(ends);
    });
  }

  StoredBytes CopyAt(uint32_t store, MasterId log) {
    FaultyFileSystem copy(cluster_.files(store).VisibleImage());
    mm::StoreLog disk(copy, SimCluster::kLogDirectory, log, mm::SaltOf(cluster_.plan().cluster.value(), log));
    StoredBytes stored;
    stored.end = disk.state().end.value();
    for (const Lsn end : disk.state().part_ends) stored.part_ends.push_back(end.value());
    while (stored.bytes.size() < stored.end) {
      const auto more = disk.Read(Lsn(stored.bytes.size()), disk.state().end, 1 << 20);
      if (more.empty()) throw Violation("a Log Store cannot read what it has");
      stored.bytes.insert(stored.bytes.end(), more.begin(), more.end());
    }
    return stored;
  }

  void Replay() {
    try {
      std::vector<StoredBytes> logs;
      for (uint8_t master = 0; master < cluster_.masters(); ++master) {
        std::vector<StoredBytes> copies;
        for (uint32_t store = 0; store < mm::kLogStores; ++store) copies.push_back(CopyAt(store, MasterId(master)));
        logs.push_back(WhatTwoHave(std::move(copies)));
      }
      replay_ = ReplayLogs(logs, database_.model());
    } catch (const std::runtime_error& error) {
      throw Violation(std::string("reference replay: ") + error.what());
    }
    result_.records = replay_.records;
    result_.splits = replay_.splits;
  }

  void CheckApplied() const {
    for (const VsVector& applied : cluster_.progress().applied) {
      const std::string why = WhyNotClosed(replay_, applied);
      if (!why.empty()) throw Violation("a master's applied logs: " + why);
    }
  }

  void CheckOracle() {
    std::vector<uint64_t> committed;
    for (const auto& [name, end] : replay_.ends) {
      const auto attempt = cluster_.progress().committed.find(name);
      const bool is_known = attempt != cluster_.progress().committed.end();
      if (end != LogReplay::End::kCommitted) continue;
      if (!is_known) throw Violation("I2: a transaction that did not commit has a committed END in the logs");
      committed.push_back(attempt->second.id.value);
    }
    result_.committed = committed.size();
    result_.acknowledged = oracle.acknowledged().size();
    oracle.Survived(committed);
    if (const auto violation = oracle.ViolationOf(committed, oracle.acknowledged())) throw Violation(*violation);
    if (const auto violation = oracle.WrongRowOf(committed, RowsOfReplay())) throw Violation(*violation);
    std::vector<uint64_t> seen = committed;
    for (const TxnId id : oracle.acknowledged()) seen.push_back(id.value);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    if (const auto anomaly = oracle.AnomalyAmong(seen, /*snapshots=*/false)) throw Violation("I10: " + *anomaly);
  }

  std::vector<RowVersion> RowsOfReplay() const {
    std::vector<RowVersion> rows;
    for (const auto& [id, page] : replay_.pages) {
      for (const auto& [key, row] : page.rows) {
        if (!row.current.present) continue;
        rows.push_back({TableId(static_cast<uint16_t>(page.tree - 1)), key,
                        HashOf(std::as_bytes(std::span(row.current.image.data(), row.current.image.size())))});
      }
    }
    return rows;
  }

  void CheckTrees() {
    const Database& tables = database_.loaded();
    for (size_t i = 0; i < tables.table_count(); ++i) {
      const TableId table = Database::IdOf(i);
      const auto tree = mm::reference::CheckTree(replay_.pages, mm::TreeOf(table).value(), mm::RootOf(table).value());
      if (!tree.problems.empty()) throw Violation("tree of table " + std::to_string(i) + ": " + tree.problems.front());
    }
  }

  // A page's bytes, if they are not those of another page that was compared: parsing takes long.
  void Compare(uint64_t id, const mm::SlottedPage& page, const std::string& whose) {
    std::string& known = bytes_[id];
    const std::string_view bytes(reinterpret_cast<const char*>(page.bytes().data()), mm::kPageBytes);
    if (known == bytes) return;
    if (const char* fault = page.WhyInvalid(PageId(id))) throw Violation(NameOfPage(id) + " " + whose + ": " + fault);
    if (ParsePage(page.bytes()) != replay_.pages.at(id)) {
      const ModelPage &expected = replay_.pages.at(id), is = ParsePage(page.bytes());
      const auto version = [](const ModelPage& of) {
        return "time " + std::to_string(of.lsn_time) + " of master " + std::to_string(of.lsn_master);
      };
      throw Violation("I4: " + NameOfPage(id) + " " + whose + " is not that of the reference replay: " + version(is) +
                      ", not " + version(expected));
    }
    known = bytes;
  }

  void CheckPageStores() {
    PageReader reader(cluster_.net());
    for (uint8_t store = 0; store < cluster_.setup().page_stores; ++store) {
      const VsVector progress = cluster_.page_store(store).store().progress();
      size_t asked = 0;
      reader.pages().clear();
      for (const auto& [id, page] : replay_.pages) {
        if (page.lsn_time == 0) continue;
        reader.Ask({Role::kPageStore, store}, PageId(id), progress);
        ++asked;
      }
      AwaitThat("a Page Store does not answer", [&] { return reader.pages().size() == asked; });
      for (const auto& [id, page] : reader.pages()) {
        if (!page) throw Violation(NameOfPage(id) + " is not at a Page Store in its newest version");
        Compare(id, *page, "of page store " + std::to_string(store));
      }
    }
  }

  void CheckBuffers() {
    for (uint32_t i = 0; i < cluster_.masters(); ++i) {
      if (!IsAlive(i)) continue;
      mm::Master& master = cluster_.master(i).master();
      for (const auto& [id, page] : replay_.pages) {
        if (page.lsn_time == 0 || !master.locks().HeldMode(PageId(id))) continue;
        mm::PageFrame* const frame = master.pages().Pin(PageId(id), mm::LockMode::kShared, /*may_wait=*/false);
        if (frame == nullptr) continue;
        Compare(id, frame->page, "in the buffer of master " + std::to_string(i));
        master.pages().Unpin(*frame, mm::LockMode::kShared);
        ++result_.pages_of_buffers;
      }
    }
  }

  void CheckRowsReadBy(uint32_t master) {
    const std::unique_ptr<Database> left = database_.EmptyTables();
    mm::MmTransaction txn = cluster_.master(master).master().NewTransaction();
    txn.Begin(mm::BeginTime(NowNanos()));
    if (mm::CopyRows(txn, *left) != Outcome::kOk) throw Violation("I11: a row lock keeps all rows from being read");
    txn.Commit();
    const auto in_order = [](std::vector<RowVersion> rows) {
      const auto place = [](const RowVersion& row) { return std::pair(row.table.value(), row.key); };
      std::sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
      return rows;
    };
    const std::vector<RowVersion> read = in_order(RowsOf(*left)), expected = in_order(RowsOfReplay());
    const bool same = std::equal(read.begin(), read.end(), expected.begin(), expected.end(), [](auto& a, auto& b) {
      return a.table == b.table && a.key == b.key && a.version == b.version;
    });
    if (!same) throw Violation("I4: master " + std::to_string(master) + " reads other rows than the logs have");
    if (const auto wrong = database_.Inconsistency(*left, oracle.acknowledged()))
      throw Violation("workload: " + *wrong);
  }

  void AwaitNoLocks() {
    std::string left;
    const auto none = [&] {
      return cluster_.locks().With([&](mm::GlobalLocks& locks) {
        left = locks.reported_waits() > 0 ? "a wait" : "";
        for (const auto& [id, page] : replay_.pages) {
          const mm::RowLocks rows = locks.RowLocksOf(PageId(id));
          rows.ForEach([&, page_id = id](const mm::RowLock& lock) {
            left = "a row lock on " + NameOfPage(page_id) + " of transaction " + std::to_string(lock.owner.sequence) +
                   " of master " + std::to_string(lock.owner.master.value());
          });
        }
        return left.empty();
      });
    };
    try {
      AwaitThat("", none);
    } catch (const Violation& violation) {
      throw Violation(left.empty() ? violation.what() : "the lock process keeps " + left + ", and all have ended");
    }
  }

  SimCluster& cluster_;
  const ClusterDatabase& database_;
  LogReplay replay_;
  std::map<uint64_t, std::string> bytes_;  // of pages that were compared with the replay
  CheckedCluster result_;
};

}  // namespace

CheckedCluster CheckCluster(SimCluster& cluster, const ClusterDatabase& database) {
  return Checks(cluster, database).Run();
}

}  // namespace dbx::sim
