// Claims about what the full mix adds to TPC-C: Order-Status, Delivery and Stock-Level, and where they find their rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "benchmarks/tpcc/tpcc.h"
#include "system/replay/replay_transaction.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using namespace tpcc;

constexpr TpccConfig kFullMix2{.warehouses = 2, .full_mix = true, .small = true};

template <class S>
S RowOf(MapContext& context, const Table* table, Key key) {
  S tuple;
  std::memcpy(&tuple, context.map(*table).at(key).data(), sizeof tuple);
  return tuple;
}

// Remembers the keys that were read in each table.
class Recorder : public MapContext {
 public:
  using MapContext::MapContext;
  template <class Visit>
  Outcome Read(Table& table, Key key, Visit&& visit) {
    reads.emplace(&table, key);
    return MapContext::Read(table, key, visit);
  }
  std::set<std::pair<const Table*, Key>> reads;
};

class TpccFullMixTest : public testing::Test {
 protected:
  TpccFullMixTest() : db_({}, 1), tpcc_(kFullMix2) {
    tpcc_.CreateTables(db_);
    tpcc_.Load(db_, 1, 1);
    context_.emplace(db_);
  }
  const Tpcc::Tables& t() const { return tpcc_.tables(); }

  template <class Args>
  Outcome Run(ProcedureId procedure, Args args) {
    const auto bytes = std::as_writable_bytes(std::span(&args, 1));
    EXPECT_TRUE(tpcc_.ValidArgs(procedure, bytes));
    return context_->Execute(tpcc_, Call{procedure, bytes});
  }
  // The same for a procedure that writes nothing; remembers its reads.
  template <class Args>
  Outcome Look(ProcedureId procedure, Args args) {
    const auto bytes = std::as_bytes(std::span(&args, 1));
    EXPECT_TRUE(tpcc_.ValidArgs(procedure, bytes));
    return tpcc_.Run(*context_, procedure, bytes);
  }
  Outcome Deliver(uint32_t date = 99) { return Run(kDelivery, DeliveryArgs{TxnId{1}, date, 1, 4, 0}); }
  std::vector<Key> Undelivered(uint32_t d) {
    std::vector<Key> keys;
    for (const auto& [key, tuple] : context_->map(*t().new_order)) {
      if (key >> kOrderBits == DistrictKey(1, d)) keys.push_back(key);
    }
    return keys;
  }
  // The newest order of customer `c` of warehouse 1, district 3.
  Key NewestOrder(uint32_t c) {
    Key newest = 0;
    for (const auto& [key, tuple] : context_->map(*t().order)) {
      const bool here = key >> kOrderBits == DistrictKey(1, 3);
      if (here && RowOf<Order>(*context_, t().order, key).c_id == static_cast<int32_t>(c)) newest = key;
    }
    return newest;
  }
  // One more order of customer 7 of that district, of five lines.
  void Order5Lines() {
    struct {
      NewOrderArgs args{TxnId{77}, 5, 1, 3 << 12 | 7};
      NewOrderLine lines[5] = {{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {4, 1, 4}, {5, 1, 5}};
    } call;
    ASSERT_EQ(Run(kNewOrder, call), Outcome::kOk);
  }
  void ExpectConsistent() {
    context_->CopyTo(db_);
    EXPECT_EQ(tpcc_.Inconsistency(db_), std::nullopt);
  }

  Database db_;
  Tpcc tpcc_;
  std::optional<Recorder> context_;
};

TEST_F(TpccFullMixTest, WhatIsScannedIsOrderedAndTheRestIsNot) {
  for (uint16_t i = 0; i < db_.table_count(); ++i) {
    const Table& table = db_.table(TableId(i));
    const bool scanned = &table == t().new_order || &table == t().order_line || &table == t().order_by_customer;
    EXPECT_EQ(table.schema().ordered, scanned) << table.schema().name;
  }
  Database plain({}, 1);
  Tpcc({.warehouses = 2, .small = true}).CreateTables(plain);
  EXPECT_EQ(plain.table_count() + 1, db_.table_count());
  for (uint16_t i = 0; i < plain.table_count(); ++i) EXPECT_FALSE(plain.table(TableId(i)).schema().ordered);
}

TEST_F(TpccFullMixTest, EveryOrderIsFoundByItsCustomer) {
  EXPECT_EQ(context_->map(*t().order_by_customer).size(), 600u);
  Order5Lines();
  const Key order = OrderKey(1, 3, 31), entry = OrderByCustomerKey(CustomerKey(1, 3, 7), 31);
  EXPECT_EQ(RowOf<OrderByCustomer>(*context_, t().order_by_customer, entry).order, order);
  ExpectConsistent();
}

TEST_F(TpccFullMixTest, KeysLieInTheOrderOfScans) {
  EXPECT_LT(OrderLineKey(OrderKey(1, 3, 7), kLineMax), OrderLineKey(OrderKey(1, 3, 8), 0));
  EXPECT_LT(OrderKey(1, 3, kOrderMax), OrderKey(1, 4, 0));
  EXPECT_LT(OrderByCustomerKey(CustomerKey(1, 3, 7), kOrderMax), OrderByCustomerKey(CustomerKey(1, 3, 8), 0));
  EXPECT_LT(OrderByCustomerKey(CustomerKey(kWarehousesMax, 10, 3000), kOrderMax), ~Key{0});
}

TEST_F(TpccFullMixTest, GeneratedCallsAreValidAndHaveTheStandardsShares) {
  const Tpcc tpcc({.warehouses = 4, .full_mix = true});
  CallList list = tpcc.Generate(WorkerId(1), 50'000, 3);
  std::array<double, 5> counts{};
  for (Call& call : list.calls) {
    call.set_txn_id(TxnId::Make(WorkerId(1), 3));
    ASSERT_TRUE(tpcc.ValidArgs(call.procedure, call.args));
    ++counts[call.procedure.value()];
  }
  for (size_t i = 0; i < counts.size(); ++i) EXPECT_NEAR(counts[i] / 500, tpcc::kFullMix[i], 0.7) << i;
}

TEST_F(TpccFullMixTest, GenerateIsDeterministicInWorkerAndSeed) {
  const auto list = [&](uint32_t worker, uint64_t seed) { return tpcc_.Generate(WorkerId(worker), 500, seed).storage; };
  EXPECT_EQ(list(2, 7), list(2, 7));
  EXPECT_NE(list(2, 7), list(4, 7));
  EXPECT_NE(list(2, 7), list(2, 8));
}

TEST_F(TpccFullMixTest, OrderStatusReadsTheNewestOrderAndWritesNothing) {
  Order5Lines();
  const uint64_t before = context_->Digest();
  EXPECT_EQ(Look(kOrderStatus, OrderStatusArgs{TxnId{1}, 1, 7, 3, {}}), Outcome::kOk);
  EXPECT_TRUE(context_->reads.contains({t().order, OrderKey(1, 3, 31)}));
  EXPECT_EQ(context_->Digest(), before);
  EXPECT_EQ(Look(kOrderStatus, OrderStatusArgs{TxnId{1}, 1, 8, 3, {}}), Outcome::kOk);
  EXPECT_TRUE(context_->reads.contains({t().order, NewestOrder(8)}));
}

TEST_F(TpccFullMixTest, OrderStatusByLastNameAsksForTheCustomerThatPaymentTakes) {
  const CustomerName name = kByLastName | 4;
  ASSERT_EQ(Look(kOrderStatus, OrderStatusArgs{TxnId{1}, 1, name, 3, {}}), Outcome::kOk);
  ASSERT_EQ(Run(kPayment, PaymentArgs{TxnId::Make(WorkerId(1), 4), 9, 5000, 1, 1, name, 3, 3}), Outcome::kOk);
  for (uint32_t c = 1; c <= 30; ++c) {
    const Key customer = CustomerKey(1, 3, c);
    const bool paid = RowOf<Customer>(*context_, t().customer, customer).account.payment_cnt == 2;
    EXPECT_EQ(context_->reads.contains({t().customer, customer}), paid) << c;
  }
}

TEST_F(TpccFullMixTest, OrderStatusNoticesAMissingLine) {
  context_->Delete(*t().order_line, OrderLineKey(NewestOrder(7), 2));
  EXPECT_EQ(Look(kOrderStatus, OrderStatusArgs{TxnId{1}, 1, 7, 3, {}}), Outcome::kNotFound);
  EXPECT_EQ(Look(kOrderStatus, OrderStatusArgs{TxnId{1}, 1, 8, 3, {}}), Outcome::kOk);
}

TEST_F(TpccFullMixTest, DeliveryTakesTheOldestOrderOfEachDistrict) {
  std::vector<Key> oldest;
  for (uint32_t d = 1; d <= 10; ++d) oldest.push_back(Undelivered(d).front());
  ASSERT_EQ(Deliver(), Outcome::kOk);
  for (uint32_t d = 1; d <= 10; ++d) {
    EXPECT_EQ(Undelivered(d).size(), 8u);
    EXPECT_EQ(Undelivered(d).front(), oldest[d - 1] + 1);
    EXPECT_EQ(RowOf<Order>(*context_, t().order, oldest[d - 1]).carrier_id, 4);
    EXPECT_EQ(RowOf<OrderLine>(*context_, t().order_line, OrderLineKey(oldest[d - 1], 5)).delivery_d, 99);
  }
  EXPECT_EQ(context_->map(*t().new_order).size(), 170u) << "the other warehouse keeps its own";
  ExpectConsistent();
}

TEST_F(TpccFullMixTest, DeliveryCreditsTheCustomerWithTheSumOfTheLines) {
  const Key order_key = Undelivered(3).front();
  const Order order = RowOf<Order>(*context_, t().order, order_key);
  int64_t sum = 0;
  for (uint32_t n = 1; n <= order.ol_cnt; ++n) {
    sum += RowOf<OrderLine>(*context_, t().order_line, OrderLineKey(order_key, n)).amount;
  }
  ASSERT_EQ(Deliver(), Outcome::kOk);
  const Key customer = CustomerKey(1, 3, static_cast<uint32_t>(order.c_id));
  const CustomerAccount account = RowOf<Customer>(*context_, t().customer, customer).account;
  EXPECT_EQ(account.balance, sum - kInitialPaymentCents);
  EXPECT_EQ(account.delivery_cnt, 1);
  EXPECT_EQ(account.payment_cnt, 1);
}

TEST_F(TpccFullMixTest, DeliverySkipsADistrictWithoutNewOrders) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Deliver(), Outcome::kOk);
  Order5Lines();
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Deliver(), Outcome::kOk);
  EXPECT_EQ(Undelivered(3).size(), 1u);
  EXPECT_EQ(Undelivered(4).size(), 0u);
  ASSERT_EQ(Deliver(), Outcome::kOk);
  EXPECT_EQ(RowOf<Order>(*context_, t().order, OrderKey(1, 3, 31)).carrier_id, 4);
  const uint64_t before = context_->Digest();
  ASSERT_EQ(Deliver(), Outcome::kOk) << "nothing is left";
  EXPECT_EQ(context_->Digest(), before);
  ExpectConsistent();
}

