// The consistency conditions of TPC-C (section 3.3.2 of the standard), checked over a database at rest: each
// table is walked once or twice and summed up in arrays; then the sums are compared.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/tpcc/tpcc_workload.h"

namespace dbx {

using namespace tpcc;

namespace {

struct OrderFacts {
  uint8_t ol_cnt = 0;
  uint8_t carrier_id = kNoCarrier;
  uint8_t lines = 0;
  uint8_t undelivered_lines = 0;
  bool in_new_order = false;
  uint16_t c_id = 0;
};

struct DistrictFacts {
  int64_t ytd = 0;
  int64_t history_amount = 0;
  uint64_t next_o_id = 0;
  uint64_t orders = 0;
  uint64_t order_max = 0;
  uint64_t new_orders = 0;
  uint64_t new_order_min = UINT64_MAX;
  uint64_t new_order_max = 0;
  int64_t deliveries = 0;      // sum of C_DELIVERY_CNT
  uint64_t by_customer = 0;    // rows in ORDER-BY-CUSTOMER
  uint64_t lines_claimed = 0;  // sum of O_OL_CNT
  uint64_t lines = 0;
  std::vector<OrderFacts> by_o_id;  // from 1 on
};

struct CustomerFacts {
  int64_t delivered_amount = 0;
  int64_t deliveries = 0;  // by transactions
  int64_t history_amount = 0;
  int64_t payments = 0;
};

struct StockFacts {
  int64_t ytd = 0;
  int64_t order_cnt = 0;
  int64_t remote_cnt = 0;
};

class ConsistencyCheck {
 public:
  ConsistencyCheck(const TpccConfig& config, const Cardinalities& cardinalities, const Tpcc::Tables& tables)
      : config_(config),
        cardinalities_(cardinalities),
        tables_(tables),
        district_count_(size_t{config.warehouses} * kDistrictsPerWarehouse),
        warehouse_ytd_(config.warehouses),
        warehouse_history_(config.warehouses),
        districts_(district_count_),
        customers_(district_count_ * cardinalities.customers_per_district),
        stock_(size_t{config.warehouses} * cardinalities.items) {}

  std::optional<std::string> Run() {
    // A later step relies on the checks of the earlier ones, so that damage never misleads it.
    using Step = void (ConsistencyCheck::*)();
    for (Step step :
         {&ConsistencyCheck::WalkWarehouses, &ConsistencyCheck::WalkDistricts, &ConsistencyCheck::CountOrders,
          &ConsistencyCheck::CountDeliveries, &ConsistencyCheck::CompareOrderNumbers, &ConsistencyCheck::WalkOrders,
          &ConsistencyCheck::WalkOrderLines, &ConsistencyCheck::CompareOrders, &ConsistencyCheck::WalkOrdersByCustomer,
          &ConsistencyCheck::WalkHistory, &ConsistencyCheck::CompareYtd, &ConsistencyCheck::WalkCustomers,
          &ConsistencyCheck::WalkStock, &ConsistencyCheck::WalkItems}) {
      (this->*step)();
      if (failure_) break;
    }
    return failure_;
  }

 private:
  // Calls visit(key, const S&) for the present rows, until something has failed.
  template <class S, class Visit>
  uint64_t ForEach(const Table& table, Visit&& visit) {
    uint64_t present = 0;
    table.ForEachRowOfPart(0, 1, [&](const Row& row) {
      if (failure_ || (row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
      ++present;
      S tuple;
      std::memcpy(&tuple, table.tuple(&row), sizeof tuple);
      visit(row.key, tuple);
    });
    return present;
  }

  template <class... Parts>
  void Fail(const Parts&... parts) {
    if (failure_) return;
    const auto text = [](const auto& part) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>) {
        return std::to_string(part);
      } else {
        return std::string(part);
      }
    };
    failure_ = (text(parts) + ...);
  }
  // `where()` names the row; it is called only on a violation.
  template <class Where>
  void RequireEqual(const char* what, const Where& where, int64_t left, int64_t right) {
    if (left != right) Fail(what, " (", where(), "): ", left, " is not ", right);
  }
  void RequireRows(const Table& table, uint64_t rows, uint64_t expected) {
    if (rows != expected) Fail(table.schema().name, " has ", rows, " rows instead of ", expected);
  }

