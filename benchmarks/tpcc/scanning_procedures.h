// Order-Status, Delivery and Stock-Level as stored procedures (sections 2.6 to 2.8 of the standard). Include tpcc.h.
//
// They scan, so they run in the full mix alone. Order-Status and Stock-Level are read-only. The rows that each finds
// must be consistent (an order has the lines that it claims, the last orders of a district have consecutive numbers);
// kNotFound where it does not.
#pragma once

#include <iterator>

#include "base/check.h"
#include "benchmarks/tpcc/procedures.h"
#include "benchmarks/tpcc/tpcc_workload.h"
#include "storage/tuple.h"

namespace dbx {
namespace tpcc {

inline constexpr uint32_t kOrdersLookedAt = 20;  // by Stock-Level

// The distinct items of the lines that a Stock-Level reads. An open-addressing table, never more than two thirds full.
class ItemSet {
 public:
  // False: it was there.
  bool Add(uint32_t item) {
    for (uint32_t slot = item * 0x9e3779b1u >> (32 - kSlotBits);; slot = (slot + 1) & (kSlots - 1)) {
      if (slots_[slot] == item) return false;
      if (slots_[slot] != 0) continue;
      ASSERT(count_ < std::size(items_));
      slots_[slot] = item;
      items_[count_++] = item;
      return true;
    }
  }
  std::span<const uint32_t> items() const { return {items_, count_}; }

 private:
  static constexpr uint32_t kSlotBits = 9;
  static constexpr uint32_t kSlots = 1u << kSlotBits;

