#include "benchmarks/tpcc/tpcc.h"

#include <algorithm>

#include "base/error.h"

namespace dbx {

using namespace tpcc;

namespace {

// The constants C of the standard's NURand (section 2.1.6), fixed. The one for last names lies 66 from the
// load's, which the standard allows.
constexpr uint64_t kLastNameC = 223;
constexpr uint64_t kCustomerC = 259;
constexpr uint64_t kItemC = 7911;

constexpr double kRemotePayment = 0.15;
constexpr double kByLastName = 0.60;
constexpr double kRemoteLine = 0.01;
constexpr double kUnusedItem = 0.01;
constexpr uint64_t kPaymentMinCents = 100;
constexpr uint64_t kPaymentMaxCents = 500'000;
constexpr uint64_t kQuantityMax = 10;

// Non-uniform in [low, high].
uint64_t NuRand(Random& random, uint64_t a, uint64_t c, uint64_t low, uint64_t high) {
  return ((random.Below(a + 1) | random.Between(low, high)) + c) % (high - low + 1) + low;
}

template <class S, class T>
void AddColumn(Schema& schema, const char* name, T S::*member) {
  schema.columns.push_back({name, static_cast<uint32_t>(OffsetOf(member)), sizeof(T)});
}

// A partition is a warehouse with all that is keyed by it; HISTORY, which is not, goes by worker. What is never written
// is one partition, so that a log by partition has little to look at.
constexpr uint32_t kNeverWritten = 63;

template <class S>
Schema SchemaOf(const char* name, uint64_t expected_rows, uint32_t partition_key_bits) {
  Schema schema;
  schema.name = name;
  schema.partition_key_bits = partition_key_bits;
  schema.tuple_bytes = sizeof(S);
  schema.expected_rows = expected_rows;
  return schema;
}

// The columns that WAREHOUSE, DISTRICT and CUSTOMER share, under the prefix of each.
template <class S>
void AddAddress(Schema& schema, const std::string& prefix) {
  AddColumn(schema, (prefix + "_STREET_1").c_str(), &S::street_1);
  AddColumn(schema, (prefix + "_STREET_2").c_str(), &S::street_2);
  AddColumn(schema, (prefix + "_CITY").c_str(), &S::city);
  AddColumn(schema, (prefix + "_STATE").c_str(), &S::state);
  AddColumn(schema, (prefix + "_ZIP").c_str(), &S::zip);
}

Schema WarehouseSchema(uint64_t rows) {
  Schema schema = SchemaOf<Warehouse>("WAREHOUSE", rows, 0);
  schema.row_alignment_bytes = 64;
  AddColumn(schema, "W_YTD", &Warehouse::ytd);
  AddColumn(schema, "W_TAX", &Warehouse::tax);
  AddColumn(schema, "W_NAME", &Warehouse::name);
  AddAddress<Warehouse>(schema, "W");
  return schema;
}

Schema DistrictSchema(uint64_t rows) {
  Schema schema = SchemaOf<District>("DISTRICT", rows, kDistrictBits);
  schema.row_alignment_bytes = 64;
  AddColumn(schema, "D_YTD", &District::ytd);
  AddColumn(schema, "D_NEXT_O_ID", &District::next_o_id);
  AddColumn(schema, "D_TAX", &District::tax);
  AddColumn(schema, "D_NAME", &District::name);
  AddAddress<District>(schema, "D");
  return schema;
}

Schema CustomerSchema(uint64_t rows) {
  Schema schema = SchemaOf<Customer>("CUSTOMER", rows, kDistrictBits + kCustomerBits);
  const auto account = static_cast<uint32_t>(OffsetOf(&Customer::account));
  const auto add_account = [&]<class T>(const char* name, T CustomerAccount::*member) {
    schema.columns.push_back({name, account + static_cast<uint32_t>(OffsetOf(member)), sizeof(T)});
  };
  add_account("C_BALANCE", &CustomerAccount::balance);
  add_account("C_YTD_PAYMENT", &CustomerAccount::ytd_payment);
  add_account("C_PAYMENT_CNT", &CustomerAccount::payment_cnt);
  add_account("C_DELIVERY_CNT", &CustomerAccount::delivery_cnt);
  AddColumn(schema, "C_SINCE", &Customer::since);
  AddColumn(schema, "C_CREDIT_LIM", &Customer::credit_lim);
  AddColumn(schema, "C_DISCOUNT", &Customer::discount);
  AddColumn(schema, "C_CREDIT", &Customer::credit);
  AddColumn(schema, "C_MIDDLE", &Customer::middle);
  AddColumn(schema, "C_FIRST", &Customer::first);
  AddColumn(schema, "C_LAST", &Customer::last);
  AddAddress<Customer>(schema, "C");
  AddColumn(schema, "C_PHONE", &Customer::phone);
  AddColumn(schema, "C_DATA", &Customer::data);
  return schema;
}

Schema HistorySchema(uint64_t rows) {
  Schema schema = SchemaOf<History>("HISTORY", rows, TxnId::kSequenceBits);
  // Transaction ids of one worker are consecutive, so that the rows it inserts share buckets.
  schema.clustered_key_bits = 2;
  AddColumn(schema, "H_DATE", &History::date);
  AddColumn(schema, "H_AMOUNT", &History::amount);
  AddColumn(schema, "H_C_ID", &History::c_id);
  AddColumn(schema, "H_C_D_ID", &History::c_d_id);
  AddColumn(schema, "H_C_W_ID", &History::c_w_id);
  AddColumn(schema, "H_D_ID", &History::d_id);
  AddColumn(schema, "H_W_ID", &History::w_id);
  AddColumn(schema, "H_DATA", &History::data);
  return schema;
}

Schema NewOrderSchema(uint64_t rows) {
  Schema schema = SchemaOf<tpcc::NewOrder>("NEW-ORDER", rows, kDistrictBits + kOrderBits);
  schema.clustered_key_bits = 2;
  AddColumn(schema, "NO_O_ID", &tpcc::NewOrder::o_id);
  return schema;
}

Schema OrderSchema(uint64_t rows) {
  Schema schema = SchemaOf<Order>("ORDER", rows, kDistrictBits + kOrderBits);
  schema.clustered_key_bits = 2;
  AddColumn(schema, "O_ENTRY_D", &Order::entry_d);
  AddColumn(schema, "O_C_ID", &Order::c_id);
  AddColumn(schema, "O_CARRIER_ID", &Order::carrier_id);
  AddColumn(schema, "O_OL_CNT", &Order::ol_cnt);
  AddColumn(schema, "O_ALL_LOCAL", &Order::all_local);
  return schema;
}

Schema OrderLineSchema(uint64_t rows) {
  Schema schema = SchemaOf<OrderLine>("ORDER-LINE", rows, kDistrictBits + kOrderBits + kLineBits);
  schema.clustered_key_bits = kLineBits;
  AddColumn(schema, "OL_AMOUNT", &OrderLine::amount);
  AddColumn(schema, "OL_DELIVERY_D", &OrderLine::delivery_d);
  AddColumn(schema, "OL_I_ID", &OrderLine::i_id);
  AddColumn(schema, "OL_SUPPLY_W_ID", &OrderLine::supply_w_id);
  AddColumn(schema, "OL_QUANTITY", &OrderLine::quantity);
  AddColumn(schema, "OL_DIST_INFO", &OrderLine::dist_info);
  return schema;
}

Schema ItemSchema(uint64_t rows) {
  Schema schema = SchemaOf<Item>("ITEM", rows, kNeverWritten);
  AddColumn(schema, "I_PRICE", &Item::price);
  AddColumn(schema, "I_IM_ID", &Item::im_id);
  AddColumn(schema, "I_NAME", &Item::name);
  AddColumn(schema, "I_DATA", &Item::data);
  return schema;
}

Schema StockSchema(uint64_t rows) {
  Schema schema = SchemaOf<Stock>("STOCK", rows, kItemBits);
  const auto level = static_cast<uint32_t>(OffsetOf(&Stock::level));
  const auto add_level = [&](const char* name, int32_t StockLevel::*member) {
    schema.columns.push_back({name, level + static_cast<uint32_t>(OffsetOf(member)), sizeof(int32_t)});
  };
  add_level("S_QUANTITY", &StockLevel::quantity);
  add_level("S_YTD", &StockLevel::ytd);
  add_level("S_ORDER_CNT", &StockLevel::order_cnt);
  add_level("S_REMOTE_CNT", &StockLevel::remote_cnt);
  const auto dist = static_cast<uint32_t>(OffsetOf(&Stock::dist));
  for (uint32_t d = 0; d < kDistrictsPerWarehouse; ++d) {
    const std::string number = d + 1 < 10 ? "0" + std::to_string(d + 1) : std::to_string(d + 1);
    schema.columns.push_back({"S_DIST_" + number, dist + d * 24, 24});
  }
  AddColumn(schema, "S_DATA", &Stock::data);
  return schema;
}

}  // namespace

Tpcc::Tpcc(const TpccConfig& config)
    : config_(config), cardinalities_(config.small ? kSmallCardinalities : kStandardCardinalities) {
  if (config.warehouses < 1 || config.warehouses > kWarehousesMax) {
    throw Error(ExitStatus::kUsage, "NUM_WH must be 1 to " + std::to_string(kWarehousesMax));
  }
  if (!(config.perc_payment >= 0 && config.perc_payment <= 1)) {
    throw Error(ExitStatus::kUsage, "PERC_PAYMENT must be 0 to 1");
  }
}

void Tpcc::CreateTables(Database& db) {
  const uint64_t warehouses = config_.warehouses;
  const uint64_t districts = warehouses * kDistrictsPerWarehouse;
  const uint64_t customers = districts * cardinalities_.customers_per_district;
  const uint64_t orders = customers + config_.expected_new_orders;
  const uint64_t undelivered = districts * cardinalities_.undelivered_orders + config_.expected_new_orders;
  tables_.warehouse = &db.CreateTable(WarehouseSchema(warehouses));
  tables_.district = &db.CreateTable(DistrictSchema(districts));
  tables_.customer = &db.CreateTable(CustomerSchema(customers));
  tables_.history = &db.CreateTable(HistorySchema(customers + config_.expected_payments));
  tables_.new_order = &db.CreateTable(NewOrderSchema(undelivered));
  tables_.order = &db.CreateTable(OrderSchema(orders));
  tables_.order_line = &db.CreateTable(OrderLineSchema(orders * (kLinesMin + kLinesMax) / 2));
  tables_.item = &db.CreateTable(ItemSchema(cardinalities_.items + 1));
  tables_.stock = &db.CreateTable(StockSchema(warehouses * cardinalities_.items));
  tables_.customer_by_last_name = &db.CreateSecondaryIndex("CUSTOMER_BY_LAST_NAME");
}

CallList Tpcc::Generate(WorkerId worker, uint64_t count, uint64_t seed) const {
  CallList list;
  Random random(seed, worker.value());
  const uint32_t home = worker.value() % config_.warehouses + 1;
  std::vector<std::pair<ProcedureId, size_t>> starts;  // in words
  starts.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    // The initial orders took the dates before.
    const auto date = static_cast<uint32_t>(cardinalities_.customers_per_district + 1 + i);
    const size_t start = list.storage.size();
    if (random.Chance(config_.perc_payment)) {
      starts.emplace_back(kPayment, start);
      const PaymentArgs payment = ChoosePayment(random, home, date);
      list.storage.resize(start + sizeof payment / sizeof(uint64_t));
      std::memcpy(&list.storage[start], &payment, sizeof payment);
    } else {
      starts.emplace_back(kNewOrder, start);
      AppendNewOrder(random, home, date, list.storage);
    }
  }
  list.calls.reserve(count);
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto [procedure, start] = starts[i];
    const size_t end = i + 1 < starts.size() ? starts[i + 1].second : list.storage.size();
    list.calls.push_back({procedure, std::as_writable_bytes(std::span(list.storage).subspan(start, end - start))});
  }
  return list;
}

