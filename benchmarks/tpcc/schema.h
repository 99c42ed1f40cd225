// The nine tables of TPC-C, and a tenth that is an index: tuples, keys and cardinalities.
//
// A tuple holds the columns of the standard except those of its primary key, which are the row's key. Strings are
// zero-padded, amounts are in cents, rates in ten-thousandths. Every byte of a tuple is a column or zero, never
// padding, because digests and logs cover all of them. Columns that transactions write are first.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "base/types.h"

namespace dbx::tpcc {

template <size_t kBytes>
using Text = std::array<char, kBytes>;

inline constexpr uint32_t kDistrictsPerWarehouse = 10;
inline constexpr uint32_t kLinesMin = 5;
inline constexpr uint32_t kLinesMax = 15;
inline constexpr uint32_t kWarehousesMax = 65'535;
inline constexpr int64_t kInitialPaymentCents = 1000;  // every customer's payment in the initial HISTORY
inline constexpr uint8_t kNoCarrier = 0;
inline constexpr int64_t kNotDelivered = 0;

// How many rows there are per warehouse, or in all for items.
struct Cardinalities {
  uint32_t items;
  uint32_t customers_per_district;  // as many initial orders
  uint32_t undelivered_orders;      // the last ones of each district's initial orders
  uint32_t last_names;
};
inline constexpr Cardinalities kStandardCardinalities{100'000, 3000, 900, 1000};
inline constexpr Cardinalities kSmallCardinalities{100, 30, 9, 10};

struct Warehouse {
  int64_t ytd;
  int32_t tax;
  Text<10> name;
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<9> zip;
  Text<3> zero;
};

struct District {
  int64_t ytd;
  int32_t next_o_id;
  int32_t tax;
  Text<10> name;
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<9> zip;
  Text<7> zero;
};

// The columns that a Payment changes of every customer; one change, one before-image.
struct CustomerAccount {
  int64_t balance;
  int64_t ytd_payment;
  int32_t payment_cnt;
  int32_t delivery_cnt;
};

struct Customer {
  CustomerAccount account;
  int64_t since;
  int64_t credit_lim;
  int32_t discount;
  Text<2> credit;
  Text<2> middle;
  Text<16> first;
  Text<16> last;
  Text<20> street_1;
  Text<20> street_2;
  Text<20> city;
  Text<2> state;
  Text<9> zip;
  Text<16> phone;
  Text<500> data;
  Text<5> zero;
};

struct History {
  int64_t date;
  int64_t amount;
  int32_t c_id;
  uint16_t c_d_id;
  uint16_t c_w_id;
  uint16_t d_id;
  uint16_t w_id;
  Text<24> data;
  Text<4> zero;
};

struct NewOrder {
  int64_t o_id;  // part of the key as well: a tuple is not empty
};

struct Order {
  int64_t entry_d;
  int32_t c_id;
  uint8_t carrier_id;  // kNoCarrier: not delivered yet
  uint8_t ol_cnt;
  uint8_t all_local;
  Text<1> zero;
};

struct OrderLine {
  int64_t amount;
  int64_t delivery_d;  // kNotDelivered
  int32_t i_id;
  uint16_t supply_w_id;
  uint16_t quantity;
  Text<24> dist_info;
};

// Leads from a customer to the orders, the newest one last.
struct OrderByCustomer {
  Key order;  // key of the row in ORDER
};

struct Item {
  int64_t price;
  int32_t im_id;
  Text<24> name;
  Text<50> data;
  Text<2> zero;
};

// The columns that a New-Order changes; one change, one before-image.
struct StockLevel {
  int32_t quantity;
  int32_t ytd;
  int32_t order_cnt;
  int32_t remote_cnt;
};

struct Stock {
  StockLevel level;
  std::array<Text<24>, kDistrictsPerWarehouse> dist;
  Text<50> data;
  Text<2> zero;
};

static_assert(std::has_unique_object_representations_v<Warehouse> && sizeof(Warehouse) == 96);
static_assert(std::has_unique_object_representations_v<District> && sizeof(District) == 104);
static_assert(std::has_unique_object_representations_v<Customer> && sizeof(Customer) == 672);
static_assert(std::has_unique_object_representations_v<History> && sizeof(History) == 56);
static_assert(std::has_unique_object_representations_v<NewOrder> && sizeof(NewOrder) == 8);
static_assert(std::has_unique_object_representations_v<Order> && sizeof(Order) == 16);
static_assert(std::has_unique_object_representations_v<OrderLine> && sizeof(OrderLine) == 48);
static_assert(std::has_unique_object_representations_v<OrderByCustomer> && sizeof(OrderByCustomer) == 8);
static_assert(std::has_unique_object_representations_v<Item> && sizeof(Item) == 88);
static_assert(std::has_unique_object_representations_v<Stock> && sizeof(Stock) == 308);

// Keys. Every component was checked against its range before. Scanned rows have adjacent keys: the undelivered orders
// of a district, the lines of an order and of those after it, the orders of a customer.
//
//   warehouse   w                      item               i
//   district    w:16 d:4               stock              w:16 i:20
//   customer    w:16 d:4 c:12          order              w:16 d:4 o:32     (NEW-ORDER the same)
//   history     the transaction's id   order line         w:16 d:4 o:32 number:4
//                                      order by customer  w:16 d:4 c:12 o:32
inline constexpr uint32_t kDistrictBits = 4;
inline constexpr uint32_t kCustomerBits = 12;
inline constexpr uint32_t kItemBits = 20;
inline constexpr uint32_t kOrderBits = 32;
inline constexpr uint32_t kLineBits = 4;
inline constexpr uint32_t kOrderMax = 0xffffffff;  // above every order's number
inline constexpr uint32_t kLineMax = (1u << kLineBits) - 1;

constexpr Key WarehouseKey(uint32_t w) { return w; }
constexpr Key DistrictKey(uint32_t w, uint32_t d) { return Key{w} << kDistrictBits | d; }
constexpr Key CustomerKey(uint32_t w, uint32_t d, uint32_t c) { return DistrictKey(w, d) << kCustomerBits | c; }
constexpr Key ItemKey(uint32_t i) { return i; }
constexpr Key StockKey(uint32_t w, uint32_t i) { return Key{w} << kItemBits | i; }
constexpr Key OrderKey(uint32_t w, uint32_t d, uint32_t o) { return DistrictKey(w, d) << kOrderBits | o; }
constexpr Key OrderLineKey(Key order, uint32_t number) { return order << kLineBits | number; }
constexpr Key OrderByCustomerKey(Key customer, uint32_t o) { return customer << kOrderBits | o; }
constexpr uint32_t CustomerIdOf(Key customer) { return customer & ((1u << kCustomerBits) - 1); }
constexpr uint32_t OrderIdOf(Key order) { return static_cast<uint32_t>(order); }
// Customers of a district by the number of their last name.
constexpr uint64_t LastNameKey(uint32_t w, uint32_t d, uint32_t name) { return CustomerKey(w, d, name); }
// Rows of the initial HISTORY; no worker has this number.
inline constexpr WorkerId kLoadWorker{0xffff};

}  // namespace dbx::tpcc
