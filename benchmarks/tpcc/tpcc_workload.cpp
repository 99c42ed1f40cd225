// TPC-C: the tables.
#include "benchmarks/tpcc/tpcc_workload.h"

#include <algorithm>

#include "base/error.h"
#include "storage/tuple.h"

namespace dbx {

using namespace tpcc;

namespace {

template <class S, class T>
void AddColumn(Schema& schema, const char* name, T S::*member) {
  schema.columns.push_back({name, static_cast<uint32_t>(OffsetOf(member)), sizeof(T)});
}

// A partition is a warehouse with all rows keyed by it; HISTORY, which is not, is partitioned by worker. Tables that
// are never written are one partition, so that logging by partition has few to check.
constexpr uint32_t kNeverWritten = 63;

// Ranges of keys that are adopted together (Schema::heap_range_bits) have consecutive orders of a district, or HISTORY
// rows of a worker; of ORDER-LINE, which has ten rows an order, fewer; of ORDER-BY-CUSTOMER some rows of each customer.
constexpr uint32_t kOrderRangeBits = 9, kOrderOfLineRangeBits = 6, kCustomerRangeBits = 5;

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
  schema.heap_range_bits = kOrderRangeBits;
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
  schema.heap_range_bits = kOrderRangeBits;
  schema.clustered_key_bits = 2;
  AddColumn(schema, "NO_O_ID", &tpcc::NewOrder::o_id);
  return schema;
}

Schema OrderSchema(uint64_t rows) {
  Schema schema = SchemaOf<Order>("ORDER", rows, kDistrictBits + kOrderBits);
  schema.heap_range_bits = kOrderRangeBits;
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
  schema.heap_range_bits = kOrderOfLineRangeBits + kLineBits;
  schema.clustered_key_bits = kLineBits;
  AddColumn(schema, "OL_AMOUNT", &OrderLine::amount);
  AddColumn(schema, "OL_DELIVERY_D", &OrderLine::delivery_d);
  AddColumn(schema, "OL_I_ID", &OrderLine::i_id);
  AddColumn(schema, "OL_SUPPLY_W_ID", &OrderLine::supply_w_id);
  AddColumn(schema, "OL_QUANTITY", &OrderLine::quantity);
  AddColumn(schema, "OL_DIST_INFO", &OrderLine::dist_info);
  return schema;
}

Schema OrderByCustomerSchema(uint64_t rows) {
  Schema schema = SchemaOf<OrderByCustomer>("ORDER-BY-CUSTOMER", rows, kDistrictBits + kCustomerBits + kOrderBits);
  schema.heap_range_bits = kCustomerRangeBits + kOrderBits;
  AddColumn(schema, "O_KEY", &OrderByCustomer::order);
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
  const auto create_scanned = [&](Schema schema) {
    if (config_.full_mix) schema.ordered = true;
    return &db.CreateTable(std::move(schema));
  };
  tables_.new_order = create_scanned(NewOrderSchema(undelivered));
  tables_.order = &db.CreateTable(OrderSchema(orders));
  tables_.order_line = create_scanned(OrderLineSchema(orders * (kLinesMin + kLinesMax) / 2));
  tables_.item = &db.CreateTable(ItemSchema(cardinalities_.items + 1));
  tables_.stock = &db.CreateTable(StockSchema(warehouses * cardinalities_.items));
  if (config_.full_mix) tables_.order_by_customer = create_scanned(OrderByCustomerSchema(orders));
  tables_.customer_by_last_name = &db.CreateSecondaryIndex("CUSTOMER_BY_LAST_NAME");
}

void Tpcc::Prefault(WorkerId worker, uint64_t transactions) {
  const auto share = [&](double part) { return static_cast<uint64_t>(static_cast<double>(transactions) * part); };
  const uint64_t payments = share(config_.payment_share());
  const uint64_t new_orders = share(config_.new_order_share());
  tables_.history->PrefaultRows(worker, payments);
  tables_.order->PrefaultRows(worker, new_orders);
  tables_.new_order->PrefaultRows(worker, new_orders);
  tables_.order_line->PrefaultRows(worker, new_orders * (kLinesMin + kLinesMax) / 2);
  if (config_.full_mix) tables_.order_by_customer->PrefaultRows(worker, new_orders);
}

}  // namespace dbx
