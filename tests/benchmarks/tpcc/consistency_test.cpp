// The conditions of TPC-C hold after a load and after transactions, and each fails when its row is damaged.
#include <gtest/gtest.h>

#include <functional>

#include "benchmarks/tpcc/tpcc.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using namespace tpcc;

constexpr TpccConfig kConfig{.warehouses = 2, .small = true};
constexpr TpccConfig kFullMixConfig{.warehouses = 2, .full_mix = true, .small = true};

// A small database after 1,000 transactions of two workers; shared by the tests, which work on copies.
class History1000 {
 public:
  explicit History1000(const TpccConfig& config) : db_({}, 1), tpcc_(config) {
    tpcc_.CreateTables(db_);
    tpcc_.Load(db_, 1, 1);
    context_.emplace(db_);
    for (uint32_t worker : {0, 1}) {
      CallList list = tpcc_.Generate(WorkerId(worker), 500, 9);
      for (uint64_t i = 0; i < list.calls.size(); ++i) {
        list.calls[i].set_txn_id(TxnId::Make(WorkerId(worker), i));
        tpcc_.PrefetchBuckets(list.calls[i]);
        tpcc_.PrefetchRows(list.calls[i], i % 2 == 0 ? WrittenRows::kWhole : WrittenRows::kTouched);
        ++outcomes_[static_cast<size_t>(context_->Execute(tpcc_, list.calls[i]))];
      }
    }
  }
  // What the conditions say after `damage`. The next call starts from the undamaged rows again.
  std::optional<std::string> InconsistencyAfter(const std::function<void(MapContext&, const Tpcc::Tables&)>& damage) {
    MapContext damaged = *context_;
    damage(damaged, tpcc_.tables());
    damaged.CopyTo(db_);
    return tpcc_.Inconsistency(db_);
  }
  uint64_t outcomes(Outcome outcome) const { return outcomes_[static_cast<size_t>(outcome)]; }

 private:
  Database db_;
  Tpcc tpcc_;
  std::optional<MapContext> context_;
  uint64_t outcomes_[5] = {};
};

History1000& AfterTransactions() {
  static History1000 history(kConfig);
  return history;
}
History1000& AfterFullMix() {
  static History1000 history(kFullMixConfig);
  return history;
}

// Changes one row of a table, `change(S&)`.
template <class S, class Change>
void ChangeRow(MapContext& context, const Table* table, Key key, Change change) {
  S tuple;
  MapContext::Tuple& bytes = context.map(*table).at(key);
  std::memcpy(&tuple, bytes.data(), sizeof tuple);
  change(tuple);
  std::memcpy(bytes.data(), &tuple, sizeof tuple);
}

template <class S>
S RowOf(MapContext& context, const Table* table, Key key) {
  S tuple;
  std::memcpy(&tuple, context.map(*table).at(key).data(), sizeof tuple);
  return tuple;
}

Key CustomerOfOrder(MapContext& c, const Tpcc::Tables& t, Key order) {
  return (order >> kOrderBits) << kCustomerBits | static_cast<uint32_t>(RowOf<Order>(c, t.order, order).c_id);
}

void DeliverByHand(MapContext& c, const Tpcc::Tables& t, Key order) {
  c.Delete(*t.new_order, order);
  ChangeRow<Order>(c, t.order, order, [](Order& o) { o.carrier_id = 7; });
  int64_t amount = 0;
  for (uint32_t number = 1; number <= RowOf<Order>(c, t.order, order).ol_cnt; ++number) {
    ChangeRow<OrderLine>(c, t.order_line, OrderLineKey(order, number), [&](OrderLine& line) {
      line.delivery_d = 5;
      amount += line.amount;
    });
  }
  ChangeRow<Customer>(c, t.customer, CustomerOfOrder(c, t, order), [&](Customer& customer) {
    customer.account.balance += amount;
    ++customer.account.delivery_cnt;
  });
}

TEST(TpccConsistencyTest, HoldsAfterTheLoad) {
  for (const TpccConfig& config : {kConfig, kFullMixConfig}) {
    Database db({}, 1);
    Tpcc tpcc(config);
    tpcc.CreateTables(db);
    tpcc.Load(db, 1, 1);
    EXPECT_EQ(tpcc.Inconsistency(db), std::nullopt);
  }
}

TEST(TpccConsistencyTest, HoldsAfterAThousandTransactions) {
  for (History1000* history : {&AfterTransactions(), &AfterFullMix()}) {
    EXPECT_EQ(history->InconsistencyAfter([](auto&, auto&) {}), std::nullopt);
    EXPECT_GT(history->outcomes(Outcome::kOk), 980u);
    EXPECT_GT(history->outcomes(Outcome::kRollback), 0u);
    EXPECT_EQ(history->outcomes(Outcome::kOk) + history->outcomes(Outcome::kRollback), 1000u);
  }
}