void Tpcc::Prefault(WorkerId worker, uint64_t transactions) {
  const auto payments = static_cast<uint64_t>(static_cast<double>(transactions) * config_.perc_payment);
  const uint64_t new_orders = transactions - payments;
  tables_.history->PrefaultRows(worker, payments);
  tables_.order->PrefaultRows(worker, new_orders);
  tables_.new_order->PrefaultRows(worker, new_orders);
  tables_.order_line->PrefaultRows(worker, new_orders * (kLinesMin + kLinesMax) / 2);
}

uint32_t Tpcc::ChooseCustomer(Random& random) const {
  return static_cast<uint32_t>(NuRand(random, 1023, kCustomerC, 1, cardinalities_.customers_per_district));
}

// REQUIRES: more than one warehouse.
uint32_t Tpcc::OtherWarehouse(Random& random, uint32_t home) const {
  const auto other = static_cast<uint32_t>(random.Between(1, config_.warehouses - 1));
  return other < home ? other : other + 1;
}

PaymentArgs Tpcc::ChoosePayment(Random& random, uint32_t home, uint32_t date) const {
  PaymentArgs args{};
  args.date = date;
  args.amount_cents = static_cast<uint32_t>(random.Between(kPaymentMinCents, kPaymentMaxCents));
  args.w_id = static_cast<uint16_t>(home);
  args.d_id = static_cast<uint8_t>(random.Between(1, kDistrictsPerWarehouse));
  const bool remote = config_.warehouses > 1 && random.Chance(kRemotePayment);
  args.c_w_id = remote ? static_cast<uint16_t>(OtherWarehouse(random, home)) : args.w_id;
  args.c_d_id = remote ? static_cast<uint8_t>(random.Between(1, kDistrictsPerWarehouse)) : args.d_id;
  if (random.Chance(kByLastName)) {
    const uint64_t name = NuRand(random, 255, kLastNameC, 0, cardinalities_.last_names - 1);
    args.customer = static_cast<uint16_t>(PaymentArgs::kByLastName | name);
  } else {
    args.customer = static_cast<uint16_t>(ChooseCustomer(random));
  }
  return args;
}