  uint32_t slots_[kSlots]{};
  uint32_t items_[kOrdersLookedAt * (kLineMax + 1)];  // as many as the scanned keys can name
  uint32_t count_ = 0;
};

}  // namespace tpcc

template <TxnContext Ctx>
Outcome Tpcc::OrderStatus(Ctx& ctx, const tpcc::OrderStatusArgs& args) {
  const std::optional<Key> customer = CustomerNamed(args.w_id, args.d_id, args.customer);
  if (!customer) return Outcome::kRollback;
  int64_t balance = 0;
  Outcome outcome = ctx.Read(*tables_.customer, *customer, [&](const auto& tuple) {
    balance = tuple.Get(&tpcc::Customer::account).balance;
    tpcc::Show(tuple.Get(&tpcc::Customer::first)[0] + tuple.Get(&tpcc::Customer::last)[0]);
  });
  if (outcome != Outcome::kOk) return outcome;
  Key order_key = 0;
  outcome = ctx.Scan(*tables_.order_by_customer, tpcc::OrderByCustomerKey(*customer, 0),
                     tpcc::OrderByCustomerKey(*customer, tpcc::kOrderMax), ScanOrder::kDescending,
                     [&](Key, const auto& tuple) {
                       order_key = tuple.Get(&tpcc::OrderByCustomer::order);
                       return false;
                     });
  if (outcome != Outcome::kOk) return outcome;
  // Every customer has ordered.
  if (order_key == 0) return Outcome::kNotFound;
  uint32_t line_count = 0;
  outcome = ctx.Read(*tables_.order, order_key, [&](const auto& tuple) {
    line_count = tuple.Get(&tpcc::Order::ol_cnt);
    tpcc::Show(tuple.Get(&tpcc::Order::entry_d) + tuple.Get(&tpcc::Order::carrier_id));
  });
  if (outcome != Outcome::kOk) return outcome;
  uint32_t lines = 0;
  int64_t shown = balance;
  outcome = ctx.Scan(*tables_.order_line, tpcc::OrderLineKey(order_key, 0),
                     tpcc::OrderLineKey(order_key, tpcc::kLineMax), ScanOrder::kAscending, [&](Key, const auto& tuple) {
                       shown += tuple.Get(&tpcc::OrderLine::amount) + tuple.Get(&tpcc::OrderLine::delivery_d) +
                                tuple.Get(&tpcc::OrderLine::i_id) + tuple.Get(&tpcc::OrderLine::supply_w_id) +
                                tuple.Get(&tpcc::OrderLine::quantity);
                       ++lines;
                       return true;
                     });
  if (outcome != Outcome::kOk) return outcome;
  tpcc::Show(shown);
  return lines == line_count ? Outcome::kOk : Outcome::kNotFound;
}

template <TxnContext Ctx>
Outcome Tpcc::Delivery(Ctx& ctx, const tpcc::DeliveryArgs& args) {
  for (uint32_t d = 1; d <= tpcc::kDistrictsPerWarehouse; ++d) {
    const Outcome outcome = DeliverOldest(ctx, args, d);
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

// A district without undelivered orders is skipped.
template <TxnContext Ctx>
Outcome Tpcc::DeliverOldest(Ctx& ctx, const tpcc::DeliveryArgs& args, uint32_t d) {
  Key order_key = 0;
  Outcome outcome =
      ctx.Scan(*tables_.new_order, tpcc::OrderKey(args.w_id, d, 0), tpcc::OrderKey(args.w_id, d, tpcc::kOrderMax),
               ScanOrder::kAscending, [&](Key key, const auto&) {
                 order_key = key;
                 return false;
               });
  if (outcome != Outcome::kOk || order_key == 0) return outcome;
  outcome = ctx.Delete(*tables_.new_order, order_key);
  if (outcome != Outcome::kOk) return outcome;
  uint32_t c_id = 0, line_count = 0;
  bool was_delivered = false;
  outcome = ctx.Update(*tables_.order, order_key, [&](auto& tuple) {
    c_id = static_cast<uint32_t>(tuple.Get(&tpcc::Order::c_id));
    line_count = tuple.Get(&tpcc::Order::ol_cnt);
    was_delivered = tuple.Get(&tpcc::Order::carrier_id) != tpcc::kNoCarrier;
    tuple.Set(&tpcc::Order::carrier_id, args.carrier_id);
  });
  if (outcome != Outcome::kOk) return outcome;
  if (was_delivered) return Outcome::kNotFound;
  int64_t amount = 0;
  outcome = DeliverLines(ctx, args, order_key, line_count, amount);
  if (outcome != Outcome::kOk) return outcome;
  return ctx.Update(*tables_.customer, tpcc::CustomerKey(args.w_id, d, c_id), [&](auto& tuple) {
    tpcc::CustomerAccount account = tuple.Get(&tpcc::Customer::account);
    account.balance += amount;
    ++account.delivery_cnt;
    tuple.Set(&tpcc::Customer::account, account);
  });
}

template <TxnContext Ctx>
Outcome Tpcc::DeliverLines(Ctx& ctx, const tpcc::DeliveryArgs& args, Key order_key, uint32_t line_count,
                           int64_t& amount) {
  for (uint32_t number = 1; number <= line_count; ++number) {
    const Outcome outcome = ctx.Update(*tables_.order_line, tpcc::OrderLineKey(order_key, number), [&](auto& tuple) {
      amount += tuple.Get(&tpcc::OrderLine::amount);
      tuple.Set(&tpcc::OrderLine::delivery_d, args.date);
    });
    if (outcome != Outcome::kOk) return outcome;
  }
  return Outcome::kOk;
}

template <TxnContext Ctx>
Outcome Tpcc::StockLevel(Ctx& ctx, const tpcc::StockLevelArgs& args) {
  uint32_t next_o_id = 0;
  Outcome outcome = ctx.Read(*tables_.district, tpcc::DistrictKey(args.w_id, args.d_id), [&](const auto& tuple) {
    next_o_id = static_cast<uint32_t>(tuple.Get(&tpcc::District::next_o_id));
  });
  if (outcome != Outcome::kOk) return outcome;
  // There are at least as many initial orders.
  const Key oldest = tpcc::OrderKey(args.w_id, args.d_id, next_o_id - tpcc::kOrdersLookedAt);
  const Key newest = tpcc::OrderKey(args.w_id, args.d_id, next_o_id - 1);
  tpcc::ItemSet items;
  uint32_t orders = 0;
  Key last_order = 0;
  outcome = ctx.Scan(*tables_.order_line, tpcc::OrderLineKey(oldest, 0), tpcc::OrderLineKey(newest, tpcc::kLineMax),
                     ScanOrder::kAscending, [&](Key key, const auto& tuple) {
                       orders += key >> tpcc::kLineBits != last_order;
                       last_order = key >> tpcc::kLineBits;
                       const auto item = static_cast<uint32_t>(tuple.Get(&tpcc::OrderLine::i_id));
                       if (items.Add(item)) tables_.stock->PrefetchBucket(tpcc::StockKey(args.w_id, item));
                       return true;
                     });
  if (outcome != Outcome::kOk) return outcome;
  if (orders != tpcc::kOrdersLookedAt) return Outcome::kNotFound;
  return CountLowStock(ctx, args, items.items());
}

template <TxnContext Ctx>
Outcome Tpcc::CountLowStock(Ctx& ctx, const tpcc::StockLevelArgs& args, std::span<const uint32_t> items) {
  // Rows prefetched while others are read.
  constexpr size_t kRowsAhead = 8;
  const auto prefetch = [&](size_t i) {
    if (i < items.size()) tables_.stock->PrefetchRow(tpcc::StockKey(args.w_id, items[i]), sizeof(tpcc::StockLevel));
  };
  for (size_t i = 0; i < kRowsAhead; ++i) prefetch(i);
  int64_t low = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    prefetch(i + kRowsAhead);
    int32_t quantity = 0;
    const Outcome outcome = ctx.Read(*tables_.stock, tpcc::StockKey(args.w_id, items[i]),
                                     [&](const auto& tuple) { quantity = tuple.Get(&tpcc::Stock::level).quantity; });
    if (outcome != Outcome::kOk) return outcome;
    low += quantity < args.threshold;
  }
  tpcc::Show(low);
  return Outcome::kOk;
}

}  // namespace dbx