TEST_F(TpccFullMixTest, DeliveryOfADeliveredOrderEndsWithoutEffect) {
  const Key order = OrderKey(1, 3, 1);  // delivered by the load
  context_->Insert(*t().new_order, order, TupleBytes(tpcc::NewOrder{1}));
  const uint64_t before = context_->Digest();
  EXPECT_EQ(Deliver(), Outcome::kNotFound);
  EXPECT_EQ(context_->Digest(), before);
}

// The distinct items of the lines of the last 20 orders, 11 to 30.
TEST_F(TpccFullMixTest, StockLevelLooksAtEachItemOfTheLastOrdersOnce) {
  std::set<std::pair<const Table*, Key>> expected = {{t().district, DistrictKey(1, 3)}};
  size_t lines = 0;
  for (const auto& [key, tuple] : context_->map(*t().order_line)) {
    const Key order = key >> kLineBits;
    if (order < OrderKey(1, 3, 11) || order > OrderKey(1, 3, 30)) continue;
    ++lines;
    const auto item = RowOf<OrderLine>(*context_, t().order_line, key).i_id;
    expected.emplace(t().stock, StockKey(1, static_cast<uint32_t>(item)));
  }
  const uint64_t before = context_->Digest();
  EXPECT_EQ(Look(kStockLevel, StockLevelArgs{TxnId{1}, 1, 3, 15, 0}), Outcome::kOk);
  EXPECT_EQ(context_->reads, expected);
  EXPECT_LT(expected.size(), lines) << "some item occurs twice";
  EXPECT_EQ(context_->Digest(), before);
}