void Tpcc::AppendNewOrder(Random& random, uint32_t home, uint32_t date, std::vector<uint64_t>& storage) const {
  NewOrderArgs args{};
  args.entry_date = date;
  args.w_id = static_cast<uint16_t>(home);
  const uint64_t d_id = random.Between(1, kDistrictsPerWarehouse);
  args.district_customer = static_cast<uint16_t>(d_id << 12 | ChooseCustomer(random));
  NewOrderLine lines[kLinesMax]{};
  const size_t count = random.Between(kLinesMin, kLinesMax);
  for (size_t i = 0; i < count; ++i) {
    const auto ordered = [&](uint32_t item) {
      return std::any_of(lines, lines + i, [&](const NewOrderLine& line) { return line.i_id == item; });
    };
    do {
      lines[i].i_id = static_cast<uint32_t>(NuRand(random, 8191, kItemC, 1, cardinalities_.items));
    } while (ordered(lines[i].i_id));
    const bool remote = config_.warehouses > 1 && random.Chance(kRemoteLine);
    lines[i].supply_w_id = static_cast<uint16_t>(remote ? OtherWarehouse(random, home) : home);
    lines[i].quantity = static_cast<uint16_t>(random.Between(1, kQuantityMax));
  }
  if (random.Chance(kUnusedItem)) lines[count - 1].i_id = cardinalities_.items + 1;
  const size_t start = storage.size();
  storage.resize(start + (sizeof args + count * sizeof(NewOrderLine)) / sizeof(uint64_t));
  std::memcpy(&storage[start], &args, sizeof args);
  std::memcpy(&storage[start + sizeof args / sizeof(uint64_t)], lines, count * sizeof(NewOrderLine));
}