  // The place of a district in the arrays; fails where the key names none.
  std::optional<size_t> DistrictIndex(const Table& table, Key district_key) {
    const uint64_t w = district_key >> kDistrictBits, d = district_key & ((1u << kDistrictBits) - 1);
    if (w >= 1 && w <= config_.warehouses && d >= 1 && d <= kDistrictsPerWarehouse) {
      return (w - 1) * kDistrictsPerWarehouse + (d - 1);
    }
    Fail(table.schema().name, ": a key names warehouse ", w, ", district ", d);
    return std::nullopt;
  }
  std::string DistrictName(size_t index) const {
    return "warehouse " + std::to_string(index / kDistrictsPerWarehouse + 1) + ", district " +
           std::to_string(index % kDistrictsPerWarehouse + 1);
  }
  CustomerFacts* FindCustomer(const Table& table, size_t district, int64_t c_id) {
    if (c_id >= 1 && c_id <= cardinalities_.customers_per_district) {
      return &customers_[district * cardinalities_.customers_per_district + static_cast<size_t>(c_id - 1)];
    }
    Fail(table.schema().name, ": customer ", c_id, " in ", DistrictName(district), " does not exist");
    return nullptr;
  }

  void WalkWarehouses();
  void WalkDistricts();
  void CountOrders();
  void CountDeliveries();
  void CompareOrderNumbers();
  void WalkOrders();
  void CountIfDelivered(size_t district, uint64_t o_id, const Order& order);
  void WalkOrderLines();
  void AddOrderLine(size_t district, uint64_t o_id, const OrderLine& line);
  void CompareOrders();
  void WalkOrdersByCustomer();
  void WalkHistory();
  void CompareYtd();
  void WalkCustomers();
  void WalkStock();
  void WalkItems();