TEST_F(TpccFullMixTest, StockLevelNoticesAMissingOrder) {
  for (uint32_t n = 1; n <= kLineMax; ++n) context_->Delete(*t().order_line, OrderLineKey(OrderKey(1, 3, 20), n));
  EXPECT_EQ(Look(kStockLevel, StockLevelArgs{TxnId{1}, 1, 3, 15, 0}), Outcome::kNotFound);
  EXPECT_EQ(Look(kStockLevel, StockLevelArgs{TxnId{1}, 1, 4, 15, 0}), Outcome::kOk);
}

// Of a command log only what succeeded is run again.
TEST_F(TpccFullMixTest, ReplayMakesTheDatabaseThatTheTransactionsMade) {
  ReplayTransaction replay(WorkerId(0));
  std::array<uint64_t, 5> succeeded{};
  CallList list = tpcc_.Generate(WorkerId(0), 3000, 11);
  for (uint64_t i = 0; i < list.calls.size(); ++i) {
    Call& call = list.calls[i];
    call.set_txn_id(TxnId::Make(WorkerId(0), i));
    if (context_->Execute(tpcc_, call) != Outcome::kOk) continue;
    ASSERT_EQ(tpcc_.Run(replay, call.procedure, call.args), Outcome::kOk) << i;
    ++succeeded[call.procedure.value()];
  }
  for (uint64_t count : succeeded) EXPECT_GT(count, 80u);
  EXPECT_EQ(MapContext(db_).Digest(), context_->Digest());
  EXPECT_EQ(tpcc_.Inconsistency(db_), std::nullopt);
}