bool Tpcc::ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
  if (procedure == kPayment) return ValidPayment(args);
  if (procedure == kNewOrder) return ValidNewOrder(args);
  return false;
}

bool Tpcc::ValidPayment(std::span<const std::byte> bytes) const {
  if (bytes.size() != sizeof(PaymentArgs)) return false;
  const auto args = LoadArgs<PaymentArgs>(bytes);
  const auto in = [](uint64_t value, uint64_t low, uint64_t high) { return low <= value && value <= high; };
  // The load's transaction ids are taken by the initial HISTORY.
  return args.id.worker() != kLoadWorker && in(args.w_id, 1, config_.warehouses) &&
         in(args.c_w_id, 1, config_.warehouses) && in(args.d_id, 1, kDistrictsPerWarehouse) &&
         in(args.c_d_id, 1, kDistrictsPerWarehouse) && in(args.amount_cents, kPaymentMinCents, kPaymentMaxCents) &&
         (args.by_last_name() ? args.last_name() < cardinalities_.last_names
                              : in(args.customer, 1, cardinalities_.customers_per_district));
}

bool Tpcc::ValidNewOrder(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(NewOrderArgs) || (bytes.size() - sizeof(NewOrderArgs)) % sizeof(NewOrderLine) != 0) {
    return false;
  }
  const size_t count = (bytes.size() - sizeof(NewOrderArgs)) / sizeof(NewOrderLine);
  const auto args = LoadArgs<NewOrderArgs>(bytes);
  const auto in = [](uint64_t value, uint64_t low, uint64_t high) { return low <= value && value <= high; };
  if (!in(count, kLinesMin, kLinesMax) || args.id.worker() == kLoadWorker || !in(args.w_id, 1, config_.warehouses) ||
      !in(args.d_id(), 1, kDistrictsPerWarehouse) || !in(args.c_id(), 1, cardinalities_.customers_per_district)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto line = LoadArgs<NewOrderLine>(bytes, sizeof args + i * sizeof(NewOrderLine));
    // Only the last line may name the unused item.
    const uint32_t item_max = cardinalities_.items + (i + 1 == count);
    if (!in(line.i_id, 1, item_max) || !in(line.supply_w_id, 1, config_.warehouses) ||
        !in(line.quantity, 1, kQuantityMax)) {
      return false;
    }
  }
  return true;
}

