// TPC-C (revision 5.11 of the standard): all nine tables, all five transactions with all their inserts and deletes.
//
// Two mixes. DBx1000's is Payment and New-Order with a share to choose; neither scans, so every table has a hash index.
// The full one is the standard's (section 5.2.3), drawn call by call, without think times: 45 % New-Order, 43 %
// Payment, 4 % each Order-Status, Delivery and Stock-Level. There NEW-ORDER and ORDER-LINE are ordered, and one more
// table, ORDER-BY-CUSTOMER, leads from a customer to the newest of the orders.
//
// A worker's terminals belong to the warehouse worker % warehouses + 1; 15 % of the payments come from a customer of
// another warehouse, 1 % of the order lines are supplied by one. 1 % of the New-Orders name an unused item and roll
// back. A Delivery is one transaction for the ten districts of its warehouse. Columns that the standard only displays
// are not read by Payment and New-Order; Order-Status and Stock-Level, whose sole purpose is to display them, do read
// them.
//
// Inconsistent rows (an order without its lines) give kNotFound. No serializable execution ends so; under optimistic
// concurrency control a transaction that has read an inconsistent state may, before validation aborts it.
//
// The procedures are in procedures.h and scanning_procedures.h, the calls in calls.cpp, the initial rows in load.cpp,
// the conditions in consistency.cpp.
// Threads: Generate, Run, ValidArgs and the prefetches may run in any number of threads after Load.
#pragma once

#include <array>
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
  bool full_mix = false;      // the standard's mix of all five
  double perc_payment = 0.5;  // without full_mix: the rest are New-Orders
  bool wh_update = true;      // false: a Payment reads the warehouse and does not update W_YTD
  bool small = false;         // small cardinalities, for tests
  // Hints for the size of the indexes: transactions of the whole run, of all workers.
  uint64_t expected_new_orders = 0;
  uint64_t expected_payments = 0;

  double payment_share() const { return full_mix ? tpcc::kFullMix[0] / 100.0 : perc_payment; }
  double new_order_share() const { return full_mix ? tpcc::kFullMix[1] / 100.0 : 1 - perc_payment; }
};

class Tpcc {
 public:
  // By procedure id.
  static constexpr std::array kProcedureNames = {"Payment", "New-Order", "Order-Status", "Delivery", "Stock-Level"};

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
    Table* order_by_customer = nullptr;  // in the full mix only
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
  void PrefetchRows(const Call& call, WrittenRows written) const;

  // Consistency conditions 1 to 12 of the standard (section 3.3.2), that the stock agrees with the order lines, and
  // that ORDER-BY-CUSTOMER leads to every order. Names the first that is violated.
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

  void PrefetchNewOrder(Key order_key, size_t line_count) const;
  std::optional<Key> CustomerNamed(uint32_t w, uint32_t d, tpcc::CustomerName customer) const;

  // benchmarks/tpcc/scanning_procedures.h
  template <TxnContext Ctx>
  Outcome OrderStatus(Ctx& ctx, const tpcc::OrderStatusArgs& args);
  template <TxnContext Ctx>
  Outcome Delivery(Ctx& ctx, const tpcc::DeliveryArgs& args);
  template <TxnContext Ctx>
  Outcome DeliverOldest(Ctx& ctx, const tpcc::DeliveryArgs& args, uint32_t d);
  template <TxnContext Ctx>
  Outcome DeliverLines(Ctx& ctx, const tpcc::DeliveryArgs& args, Key order_key, uint32_t line_count, int64_t& amount);
  template <TxnContext Ctx>
  Outcome StockLevel(Ctx& ctx, const tpcc::StockLevelArgs& args);
  template <TxnContext Ctx>
  Outcome CountLowStock(Ctx& ctx, const tpcc::StockLevelArgs& args, std::span<const uint32_t> items);

  // benchmarks/tpcc/load.cpp
  void LoadItems(WorkerId worker, uint64_t task, Random random);
  void LoadStock(WorkerId worker, uint64_t task, Random random);
  void LoadWarehouse(WorkerId worker, uint32_t w, Random random);
  void LoadDistrict(WorkerId worker, uint32_t w, uint32_t d, Random random);
  void LoadCustomers(WorkerId worker, uint32_t w, uint32_t d, Random& random);
  void LoadOrders(WorkerId worker, uint32_t w, uint32_t d, Random& random);
  void LoadOrderLines(WorkerId worker, uint32_t w, Key order_key, const tpcc::Order& order, Random& random);

  // benchmarks/tpcc/calls.cpp
  ProcedureId ChooseProcedure(Random& random) const;
  uint32_t ChooseCustomer(Random& random) const;
  tpcc::CustomerName NameCustomer(Random& random) const;
  uint32_t OtherWarehouse(Random& random, uint32_t home) const;
  tpcc::PaymentArgs ChoosePayment(Random& random, uint32_t home, uint32_t date) const;
  tpcc::OrderStatusArgs ChooseOrderStatus(Random& random, uint32_t home) const;
  tpcc::DeliveryArgs ChooseDelivery(Random& random, uint32_t home, uint32_t date) const;
  tpcc::StockLevelArgs ChooseStockLevel(Random& random, uint32_t home) const;
  void AppendNewOrder(Random& random, uint32_t home, uint32_t date, std::vector<uint64_t>& storage) const;
  bool ValidCustomer(tpcc::CustomerName customer) const;
  bool ValidPayment(std::span<const std::byte> bytes) const;
  bool ValidNewOrder(std::span<const std::byte> bytes) const;
  bool ValidOrderStatus(std::span<const std::byte> bytes) const;
  bool ValidDelivery(std::span<const std::byte> bytes) const;
  bool ValidStockLevel(std::span<const std::byte> bytes) const;
  void PrefetchCustomerBucket(uint32_t w, uint32_t d, tpcc::CustomerName customer) const;

  TpccConfig config_;
  tpcc::Cardinalities cardinalities_;
  Tables tables_;
};

}  // namespace dbx
