// The initial rows of TPC-C (section 4.3.3 of the standard). A task draws from a random sequence of its own, so
// the rows do not depend on the number of threads.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "base/error.h"
#include "benchmarks/parallel_load.h"
#include "benchmarks/tpcc/tpcc_workload.h"

namespace dbx {

using namespace tpcc;

namespace {

constexpr uint64_t kRowsPerTask = 10'000;
constexpr uint64_t kLastNameC = 157;
constexpr uint64_t kManufacturers = 10'000;

// Fills text[0, length) with letters and digits.
void FillText(Random& random, char* text, size_t length) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
  static_assert(sizeof kLetters == 65);
  uint64_t bits = 0;
  for (size_t i = 0; i < length; ++i) {
    if (i % 10 == 0) bits = random.Next();
    text[i] = kLetters[bits & 63];
    bits >>= 6;
  }
}

template <size_t kBytes>
Text<kBytes> RandomText(Random& random, size_t length_min, size_t length_max = kBytes) {
  Text<kBytes> text{};
  FillText(random, text.data(), random.Between(length_min, length_max));
  return text;
}

template <size_t kBytes>
Text<kBytes> RandomDigits(Random& random) {
  Text<kBytes> text{};
  for (char& digit : text) digit = static_cast<char>('0' + random.Below(10));
  return text;
}

// I_DATA and S_DATA: a tenth contains the word ORIGINAL.
Text<50> RandomData(Random& random) {
  constexpr char kWord[] = "ORIGINAL";
  constexpr size_t kWordBytes = sizeof kWord - 1;
  Text<50> data{};
  const size_t length = random.Between(26, 50);
  FillText(random, data.data(), length);
  if (random.Below(10) == 0) std::memcpy(&data[random.Below(length - kWordBytes + 1)], kWord, kWordBytes);
  return data;
}

template <class S>
void FillAddress(Random& random, S& row) {
  row.street_1 = RandomText<20>(random, 10);
  row.street_2 = RandomText<20>(random, 10);
  row.city = RandomText<20>(random, 10);
  row.state = RandomText<2>(random, 2);
  row.zip = RandomDigits<9>(random);
  std::memcpy(&row.zip[4], "11111", 5);
}

Text<16> LastName(uint64_t number) {
  static constexpr const char* kSyllables[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                               "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  const std::string name =
      std::string(kSyllables[number / 100]) + kSyllables[number / 10 % 10] + kSyllables[number % 10];
  Text<16> text{};
  std::copy(name.begin(), name.end(), text.begin());
  return text;
}

Customer MakeCustomer(Random& random, uint64_t last_name, int64_t since) {
  Customer customer{};
  customer.account = {
      .balance = -kInitialPaymentCents, .ytd_payment = kInitialPaymentCents, .payment_cnt = 1, .delivery_cnt = 0};
  customer.since = since;
  customer.credit_lim = 5'000'000;
  customer.discount = static_cast<int32_t>(random.Between(0, 5000));
  customer.credit = random.Below(10) == 0 ? Text<2>{'B', 'C'} : Text<2>{'G', 'C'};
  customer.middle = {'O', 'E'};
  customer.first = RandomText<16>(random, 8);
  customer.last = LastName(last_name);
  FillAddress(random, customer);
  customer.phone = RandomDigits<16>(random);
  customer.data = RandomText<500>(random, 300);
  return customer;
}

// Customers with the same last name are ordered by first name.
std::string SortKeyOf(const Customer& customer) {
  return {customer.first.begin(), std::find(customer.first.begin(), customer.first.end(), '\0')};
}

}  // namespace

void Tpcc::Adopt(Database&, uint64_t) {
  if (tables_.customer_by_last_name->frozen()) return;
  std::map<Text<16>, uint32_t> numbers;  // of last names
  for (uint32_t name = 0; name < cardinalities_.last_names; ++name) numbers[LastName(name)] = name;
  tables_.customer->ForEachRow([&](const Row& row) {
    if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
    Customer customer;
    std::memcpy(&customer, tables_.customer->tuple(&row), sizeof customer);
    const auto number = numbers.find(customer.last);
    if (number == numbers.end()) {
      throw Error(ExitStatus::kCorrupt, "table CUSTOMER, key " + std::to_string(row.key) + ": no last name of TPC-C");
    }
    // The key of a customer, with the number of the name in place of the customer's.
    const uint64_t search_key = (row.key >> kCustomerBits << kCustomerBits) | number->second;
    tables_.customer_by_last_name->Add(search_key, SortKeyOf(customer), row.key);
  });
  tables_.customer_by_last_name->Freeze();
}

void Tpcc::Load(Database& db, uint64_t seed, uint32_t threads) {
  const uint64_t item_tasks = (cardinalities_.items + kRowsPerTask - 1) / kRowsPerTask;
  const uint64_t tasks_per_warehouse = item_tasks + 1 + kDistrictsPerWarehouse;
  const uint64_t tasks = item_tasks + config_.warehouses * tasks_per_warehouse;
  RunLoadTasks(std::min(threads, db.workers()), tasks, [&](WorkerId worker, uint64_t task) {
    const Random random(seed, task);
    if (task < item_tasks) return LoadItems(worker, task, random);
    const auto w = static_cast<uint32_t>((task - item_tasks) / tasks_per_warehouse + 1);
    const uint64_t part = (task - item_tasks) % tasks_per_warehouse;
    if (part < kDistrictsPerWarehouse) return LoadDistrict(worker, w, static_cast<uint32_t>(part + 1), random);
    if (part == kDistrictsPerWarehouse) return LoadWarehouse(worker, w, random);
    const uint64_t stock_task = part - kDistrictsPerWarehouse - 1;
    LoadStock(worker, (w - 1) * item_tasks + stock_task, random);
  });
  tables_.customer_by_last_name->Freeze();
}

void Tpcc::LoadItems(WorkerId worker, uint64_t task, Random random) {
  const uint64_t end = std::min<uint64_t>(cardinalities_.items, (task + 1) * kRowsPerTask);
  for (uint64_t i = task * kRowsPerTask + 1; i <= end; ++i) {
    Item item{};
    item.price = static_cast<int64_t>(random.Between(100, 10'000));
    item.im_id = static_cast<int32_t>(random.Between(1, kManufacturers));
    item.name = RandomText<24>(random, 14);
    item.data = RandomData(random);
    tables_.item->LoadRow(worker, ItemKey(static_cast<uint32_t>(i)), TupleBytes(item));
  }
}

// Tasks are numbered warehouse by warehouse.
void Tpcc::LoadStock(WorkerId worker, uint64_t task, Random random) {
  const uint64_t tasks_per_warehouse = (cardinalities_.items + kRowsPerTask - 1) / kRowsPerTask;
  const auto w = static_cast<uint32_t>(task / tasks_per_warehouse + 1);
  const uint64_t chunk = task % tasks_per_warehouse;
  const uint64_t end = std::min<uint64_t>(cardinalities_.items, (chunk + 1) * kRowsPerTask);
  for (uint64_t i = chunk * kRowsPerTask + 1; i <= end; ++i) {
    Stock stock{};
    stock.level.quantity = static_cast<int32_t>(random.Between(10, 100));
    for (Text<24>& dist : stock.dist) dist = RandomText<24>(random, 24);
    stock.data = RandomData(random);
    tables_.stock->LoadRow(worker, StockKey(w, static_cast<uint32_t>(i)), TupleBytes(stock));
  }
}

void Tpcc::LoadWarehouse(WorkerId worker, uint32_t w, Random random) {
  Warehouse warehouse{};
  warehouse.ytd = kInitialPaymentCents * cardinalities_.customers_per_district * kDistrictsPerWarehouse;
  warehouse.tax = static_cast<int32_t>(random.Between(0, 2000));
  warehouse.name = RandomText<10>(random, 6);
  FillAddress(random, warehouse);
  tables_.warehouse->LoadRow(worker, WarehouseKey(w), TupleBytes(warehouse));
}

void Tpcc::LoadDistrict(WorkerId worker, uint32_t w, uint32_t d, Random random) {
  District district{};
  district.ytd = kInitialPaymentCents * cardinalities_.customers_per_district;
  district.next_o_id = static_cast<int32_t>(cardinalities_.customers_per_district + 1);
  district.tax = static_cast<int32_t>(random.Between(0, 2000));
  district.name = RandomText<10>(random, 6);
  FillAddress(random, district);
  tables_.district->LoadRow(worker, DistrictKey(w, d), TupleBytes(district));
  LoadCustomers(worker, w, d, random);
  LoadOrders(worker, w, d, random);
}

void Tpcc::LoadCustomers(WorkerId worker, uint32_t w, uint32_t d, Random& random) {
  const uint32_t names = cardinalities_.last_names;
  const uint64_t districts_before = uint64_t{w - 1} * kDistrictsPerWarehouse + (d - 1);
  for (uint32_t c = 1; c <= cardinalities_.customers_per_district; ++c) {
    // Every name occurs; the customers that are left draw one.
    uint64_t name = c - 1;
    if (name >= names) name = ((random.Below(256) | random.Below(names)) + kLastNameC) % names;
    const Customer customer = MakeCustomer(random, name, c);
    const Key key = CustomerKey(w, d, c);
    tables_.customer->LoadRow(worker, key, TupleBytes(customer));
    tables_.customer_by_last_name->Add(LastNameKey(w, d, static_cast<uint32_t>(name)), SortKeyOf(customer), key);
    History history{};
    history.date = c;
    history.amount = kInitialPaymentCents;
    history.c_id = static_cast<int32_t>(c);
    history.c_d_id = history.d_id = static_cast<uint16_t>(d);
    history.c_w_id = history.w_id = static_cast<uint16_t>(w);
    history.data = RandomText<24>(random, 12);
    const uint64_t sequence = districts_before * cardinalities_.customers_per_district + c;
    tables_.history->LoadRow(worker, TxnId::Make(kLoadWorker, sequence).value, TupleBytes(history));
  }
}

void Tpcc::LoadOrders(WorkerId worker, uint32_t w, uint32_t d, Random& random) {
  const uint32_t orders = cardinalities_.customers_per_district;
  const uint32_t delivered = orders - cardinalities_.undelivered_orders;
  std::vector<int32_t> customers(orders);
  std::iota(customers.begin(), customers.end(), 1);
  for (size_t left = orders; left > 1; --left) std::swap(customers[left - 1], customers[random.Below(left)]);
  for (uint32_t o = 1; o <= orders; ++o) {
    Order order{};
    order.entry_d = o;
    order.c_id = customers[o - 1];
    order.carrier_id = o <= delivered ? static_cast<uint8_t>(random.Between(1, 10)) : kNoCarrier;
    order.ol_cnt = static_cast<uint8_t>(random.Between(kLinesMin, kLinesMax));
    order.all_local = 1;
    const Key key = OrderKey(w, d, o);
    tables_.order->LoadRow(worker, key, TupleBytes(order));
    if (o > delivered) tables_.new_order->LoadRow(worker, key, TupleBytes(tpcc::NewOrder{o}));
    if (config_.full_mix) {
      const Key customer = CustomerKey(w, d, static_cast<uint32_t>(order.c_id));
      tables_.order_by_customer->LoadRow(worker, OrderByCustomerKey(customer, o), TupleBytes(OrderByCustomer{key}));
    }
    LoadOrderLines(worker, w, key, order, random);
  }
}

void Tpcc::LoadOrderLines(WorkerId worker, uint32_t w, Key order_key, const Order& order, Random& random) {
  const bool delivered = order.carrier_id != kNoCarrier;
  for (uint32_t number = 1; number <= order.ol_cnt; ++number) {
    OrderLine line{};
    line.amount = delivered ? 0 : static_cast<int64_t>(random.Between(1, 999'999));
    line.delivery_d = delivered ? order.entry_d : kNotDelivered;
    line.i_id = static_cast<int32_t>(random.Between(1, cardinalities_.items));
    line.supply_w_id = static_cast<uint16_t>(w);
    line.quantity = 5;
    line.dist_info = RandomText<24>(random, 24);
    tables_.order_line->LoadRow(worker, OrderLineKey(order_key, number), TupleBytes(line));
  }
}

}  // namespace dbx