void Tpcc::PrefetchBuckets(const Call& call) const {
  if (call.procedure == kPayment) {
    const auto args = LoadArgs<PaymentArgs>(call.args);
    if (args.by_last_name()) {
      // The row that the name leads to is fetched a few calls later.
      tables_.customer_by_last_name->Prefetch(LastNameKey(args.c_w_id, args.c_d_id, args.last_name()));
    } else {
      tables_.customer->PrefetchBucket(CustomerKey(args.c_w_id, args.c_d_id, args.customer));
    }
    return;
  }
  const auto args = LoadArgs<NewOrderArgs>(call.args);
  tables_.customer->PrefetchBucket(CustomerKey(args.w_id, args.d_id(), args.c_id()));
  for (size_t at = sizeof args; at < call.args.size(); at += sizeof(NewOrderLine)) {
    const auto line = LoadArgs<NewOrderLine>(call.args, at);
    tables_.item->PrefetchBucket(ItemKey(line.i_id));
    tables_.stock->PrefetchBucket(StockKey(line.supply_w_id, line.i_id));
  }
}

void Tpcc::PrefetchRows(const Call& call) const {
  // Lines from the start of a row that a transaction touches.
  constexpr int kCustomerLines = 2, kItemLines = 1;
  if (call.procedure == kPayment) {
    const auto args = LoadArgs<PaymentArgs>(call.args);
    tables_.district->PrefetchRow(DistrictKey(args.w_id, args.d_id), 1);
    if (const std::optional<Key> customer = PayingCustomer(args)) {
      tables_.customer->PrefetchRow(*customer, kCustomerLines);
    }
    return;
  }
  const auto args = LoadArgs<NewOrderArgs>(call.args);
  tables_.district->PrefetchRow(DistrictKey(args.w_id, args.d_id()), 1);
  tables_.customer->PrefetchRow(CustomerKey(args.w_id, args.d_id(), args.c_id()), kCustomerLines);
  // Up to the S_DIST of the order's district.
  const size_t stock_bytes = sizeof(Row) + OffsetOf(&Stock::dist) + args.d_id() * sizeof(Text<24>);
  const int stock_lines = static_cast<int>(stock_bytes / 64) + 1;
  for (size_t at = sizeof args; at < call.args.size(); at += sizeof(NewOrderLine)) {
    const auto line = LoadArgs<NewOrderLine>(call.args, at);
    tables_.item->PrefetchRow(ItemKey(line.i_id), kItemLines);
    tables_.stock->PrefetchRow(StockKey(line.supply_w_id, line.i_id), stock_lines);
  }
}

}  // namespace dbx