  const TpccConfig& config_;
  const Cardinalities& cardinalities_;
  const Tpcc::Tables& tables_;
  size_t district_count_;
  std::vector<int64_t> warehouse_ytd_;
  std::vector<int64_t> warehouse_history_;
  std::vector<DistrictFacts> districts_;
  std::vector<CustomerFacts> customers_;
  std::vector<StockFacts> stock_;
  std::optional<std::string> failure_;
};

void ConsistencyCheck::WalkWarehouses() {
  const uint64_t rows = ForEach<Warehouse>(*tables_.warehouse, [&](Key w, const Warehouse& warehouse) {
    if (w < 1 || w > config_.warehouses) return Fail("WAREHOUSE: a key names warehouse ", w);
    warehouse_ytd_[w - 1] = warehouse.ytd;
  });
  RequireRows(*tables_.warehouse, rows, config_.warehouses);
}

void ConsistencyCheck::WalkDistricts() {
  const uint64_t rows = ForEach<District>(*tables_.district, [&](Key key, const District& district) {
    const std::optional<size_t> index = DistrictIndex(*tables_.district, key);
    if (!index) return;
    districts_[*index].ytd = district.ytd;
    districts_[*index].next_o_id = static_cast<uint64_t>(district.next_o_id);
  });
  RequireRows(*tables_.district, rows, district_count_);
}

void ConsistencyCheck::CountOrders() {
  constexpr uint64_t kOrderMask = (uint64_t{1} << kOrderBits) - 1;
  ForEach<Order>(*tables_.order, [&](Key key, const Order&) {
    const std::optional<size_t> index = DistrictIndex(*tables_.order, key >> kOrderBits);
    if (!index) return;
    ++districts_[*index].orders;
    districts_[*index].order_max = std::max(districts_[*index].order_max, key & kOrderMask);
  });
  ForEach<NewOrder>(*tables_.new_order, [&](Key key, const NewOrder& new_order) {
    const std::optional<size_t> index = DistrictIndex(*tables_.new_order, key >> kOrderBits);
    if (!index) return;
    const uint64_t o_id = key & kOrderMask;
    if (new_order.o_id != static_cast<int64_t>(o_id)) Fail("NEW-ORDER: NO_O_ID ", new_order.o_id, " under key ", o_id);
    DistrictFacts& district = districts_[*index];
    ++district.new_orders;
    district.new_order_min = std::min(district.new_order_min, o_id);
    district.new_order_max = std::max(district.new_order_max, o_id);
  });
}

void ConsistencyCheck::CountDeliveries() {
  ForEach<Customer>(*tables_.customer, [&](Key key, const Customer& customer) {
    const std::optional<size_t> index = DistrictIndex(*tables_.customer, key >> kCustomerBits);
    if (index) districts_[*index].deliveries += customer.account.delivery_cnt;
  });
}

// Conditions 2, 3 and 11, and that orders are numbered from 1 without a gap. The standard states 11 for a database
// before its first Delivery; each deletes an order from NEW-ORDER and counts for one customer.
void ConsistencyCheck::CompareOrderNumbers() {
  const int64_t delivered = int64_t{cardinalities_.customers_per_district} - cardinalities_.undelivered_orders;
  for (size_t i = 0; i < district_count_; ++i) {
    const DistrictFacts& district = districts_[i];
    const auto where = [&] { return DistrictName(i); };
    const auto require = [&](const char* what, uint64_t left, uint64_t right) {
      RequireEqual(what, where, static_cast<int64_t>(left), static_cast<int64_t>(right));
    };
    require("condition 2: D_NEXT_O_ID - 1 = max(O_ID)", district.next_o_id - 1, district.order_max);
    require("rows in ORDER = max(O_ID)", district.orders, district.order_max);
    // With every order delivered there is nothing to compare.
    if (district.new_orders > 0) {
      require("condition 2: max(NO_O_ID) = max(O_ID)", district.new_order_max, district.order_max);
      require("condition 3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER",
              district.new_order_max - district.new_order_min + 1, district.new_orders);
    }
    RequireEqual("condition 11: rows in ORDER - rows in NEW-ORDER = initially delivered orders + sum(C_DELIVERY_CNT)",
                 where, static_cast<int64_t>(district.orders - district.new_orders), delivered + district.deliveries);
  }
}

void ConsistencyCheck::WalkOrders() {
  constexpr uint64_t kOrderMask = (uint64_t{1} << kOrderBits) - 1;
  for (DistrictFacts& district : districts_) district.by_o_id.resize(district.orders);
  ForEach<Order>(*tables_.order, [&](Key key, const Order& order) {
    const size_t index = *DistrictIndex(*tables_.order, key >> kOrderBits);
    DistrictFacts& district = districts_[index];
    const uint64_t o_id = key & kOrderMask;
    if (o_id == 0) return Fail("ORDER: order 0 in ", DistrictName(index));
    if (FindCustomer(*tables_.order, index, order.c_id) == nullptr) return;
    OrderFacts& facts = district.by_o_id[o_id - 1];
    facts.ol_cnt = order.ol_cnt;
    facts.carrier_id = order.carrier_id;
    facts.c_id = static_cast<uint16_t>(order.c_id);
    district.lines_claimed += order.ol_cnt;
    CountIfDelivered(index, o_id, order);
  });
  ForEach<NewOrder>(*tables_.new_order, [&](Key key, const NewOrder&) {
    const size_t index = *DistrictIndex(*tables_.new_order, key >> kOrderBits);
    const uint64_t o_id = key & kOrderMask;
    if (o_id == 0) return Fail("NEW-ORDER: order 0 in ", DistrictName(index));
    districts_[index].by_o_id[o_id - 1].in_new_order = true;
  });
}

// Initial orders count for no customer, except those among them that a Delivery delivers.
void ConsistencyCheck::CountIfDelivered(size_t district, uint64_t o_id, const Order& order) {
  const uint64_t delivered = cardinalities_.customers_per_district - cardinalities_.undelivered_orders;
  if (o_id > delivered && order.carrier_id != kNoCarrier) {
    ++FindCustomer(*tables_.order, district, order.c_id)->deliveries;
  }
}

void ConsistencyCheck::WalkOrderLines() {
  ForEach<OrderLine>(*tables_.order_line, [&](Key key, const OrderLine& line) {
    const Key order_key = key >> kLineBits;
    const std::optional<size_t> index = DistrictIndex(*tables_.order_line, order_key >> kOrderBits);
    if (!index) return;
    const uint64_t o_id = order_key & ((uint64_t{1} << kOrderBits) - 1);
    const uint64_t number = key & ((1u << kLineBits) - 1);
    if (o_id == 0 || o_id > districts_[*index].orders) {
      return Fail("ORDER-LINE: order ", o_id, " in ", DistrictName(*index), " does not exist");
    }
    if (number == 0 || number > districts_[*index].by_o_id[o_id - 1].ol_cnt) {
      return Fail("condition 6: order ", o_id, " in ", DistrictName(*index), " has a line number ", number);
    }
    AddOrderLine(*index, o_id, line);
  });
}

void ConsistencyCheck::AddOrderLine(size_t district_index, uint64_t o_id, const OrderLine& line) {
  DistrictFacts& district = districts_[district_index];
  OrderFacts& order = district.by_o_id[o_id - 1];
  ++district.lines;
  ++order.lines;
  if (line.delivery_d == kNotDelivered) {
    ++order.undelivered_lines;
  } else {
    FindCustomer(*tables_.order, district_index, order.c_id)->delivered_amount += line.amount;
  }
  if (line.i_id < 1 || line.i_id > static_cast<int64_t>(cardinalities_.items) || line.supply_w_id < 1 ||
      line.supply_w_id > config_.warehouses) {
    return Fail("ORDER-LINE: item ", line.i_id, " of warehouse ", line.supply_w_id, " does not exist");
  }
  // The initial orders took nothing from the stock.
  if (o_id <= cardinalities_.customers_per_district) return;
  StockFacts& stock = stock_[size_t{line.supply_w_id - 1u} * cardinalities_.items + static_cast<size_t>(line.i_id - 1)];
  stock.ytd += line.quantity;
  ++stock.order_cnt;
  stock.remote_cnt += line.supply_w_id != district_index / kDistrictsPerWarehouse + 1;
}

// Conditions 4 to 7.
void ConsistencyCheck::CompareOrders() {
  for (size_t i = 0; i < district_count_ && !failure_; ++i) {
    const DistrictFacts& district = districts_[i];
    const auto lines_claimed = static_cast<int64_t>(district.lines_claimed);
    const auto lines = static_cast<int64_t>(district.lines);
    const auto here = [&] { return DistrictName(i); };
    RequireEqual("condition 4: sum(O_OL_CNT) = rows in ORDER-LINE", here, lines_claimed, lines);
    for (size_t o = 0; o < district.by_o_id.size() && !failure_; ++o) {
      const OrderFacts& order = district.by_o_id[o];
      const bool delivered = order.carrier_id != kNoCarrier;
      const auto where = [&] { return "order " + std::to_string(o + 1) + ", " + DistrictName(i); };
      RequireEqual("condition 5: O_CARRIER_ID is null = in NEW-ORDER", where, !delivered, order.in_new_order);
      RequireEqual("condition 6: O_OL_CNT = rows in ORDER-LINE", where, order.ol_cnt, order.lines);
      RequireEqual("condition 7: lines without OL_DELIVERY_D", where, order.undelivered_lines,
                   delivered ? 0 : order.lines);
    }
  }
}

// As many rows as orders, and each leads to an order of the customer that its key names: so there is one for every
// order.
void ConsistencyCheck::WalkOrdersByCustomer() {
  if (tables_.order_by_customer == nullptr) return;
  const Table& table = *tables_.order_by_customer;
  ForEach<OrderByCustomer>(table, [&](Key key, const OrderByCustomer& entry) {
    const Key customer = key >> kOrderBits, district_key = customer >> kCustomerBits;
    const std::optional<size_t> index = DistrictIndex(table, district_key);
    if (!index) return;
    DistrictFacts& district = districts_[*index];
    ++district.by_customer;
    const uint64_t o_id = OrderIdOf(key), c_id = CustomerIdOf(customer);
    const auto where = [&] { return "order " + std::to_string(o_id) + ", " + DistrictName(*index); };
    if (o_id == 0 || o_id > district.orders) return Fail("ORDER-BY-CUSTOMER: ", where(), " does not exist");
    RequireEqual("ORDER-BY-CUSTOMER: the customer of the key = O_C_ID", where, static_cast<int64_t>(c_id),
                 district.by_o_id[o_id - 1].c_id);
    RequireEqual("ORDER-BY-CUSTOMER: O_KEY", where, static_cast<int64_t>(entry.order),
                 static_cast<int64_t>(district_key << kOrderBits | o_id));
  });
  for (size_t i = 0; i < district_count_; ++i) {
    RequireEqual(
        "rows in ORDER-BY-CUSTOMER = rows in ORDER", [&] { return DistrictName(i); },
        static_cast<int64_t>(districts_[i].by_customer), static_cast<int64_t>(districts_[i].orders));
  }
}

void ConsistencyCheck::WalkHistory() {
  ForEach<History>(*tables_.history, [&](Key, const History& history) {
    const auto paid_at = DistrictIndex(*tables_.history, DistrictKey(history.w_id, history.d_id));
    const auto lives_in = DistrictIndex(*tables_.history, DistrictKey(history.c_w_id, history.c_d_id));
    if (!paid_at || !lives_in) return;
    CustomerFacts* customer = FindCustomer(*tables_.history, *lives_in, history.c_id);
    if (customer == nullptr) return;
    customer->history_amount += history.amount;
    ++customer->payments;
    districts_[*paid_at].history_amount += history.amount;
    warehouse_history_[history.w_id - 1u] += history.amount;
  });
}

// Conditions 1, 8 and 9. 8 follows from the two others, so it comes before 9.
void ConsistencyCheck::CompareYtd() {
  const int64_t initial = kInitialPaymentCents * cardinalities_.customers_per_district * kDistrictsPerWarehouse;
  for (size_t w = 0; w < config_.warehouses; ++w) {
    const auto where = [&] { return "warehouse " + std::to_string(w + 1); };
    const DistrictFacts* const districts = &districts_[w * kDistrictsPerWarehouse];
    if (config_.wh_update) {
      const int64_t district_sum =
          std::accumulate(districts, districts + kDistrictsPerWarehouse, int64_t{0},
                          [](int64_t sum, const DistrictFacts& district) { return sum + district.ytd; });
      RequireEqual("condition 1: W_YTD = sum(D_YTD)", where, warehouse_ytd_[w], district_sum);
      RequireEqual("condition 8: W_YTD = sum(H_AMOUNT)", where, warehouse_ytd_[w], warehouse_history_[w]);
    } else {
      RequireEqual("W_YTD, which no Payment updates, is the initial one", where, warehouse_ytd_[w], initial);
    }
  }
  for (size_t i = 0; i < district_count_; ++i) {
    RequireEqual(
        "condition 9: D_YTD = sum(H_AMOUNT)", [&] { return DistrictName(i); }, districts_[i].ytd,
        districts_[i].history_amount);
  }
}

// Conditions 10 and 12, and that each payment and each delivery was counted.
void ConsistencyCheck::WalkCustomers() {
  const uint64_t rows = ForEach<Customer>(*tables_.customer, [&](Key key, const Customer& customer) {
    const std::optional<size_t> index = DistrictIndex(*tables_.customer, key >> kCustomerBits);
    if (!index) return;
    const uint64_t c_id = key & ((1u << kCustomerBits) - 1);
    const CustomerFacts* facts = FindCustomer(*tables_.customer, *index, static_cast<int64_t>(c_id));
    if (facts == nullptr) return;
    const auto where = [&] { return "customer " + std::to_string(c_id) + ", " + DistrictName(*index); };
    const CustomerAccount& account = customer.account;
    RequireEqual("condition 10: C_BALANCE = sum(OL_AMOUNT) - sum(H_AMOUNT)", where, account.balance,
                 facts->delivered_amount - facts->history_amount);
    RequireEqual("condition 12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT)", where,
                 account.balance + account.ytd_payment, facts->delivered_amount);
    RequireEqual("C_PAYMENT_CNT = rows in HISTORY", where, account.payment_cnt, facts->payments);
    RequireEqual("C_DELIVERY_CNT = orders that were delivered", where, account.delivery_cnt, facts->deliveries);
  });
  RequireRows(*tables_.customer, rows, district_count_ * cardinalities_.customers_per_district);
}

void ConsistencyCheck::WalkStock() {
  const uint64_t rows = ForEach<Stock>(*tables_.stock, [&](Key key, const Stock& stock) {
    const uint64_t w = key >> kItemBits, i = key & ((1u << kItemBits) - 1);
    if (w < 1 || w > config_.warehouses || i < 1 || i > cardinalities_.items) {
      return Fail("STOCK: a key names item ", i, " of warehouse ", w);
    }
    const StockFacts& facts = stock_[(w - 1) * cardinalities_.items + (i - 1)];
    const auto where = [&] { return "item " + std::to_string(i) + ", warehouse " + std::to_string(w); };
    RequireEqual("S_YTD = sum(OL_QUANTITY)", where, stock.level.ytd, facts.ytd);
    RequireEqual("S_ORDER_CNT = rows in ORDER-LINE", where, stock.level.order_cnt, facts.order_cnt);
    RequireEqual("S_REMOTE_CNT = remote rows in ORDER-LINE", where, stock.level.remote_cnt, facts.remote_cnt);
    if (stock.level.quantity < 10 || stock.level.quantity > 100)
      Fail("S_QUANTITY ", stock.level.quantity, ", ", where());
  });
  RequireRows(*tables_.stock, rows, stock_.size());
}

void ConsistencyCheck::WalkItems() {
  const uint64_t rows = ForEach<Item>(*tables_.item, [&](Key key, const Item& item) {
    if (key < 1 || key > cardinalities_.items) Fail("ITEM: a key names item ", key);
    if (item.price < 100 || item.price > 10'000) Fail("ITEM: item ", key, " costs ", item.price, " cents");
  });
  RequireRows(*tables_.item, rows, cardinalities_.items);
}

}  // namespace

std::optional<std::string> Tpcc::Inconsistency(const Database& db) const {
  // The tables of `db`, which may be another database than the one that this workload created.
  Tables tables = tables_;
  for (Table** table : {&tables.warehouse, &tables.district, &tables.customer, &tables.history, &tables.new_order,
                        &tables.order, &tables.order_line, &tables.item, &tables.stock}) {
    *table = &db.table((*table)->id());
  }
  if (config_.full_mix) tables.order_by_customer = &db.table(tables.order_by_customer->id());
  return ConsistencyCheck(config_, cardinalities_, tables).Run();
}

}  // namespace dbx