TEST_F(TpccFullMixTest, AnItemSetHoldsEachItemOnceUpToItsLimit) {
  ItemSet set;
  for (uint32_t i = 1; i <= 320; ++i) EXPECT_TRUE(set.Add(i * 312));
  for (uint32_t i = 1; i <= 320; ++i) EXPECT_FALSE(set.Add(i * 312));
  ASSERT_EQ(set.items().size(), 320u);
  EXPECT_EQ(set.items()[319], 320u * 312);
}

template <class Args>
bool Valid(const Tpcc& tpcc, ProcedureId procedure, const Args& args) {
  return tpcc.ValidArgs(procedure, std::as_bytes(std::span(&args, 1)));
}

TEST_F(TpccFullMixTest, OrderStatusArgumentsOutOfRangeAreInvalid) {
  const auto valid = [&](auto change) {
    OrderStatusArgs args{TxnId{1}, 2, 7, 3, {}};
    change(args);
    return Valid(tpcc_, kOrderStatus, args);
  };
  EXPECT_TRUE(valid([](auto&) {}));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](auto& args) { args.w_id = w; }));
  for (uint8_t d : {0, 11}) EXPECT_FALSE(valid([&](auto& args) { args.d_id = d; }));
  for (uint16_t c : {0, 31}) EXPECT_FALSE(valid([&](auto& args) { args.customer = c; }));
  EXPECT_TRUE(valid([](auto& args) { args.customer = kByLastName | 9; }));
  EXPECT_FALSE(valid([](auto& args) { args.customer = kByLastName | 10; }));
  EXPECT_FALSE(valid([](auto& args) { args.zero[2] = 1; }));
  EXPECT_FALSE(valid([](auto& args) { args.id = TxnId::Make(kLoadWorker, 1); }));
}

TEST_F(TpccFullMixTest, DeliveryArgumentsOutOfRangeAreInvalid) {
  const auto valid = [&](auto change) {
    DeliveryArgs args{TxnId{1}, 99, 2, 4, 0};
    change(args);
    return Valid(tpcc_, kDelivery, args);
  };
  EXPECT_TRUE(valid([](auto&) {}));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](auto& args) { args.w_id = w; }));
  for (uint8_t carrier : {0, 11}) EXPECT_FALSE(valid([&](auto& args) { args.carrier_id = carrier; }));
  EXPECT_FALSE(valid([](auto& args) { args.date = 0; })) << "means: not delivered";
  EXPECT_FALSE(valid([](auto& args) { args.zero = 1; }));
  EXPECT_FALSE(valid([](auto& args) { args.id = TxnId::Make(kLoadWorker, 1); }));
}

TEST_F(TpccFullMixTest, StockLevelArgumentsOutOfRangeAreInvalid) {
  const auto valid = [&](auto change) {
    StockLevelArgs args{TxnId{1}, 2, 3, 15, 0};
    change(args);
    return Valid(tpcc_, kStockLevel, args);
  };
  EXPECT_TRUE(valid([](auto&) {}));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](auto& args) { args.w_id = w; }));
  for (uint8_t d : {0, 11}) EXPECT_FALSE(valid([&](auto& args) { args.d_id = d; }));
  for (uint8_t threshold : {9, 21}) EXPECT_FALSE(valid([&](auto& args) { args.threshold = threshold; }));
  EXPECT_FALSE(valid([](auto& args) { args.zero = 1; }));
  EXPECT_FALSE(valid([](auto& args) { args.id = TxnId::Make(kLoadWorker, 1); }));
}

TEST_F(TpccFullMixTest, ArgumentsOfAnotherLengthProcedureOrMixAreInvalid) {
  const DeliveryArgs args{TxnId{1}, 99, 1, 4, 0};
  const auto bytes = std::as_bytes(std::span(&args, 1));
  const Tpcc other_mix({.warehouses = 2, .small = true});
  for (const ProcedureId procedure : {kOrderStatus, kDelivery, kStockLevel}) {
    for (size_t size : {0, 8, 15}) EXPECT_FALSE(tpcc_.ValidArgs(procedure, bytes.first(size)));
    EXPECT_FALSE(other_mix.ValidArgs(procedure, bytes));
  }
  EXPECT_FALSE(tpcc_.ValidArgs(ProcedureId(5), bytes));
  EXPECT_FALSE(Valid(other_mix, kStockLevel, StockLevelArgs{TxnId{1}, 2, 3, 15, 0}));
}

}  // namespace
}  // namespace dbx