TEST(TpccConsistencyTest, HoldsWhereEveryOrderIsDelivered) {
  const auto deliver_all = [](MapContext& c, const Tpcc::Tables& t) {
    std::vector<Key> orders;
    for (const auto& [key, tuple] : c.map(*t.new_order)) orders.push_back(key);
    for (const Key order : orders) DeliverByHand(c, t, order);
    ASSERT_TRUE(c.map(*t.new_order).empty());
  };
  EXPECT_EQ(AfterFullMix().InconsistencyAfter(deliver_all), std::nullopt);
}

struct Damage {
  const char* name;
  const char* expected;  // in the message
  std::function<void(MapContext&, const Tpcc::Tables&)> apply;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

const Key kOrder31 = OrderKey(1, 3, 31);

const Damage kDamages[] = {
    {"WarehouseYtd", "condition 1:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Warehouse>(c, t.warehouse, 1, [](Warehouse& w) { ++w.ytd; });
     }},
    {"NextOrderId", "condition 2: D_NEXT_O_ID",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<District>(c, t.district, DistrictKey(2, 10), [](District& d) { ++d.next_o_id; });
     }},
    {"NegativeNextOrderId", "condition 2: D_NEXT_O_ID",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<District>(c, t.district, DistrictKey(2, 10), [](District& d) { d.next_o_id = -5; });
     }},
    {"LastNewOrderMissing", "condition 2: max(NO_O_ID)",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<District>(c, t.district, DistrictKey(1, 3), [&](District& d) {
         c.Delete(*t.new_order, OrderKey(1, 3, static_cast<uint32_t>(d.next_o_id - 1)));
       });
     }},
    {"NewOrderGap",
     "condition 3:", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.new_order, OrderKey(1, 3, 25)); }},
    {"OrderMissing", "rows in ORDER =", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.order, kOrder31); }},
    {"OrderFarAway", "condition 2:",
     [](MapContext& c, const Tpcc::Tables& t) {
       c.Insert(*t.order, OrderKey(1, 3, 4'000'000'000), MapContext::Tuple(c.map(*t.order).at(kOrder31)));
     }},
    {"LineMissing",
     "condition 4:", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.order_line, OrderLineKey(kOrder31, 2)); }},
    {"LineCount", "condition 6:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Order>(c, t.order, kOrder31, [](Order& o) { --o.ol_cnt; });
     }},
    {"LineCountsSwapped", "condition",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Order>(c, t.order, kOrder31, [](Order& o) { ++o.ol_cnt; });
       ChangeRow<Order>(c, t.order, OrderKey(1, 3, 30), [](Order& o) { --o.ol_cnt; });
     }},
    {"Carrier", "condition 5:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Order>(c, t.order, kOrder31, [](Order& o) { o.carrier_id = 1; });
     }},
    {"DeliveryDate", "condition 7:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<OrderLine>(c, t.order_line, OrderLineKey(kOrder31, 1), [](OrderLine& l) { l.delivery_d = 3; });
     }},
    {"WarehouseAndDistrictYtd", "condition 8:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Warehouse>(c, t.warehouse, 1, [](Warehouse& w) { w.ytd += 7; });
       ChangeRow<District>(c, t.district, DistrictKey(1, 2), [](District& d) { d.ytd += 7; });
     }},
    {"PaymentMovedToAnotherDistrict", "condition 9:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<tpcc::History>(c, t.history, TxnId::Make(kLoadWorker, 1).value, [](auto& h) { ++h.d_id; });
     }},
    {"HistoryMissing", "condition",
     [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.history, TxnId::Make(kLoadWorker, 5).value); }},
    {"Balance", "condition 10:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Customer>(c, t.customer, CustomerKey(1, 1, 1), [](Customer& r) { ++r.account.balance; });
     }},
    {"DeliveredAmount", "condition 10:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<OrderLine>(c, t.order_line, OrderLineKey(OrderKey(1, 3, 1), 1), [](OrderLine& l) { ++l.amount; });
     }},
    {"YtdPayment", "condition 12:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Customer>(c, t.customer, CustomerKey(1, 1, 1), [](Customer& r) { --r.account.ytd_payment; });
     }},
    {"PaymentCount", "C_PAYMENT_CNT",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Customer>(c, t.customer, CustomerKey(1, 1, 1), [](Customer& r) { ++r.account.payment_cnt; });
     }},
    {"StockYtd", "S_YTD",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Stock>(c, t.stock, StockKey(2, 50), [](Stock& s) { ++s.level.ytd; });
     }},
    {"StockRemote", "S_REMOTE_CNT",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Stock>(c, t.stock, StockKey(2, 50), [](Stock& s) { ++s.level.remote_cnt; });
     }},
    {"StockQuantity", "S_QUANTITY",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Stock>(c, t.stock, StockKey(2, 50), [](Stock& s) { s.level.quantity = 9; });
     }},
    {"CustomerMissing", "CUSTOMER has",
     [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.customer, CustomerKey(2, 1, 30)); }},
    {"ItemMissing", "ITEM has", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.item, 100); }},
    {"OrderOfAStranger", "does not exist",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Order>(c, t.order, kOrder31, [](Order& o) { o.c_id = 31; });
     }},
    {"LineOfAnUnknownItem", "does not exist",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<OrderLine>(c, t.order_line, OrderLineKey(kOrder31, 1), [](OrderLine& l) { l.i_id = -1; });
     }},
};

