// Payment and New-Order as stored procedures. Include tpcc.h. The others: scanning_procedures.h.
//
// Contended rows, the district and the warehouse, are accessed as late as the data flow allows, so that they are locked
// for the shortest time: New-Order does not need the district until it inserts the order, and Payment ends with the
// warehouse.
#pragma once

#include <charconv>
#include <cstring>

#include "benchmarks/tpcc/tpcc_workload.h"
#include "storage/tuple.h"

namespace dbx {
namespace tpcc {

// C_DATA of a customer with bad credit: this payment's identifiers before the old text, which moves right.
inline Text<500> PrependPayment(const Text<500>& old, uint32_t c_id, const PaymentArgs& args) {
  Text<500> data;
  char* at = data.data();
  for (uint32_t number : {c_id, uint32_t{args.c_d_id}, uint32_t{args.c_w_id}, uint32_t{args.d_id}, uint32_t{args.w_id},
                          args.amount_cents}) {
    // Six numbers of at most ten digits always fit.
    at = std::to_chars(at, data.data() + data.size(), number).ptr;
    *at++ = ' ';
  }
  const size_t used = static_cast<size_t>(at - data.data());
  std::memcpy(at, old.data(), old.size() - used);
  return data;
}

// H_DATA: W_NAME, four spaces, D_NAME.
inline Text<24> HistoryData(const Text<10>& warehouse_name, const Text<10>& district_name) {
  Text<24> data;
  std::memcpy(data.data(), warehouse_name.data(), 10);
  std::memcpy(data.data() + 10, "    ", 4);
  std::memcpy(data.data() + 14, district_name.data(), 10);
  return data;
}

}  // namespace tpcc

template <TxnContext Ctx>
Outcome Tpcc::Run(Ctx& ctx, ProcedureId procedure, std::span<const std::byte> args) {
  if (procedure == tpcc::kPayment) return Payment(ctx, tpcc::LoadArgs<tpcc::PaymentArgs>(args));
  if (procedure == tpcc::kNewOrder) {
    return NewOrder(ctx, tpcc::LoadArgs<tpcc::NewOrderArgs>(args), args.subspan(sizeof(tpcc::NewOrderArgs)));
  }
  if (procedure == tpcc::kOrderStatus) return OrderStatus(ctx, tpcc::LoadArgs<tpcc::OrderStatusArgs>(args));
  if (procedure == tpcc::kDelivery) return Delivery(ctx, tpcc::LoadArgs<tpcc::DeliveryArgs>(args));
  return StockLevel(ctx, tpcc::LoadArgs<tpcc::StockLevelArgs>(args));
}

// By last name: of the n customers with it, ordered by first name, the one at n / 2 rounded up.
inline std::optional<Key> Tpcc::CustomerNamed(uint32_t w, uint32_t d, tpcc::CustomerName customer) const {
  if (!tpcc::IsLastName(customer)) return tpcc::CustomerKey(w, d, customer);
  const uint64_t name = tpcc::LastNameKey(w, d, tpcc::LastNameOf(customer));
  const std::span<const Key> bearers = tables_.customer_by_last_name->Find(name);
  if (bearers.empty()) return std::nullopt;
  return bearers[(bearers.size() - 1) / 2];
}

template <TxnContext Ctx>
Outcome Tpcc::Payment(Ctx& ctx, const tpcc::PaymentArgs& args) {
  const std::optional<Key> customer = CustomerNamed(args.c_w_id, args.c_d_id, args.customer);
  if (!customer) return Outcome::kRollback;
  const uint32_t c_id = tpcc::CustomerIdOf(*customer);
  const int64_t amount = args.amount_cents;
  Outcome outcome = ctx.Update(*tables_.customer, *customer, [&](auto& tuple) {
    tpcc::CustomerAccount account = tuple.Get(&tpcc::Customer::account);
    account.balance -= amount;
    account.ytd_payment += amount;
    ++account.payment_cnt;
    tuple.Set(&tpcc::Customer::account, account);
    if (tuple.Get(&tpcc::Customer::credit) == tpcc::Text<2>{'B', 'C'}) {
      tuple.Set(&tpcc::Customer::data, tpcc::PrependPayment(tuple.Get(&tpcc::Customer::data), c_id, args));
    }
  });
  if (outcome != Outcome::kOk) return outcome;
  tpcc::Text<10> district_name;
  outcome = ctx.Update(*tables_.district, tpcc::DistrictKey(args.w_id, args.d_id), [&](auto& tuple) {
    tuple.Set(&tpcc::District::ytd, tuple.Get(&tpcc::District::ytd) + amount);
    district_name = tuple.Get(&tpcc::District::name);
  });
  if (outcome != Outcome::kOk) return outcome;
  tpcc::Text<10> warehouse_name;
  outcome = PayAtWarehouse(ctx, args, warehouse_name);
  if (outcome != Outcome::kOk) return outcome;
  const tpcc::History history{.date = args.date,
                              .amount = amount,
                              .c_id = static_cast<int32_t>(c_id),
                              .c_d_id = args.c_d_id,
                              .c_w_id = args.c_w_id,
                              .d_id = args.d_id,
                              .w_id = args.w_id,
                              .data = tpcc::HistoryData(warehouse_name, district_name),
                              .zero = {}};
  return ctx.Insert(*tables_.history, args.id.value, tpcc::TupleBytes(history));
}

template <TxnContext Ctx>
Outcome Tpcc::PayAtWarehouse(Ctx& ctx, const tpcc::PaymentArgs& args, tpcc::Text<10>& name) {
  const Key key = tpcc::WarehouseKey(args.w_id);
  if (!config_.wh_update) {
    return ctx.Read(*tables_.warehouse, key, [&](const auto& tuple) { name = tuple.Get(&tpcc::Warehouse::name); });
  }
  return ctx.Update(*tables_.warehouse, key, [&](auto& tuple) {
    tuple.Set(&tpcc::Warehouse::ytd, tuple.Get(&tpcc::Warehouse::ytd) + args.amount_cents);
    name = tuple.Get(&tpcc::Warehouse::name);
  });
}

template <TxnContext Ctx>
Outcome Tpcc::TakeFromStock(Ctx& ctx, const tpcc::NewOrderArgs& args, const tpcc::NewOrderLine& wanted,
                            tpcc::OrderLine& line) {
  int64_t price = 0;
  const Outcome found = ctx.Read(*tables_.item, tpcc::ItemKey(wanted.i_id),
                                 [&](const auto& tuple) { price = tuple.Get(&tpcc::Item::price); });
  // An unused item: the user's mistake, which the standard asks to roll back.
  if (found == Outcome::kNotFound) return Outcome::kRollback;
  if (found != Outcome::kOk) return found;
  const int32_t quantity = wanted.quantity;
  line.amount = price * quantity;
  line.delivery_d = tpcc::kNotDelivered;
  line.i_id = static_cast<int32_t>(wanted.i_id);
  line.supply_w_id = wanted.supply_w_id;
  line.quantity = wanted.quantity;
  const size_t dist_offset = OffsetOf(&tpcc::Stock::dist) + (args.d_id() - 1) * sizeof(tpcc::Text<24>);
  return ctx.Update(*tables_.stock, tpcc::StockKey(wanted.supply_w_id, wanted.i_id), [&](auto& tuple) {
    tpcc::StockLevel level = tuple.Get(&tpcc::Stock::level);
    level.quantity -= level.quantity >= quantity + 10 ? quantity : quantity - 91;
    level.ytd += quantity;
    ++level.order_cnt;
    level.remote_cnt += wanted.supply_w_id != args.w_id;
    tuple.Set(&tpcc::Stock::level, level);
    line.dist_info = tuple.template GetAt<tpcc::Text<24>>(dist_offset);
  });
}

template <TxnContext Ctx>
Outcome Tpcc::NewOrder(Ctx& ctx, const tpcc::NewOrderArgs& args, std::span<const std::byte> line_bytes) {
  tpcc::OrderLine lines[tpcc::kLinesMax];
  const size_t line_count = line_bytes.size() / sizeof(tpcc::NewOrderLine);
  bool all_local = true;
  int64_t total = 0;
  for (size_t i = 0; i < line_count; ++i) {
    const auto wanted = tpcc::LoadArgs<tpcc::NewOrderLine>(line_bytes, i * sizeof(tpcc::NewOrderLine));
    const Outcome taken = TakeFromStock(ctx, args, wanted, lines[i]);
    if (taken != Outcome::kOk) return taken;
    all_local &= wanted.supply_w_id == args.w_id;
    total += lines[i].amount;
  }
  const uint32_t d_id = args.d_id();
  int64_t discount = 0, warehouse_tax = 0, district_tax = 0;
  Outcome outcome = ctx.Read(*tables_.customer, tpcc::CustomerKey(args.w_id, d_id, args.c_id()),
                             [&](const auto& tuple) { discount = tuple.Get(&tpcc::Customer::discount); });
  if (outcome != Outcome::kOk) return outcome;
  outcome = ctx.Read(*tables_.warehouse, tpcc::WarehouseKey(args.w_id),
                     [&](const auto& tuple) { warehouse_tax = tuple.Get(&tpcc::Warehouse::tax); });
  if (outcome != Outcome::kOk) return outcome;
  int32_t o_id = 0;
  outcome = ctx.Update(*tables_.district, tpcc::DistrictKey(args.w_id, d_id), [&](auto& tuple) {
    o_id = tuple.Get(&tpcc::District::next_o_id);
    district_tax = tuple.Get(&tpcc::District::tax);
    tuple.Set(&tpcc::District::next_o_id, o_id + 1);
  });
  if (outcome != Outcome::kOk) return outcome;
  total = total * (10'000 - discount) / 10'000 * (10'000 + warehouse_tax + district_tax) / 10'000;
  tpcc::Show(total);
  const tpcc::Order order{.entry_d = args.entry_date,
                          .c_id = static_cast<int32_t>(args.c_id()),
                          .carrier_id = tpcc::kNoCarrier,
                          .ol_cnt = static_cast<uint8_t>(line_count),
                          .all_local = all_local,
                          .zero = {}};
  return InsertOrder(ctx, tpcc::OrderKey(args.w_id, d_id, static_cast<uint32_t>(o_id)), order,
                     std::span(lines, line_count));
}

// Only when the order has its number are the keys known; the cache misses overlap. The lines of an order fill up to
// four buckets of a hash index.
inline void Tpcc::PrefetchNewOrder(Key order_key, size_t line_count) const {
  tables_.order->PrefetchBucket(order_key);
  if (config_.full_mix) return;  // the ends of the districts in the ordered indexes stay in cache
  for (uint32_t number = 0; number <= line_count; number += 4) {
    tables_.order_line->PrefetchBucket(tpcc::OrderLineKey(order_key, number));
  }
  tables_.new_order->PrefetchBucket(order_key);
}

template <TxnContext Ctx>
Outcome Tpcc::InsertOrder(Ctx& ctx, Key order_key, const tpcc::Order& order, std::span<const tpcc::OrderLine> lines) {
  PrefetchNewOrder(order_key, lines.size());
  Outcome outcome = ctx.Insert(*tables_.order, order_key, tpcc::TupleBytes(order));
  if (outcome != Outcome::kOk) return outcome;
  const uint32_t o_id = tpcc::OrderIdOf(order_key);
  outcome = ctx.Insert(*tables_.new_order, order_key, tpcc::TupleBytes(tpcc::NewOrder{o_id}));
  if (outcome != Outcome::kOk) return outcome;
  if (config_.full_mix) {
    const Key district = order_key >> tpcc::kOrderBits;
    const Key customer = district << tpcc::kCustomerBits | static_cast<uint32_t>(order.c_id);
    outcome = ctx.Insert(*tables_.order_by_customer, tpcc::OrderByCustomerKey(customer, o_id),
                         tpcc::TupleBytes(tpcc::OrderByCustomer{order_key}));
  }
  for (uint32_t number = 1; outcome == Outcome::kOk && number <= lines.size(); ++number) {
    outcome =
        ctx.Insert(*tables_.order_line, tpcc::OrderLineKey(order_key, number), tpcc::TupleBytes(lines[number - 1]));
  }
  return outcome;
}

}  // namespace dbx
