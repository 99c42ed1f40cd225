// TPC-C: Payment and New-Order with all their inserts, over all nine tables of the standard (revision 5.11,
// sections 2.4 and 2.5).
//
// A worker's terminals belong to the warehouse worker % warehouses + 1; 15 % of the payments come from a customer
// of another warehouse, 1 % of the order lines are supplied by one. 1 % of the New-Orders name an unused item
// and roll back. What the standard shows on the terminal and stores nowhere is not read.
// The procedures are in procedures.h, the initial rows in load.cpp, the conditions in consistency.cpp.
// Threads: Generate, Run, ValidArgs and the prefetches may run in any number of threads after Load.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "benchmarks/tpcc/arguments.h"
#include "benchmarks/tpcc/schema.h"
#include "benchmarks/workload.h"

namespace dbx {

struct TpccConfig {
  uint32_t warehouses = 1;
  double perc_payment = 0.5;  // the rest are New-Orders
  bool wh_update = true;      // false: a Payment reads the warehouse and leaves W_YTD alone
  bool small = false;         // small cardinalities, for tests
  // Hints for the size of the indexes: transactions of the whole run, of all workers.
  uint64_t expected_new_orders = 0;
  uint64_t expected_payments = 0;
};

class Tpcc {
 public:
  // The tables in the order of their creation.
  struct Tables {
    Table* warehouse = nullptr;
    Table* district = nullptr;
    Table* customer = nullptr;
    Table* history = nullptr;
    Table* new_order = nullptr;
    Table* order = nullptr;
    Table* order_line = nullptr;
    Table* item = nullptr;
    Table* stock = nullptr;
    SecondaryIndex* customer_by_last_name = nullptr;
  };

  // Throws Error(kUsage) where a value is out of range.
  explicit Tpcc(const TpccConfig& config);

  void CreateTables(Database& db);
  void Load(Database& db, uint64_t seed, uint32_t threads);
  void Adopt(Database& db, uint64_t seed);
  CallList Generate(WorkerId worker, uint64_t count, uint64_t seed) const;

  // Backs the rows that `transactions` of this worker will insert with pages, ahead of a measured interval:
  // otherwise nearly half the time of a New-Order goes into the kernel's clearing of fresh pages.
  void Prefault(WorkerId worker, uint64_t transactions);

  template <TxnContext Ctx>
  Outcome Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args);

  bool ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const;
  void PrefetchBuckets(const Call& call) const;
  void PrefetchRows(const Call& call) const;

  // Consistency conditions 1 to 12 of the standard (section 3.3.2), as far as Payment and New-Order can
  // break them, and that the stock agrees with the order lines. Names the first that is violated.
  std::optional<std::string> Inconsistency(const Database& db) const;

  const Tables& tables() const { return tables_; }
  const tpcc::Cardinalities& cardinalities() const { return cardinalities_; }

 private:
  // benchmarks/tpcc/procedures.h
  template <TxnContext Ctx>
  Outcome Payment(Ctx& ctx, const tpcc::PaymentArgs& args);
  template <TxnContext Ctx>
  Outcome PayAtWarehouse(Ctx& ctx, const tpcc::PaymentArgs& args, tpcc::Text<10>& name);
  template <TxnContext Ctx>
  Outcome NewOrder(Ctx& ctx, const tpcc::NewOrderArgs& args, std::span<const std::byte> line_bytes);
  template <TxnContext Ctx>
  Outcome TakeFromStock(Ctx& ctx, const tpcc::NewOrderArgs& args, const tpcc::NewOrderLine& wanted,
                        tpcc::OrderLine& line);
  template <TxnContext Ctx>
  Outcome InsertOrder(Ctx& ctx, Key order_key, const tpcc::Order& order, std::span<const tpcc::OrderLine> lines);

  std::optional<Key> PayingCustomer(const tpcc::PaymentArgs& args) const;

  // benchmarks/tpcc/load.cpp
  void LoadItems(WorkerId worker, uint64_t task, Random random);
  void LoadStock(WorkerId worker, uint64_t task, Random random);
  void LoadWarehouse(WorkerId worker, uint32_t w, Random random);
  void LoadDistrict(WorkerId worker, uint32_t w, uint32_t d, Random random);
  void LoadCustomers(WorkerId worker, uint32_t w, uint32_t d, Random& random);
  void LoadOrders(WorkerId worker, uint32_t w, uint32_t d, Random& random);
  void LoadOrderLines(WorkerId worker, uint32_t w, Key order_key, const tpcc::Order& order, Random& random);

  uint32_t ChooseCustomer(Random& random) const;
  uint32_t OtherWarehouse(Random& random, uint32_t home) const;
  tpcc::PaymentArgs ChoosePayment(Random& random, uint32_t home, uint32_t date) const;
  void AppendNewOrder(Random& random, uint32_t home, uint32_t date, std::vector<uint64_t>& storage) const;
  bool ValidPayment(std::span<const std::byte> bytes) const;
  bool ValidNewOrder(std::span<const std::byte> bytes) const;

  TpccConfig config_;
  tpcc::Cardinalities cardinalities_;
  Tables tables_;
};

}  // namespace dbx

#include "benchmarks/tpcc/procedures.h"

namespace dbx {
static_assert(Workload<Tpcc>);
}