// The orders of district 3 that are delivered, by transactions too, and the first one that is not.
Key FirstUndelivered(MapContext& c, const Tpcc::Tables& t) {
  return c.map(*t.new_order).lower_bound(OrderKey(1, 3, 0))->first;
}
Key LastDelivered(MapContext& c, const Tpcc::Tables& t) { return FirstUndelivered(c, t) - 1; }
void ChangeDeliveryCount(MapContext& c, const Tpcc::Tables& t, uint32_t c_id, int32_t by) {
  ChangeRow<Customer>(c, t.customer, CustomerKey(1, 3, c_id), [&](Customer& r) { r.account.delivery_cnt += by; });
}

const Damage kFullMixDamages[] = {
    {"DeliveredOutOfTurn",
     "condition 3:", [](MapContext& c, const Tpcc::Tables& t) { DeliverByHand(c, t, FirstUndelivered(c, t) + 1); }},
    {"DeliveryWithoutADelete", "condition 11:",
     [](MapContext& c, const Tpcc::Tables& t) {
       const Key order = LastDelivered(c, t);
       c.Insert(*t.new_order, order, TupleBytes(tpcc::NewOrder{OrderIdOf(order)}));
     }},
    {"DeleteWithoutADelivery",
     "condition 11:", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.new_order, FirstUndelivered(c, t)); }},
    {"DeliveryCount", "condition 11:", [](MapContext& c, const Tpcc::Tables& t) { ChangeDeliveryCount(c, t, 4, 1); }},
    {"DeliveryCountMoved", "C_DELIVERY_CNT",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeDeliveryCount(c, t, 4, 1);
       ChangeDeliveryCount(c, t, 5, -1);
     }},
    {"CarrierLost", "condition 5:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Order>(c, t.order, LastDelivered(c, t), [](Order& o) { o.carrier_id = kNoCarrier; });
     }},
    {"DeliveryDateLost", "condition 7:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<OrderLine>(c, t.order_line, OrderLineKey(LastDelivered(c, t), 1),
                            [](OrderLine& l) { l.delivery_d = kNotDelivered; });
     }},
    {"BalanceWithoutTheDelivery", "condition 10:",
     [](MapContext& c, const Tpcc::Tables& t) {
       ChangeRow<Customer>(c, t.customer, CustomerOfOrder(c, t, LastDelivered(c, t)),
                           [](Customer& r) { r.account.balance -= 100; });
     }},
    {"OrderByCustomerMissing", "rows in ORDER-BY-CUSTOMER",
     [](MapContext& c, const Tpcc::Tables& t) {
       const Key order = LastDelivered(c, t);
       c.Delete(*t.order_by_customer, OrderByCustomerKey(CustomerOfOrder(c, t, order), OrderIdOf(order)));
     }},
    {"OrderByCustomerOfAnother", "the customer of the key",
     [](MapContext& c, const Tpcc::Tables& t) {
       const Key order = LastDelivered(c, t), customer = CustomerOfOrder(c, t, order);
       c.Delete(*t.order_by_customer, OrderByCustomerKey(customer, OrderIdOf(order)));
       c.Insert(*t.order_by_customer, OrderByCustomerKey(customer ^ 1, OrderIdOf(order)),
                TupleBytes(OrderByCustomer{order}));
     }},
    {"OrderByCustomerLeadsElsewhere", "O_KEY",
     [](MapContext& c, const Tpcc::Tables& t) {
       const Key order = LastDelivered(c, t);
       ChangeRow<OrderByCustomer>(c, t.order_by_customer,
                                  OrderByCustomerKey(CustomerOfOrder(c, t, order), OrderIdOf(order)),
                                  [](OrderByCustomer& r) { ++r.order; });
     }},
    {"OrderByCustomerOfNoOrder", "does not exist",
     [](MapContext& c, const Tpcc::Tables& t) {
       c.Insert(*t.order_by_customer, OrderByCustomerKey(CustomerKey(1, 3, 4), 4'000'000'000),
                TupleBytes(OrderByCustomer{4'000'000'000}));
     }},
};

class TpccDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(TpccDamageTest, IsReported) {
  const std::optional<std::string> report = AfterTransactions().InconsistencyAfter(GetParam().apply);
  ASSERT_TRUE(report.has_value());
  EXPECT_NE(report->find(GetParam().expected), std::string::npos) << *report;
}

class TpccFullMixDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(TpccFullMixDamageTest, IsReported) {
  const std::optional<std::string> report = AfterFullMix().InconsistencyAfter(GetParam().apply);
  ASSERT_TRUE(report.has_value());
  EXPECT_NE(report->find(GetParam().expected), std::string::npos) << *report;
}

INSTANTIATE_TEST_SUITE_P(Rows, TpccFullMixDamageTest, testing::ValuesIn(kFullMixDamages),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Rows, TpccDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dbx
