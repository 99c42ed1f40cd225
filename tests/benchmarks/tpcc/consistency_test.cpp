// The conditions of TPC-C hold after a load and after transactions, and each fails when its row is damaged.
#include <gtest/gtest.h>

#include <functional>

#include "benchmarks/tpcc/tpcc.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using namespace tpcc;

constexpr TpccConfig kConfig{.warehouses = 2, .small = true};

// A small database after 1,000 transactions of two workers; shared by the tests, which work on copies.
class History1000 {
 public:
  History1000() : db_(0, 1), tpcc_(kConfig) {
    tpcc_.CreateTables(db_);
    tpcc_.Load(db_, 1, 1);
    context_.emplace(db_);
    for (uint32_t worker : {0, 1}) {
      CallList list = tpcc_.Generate(WorkerId(worker), 500, 9);
      for (uint64_t i = 0; i < list.calls.size(); ++i) {
        list.calls[i].set_txn_id(TxnId::Make(WorkerId(worker), i));
        tpcc_.PrefetchBuckets(list.calls[i]);
        tpcc_.PrefetchRows(list.calls[i]);
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
  static History1000 history;
  return history;
}

TEST(TpccConsistencyTest, HoldsAfterTheLoad) {
  Database db(0, 1);
  Tpcc tpcc(kConfig);
  tpcc.CreateTables(db);
  tpcc.Load(db, 1, 1);
  EXPECT_EQ(tpcc.Inconsistency(db), std::nullopt);
}

TEST(TpccConsistencyTest, HoldsAfterAThousandTransactions) {
  EXPECT_EQ(AfterTransactions().InconsistencyAfter([](auto&, auto&) {}), std::nullopt);
  EXPECT_GT(AfterTransactions().outcomes(Outcome::kOk), 980u);
  EXPECT_GT(AfterTransactions().outcomes(Outcome::kRollback), 0u);
}

struct Damage {
  const char* name;
  const char* expected;  // in the message
  std::function<void(MapContext&, const Tpcc::Tables&)> apply;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

// Changes one row of a table, `change(S&)`.
template <class S, class Change>
void ChangeRow(MapContext& context, const Table* table, Key key, Change change) {
  S tuple;
  MapContext::Tuple& bytes = context.map(*table).at(key);
  std::memcpy(&tuple, bytes.data(), sizeof tuple);
  change(tuple);
  std::memcpy(bytes.data(), &tuple, sizeof tuple);
}

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
    {"OrderMissing", "condition 11:", [](MapContext& c, const Tpcc::Tables& t) { c.Delete(*t.order, kOrder31); }},
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
    {"WarehouseAndDistrictYtd", "condition 9:",
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

class TpccDamageTest : public testing::TestWithParam<Damage> {};

TEST_P(TpccDamageTest, IsReported) {
  const std::optional<std::string> report = AfterTransactions().InconsistencyAfter(GetParam().apply);
  ASSERT_TRUE(report.has_value());
  EXPECT_NE(report->find(GetParam().expected), std::string::npos) << *report;
}

INSTANTIATE_TEST_SUITE_P(Rows, TpccDamageTest, testing::ValuesIn(kDamages),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace dbx
