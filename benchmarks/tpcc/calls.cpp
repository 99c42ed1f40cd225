// TPC-C: the calls of terminals (section 2 of the standard) and of logs: generation, validation of arguments, and
// prefetching for a call that runs soon.
#include <algorithm>
#include <array>

#include "benchmarks/tpcc/procedures.h"
#include "benchmarks/tpcc/tpcc_workload.h"
#include "storage/tuple.h"

namespace dbx {

using namespace tpcc;

namespace {

// The constants C of the standard's NURand (section 2.1.6), fixed. The one for last names lies 66 from the
// load's, which the standard allows.
constexpr uint64_t kLastNameC = 223;
constexpr uint64_t kCustomerC = 259;
constexpr uint64_t kItemC = 7911;

constexpr double kRemotePayment = 0.15;
constexpr double kByLastNameShare = 0.60;
constexpr double kRemoteLine = 0.01;
constexpr double kUnusedItem = 0.01;
constexpr uint64_t kPaymentMinCents = 100;
constexpr uint64_t kPaymentMaxCents = 500'000;
constexpr uint64_t kQuantityMax = 10;
constexpr uint64_t kCarriers = 10;
constexpr uint64_t kThresholdMin = 10;
constexpr uint64_t kThresholdMax = 20;

// Non-uniform in [low, high].
uint64_t NuRand(Random& random, uint64_t a, uint64_t c, uint64_t low, uint64_t high) {
  return ((random.Below(a + 1) | random.Between(low, high)) + c) % (high - low + 1) + low;
}

constexpr bool In(uint64_t value, uint64_t low, uint64_t high) { return low <= value && value <= high; }

template <class Args>
void Append(std::vector<uint64_t>& storage, const Args& args) {
  static_assert(std::has_unique_object_representations_v<Args> && sizeof(Args) % sizeof(uint64_t) == 0);
  const size_t start = storage.size();
  storage.resize(start + sizeof args / sizeof(uint64_t));
  std::memcpy(&storage[start], &args, sizeof args);
}

}  // namespace

CallList Tpcc::Generate(WorkerId worker, uint64_t count, uint64_t seed) const {
  CallList list;
  Random random(seed, worker.value());
  const uint32_t home = worker.value() % config_.warehouses + 1;
  std::vector<std::pair<ProcedureId, size_t>> starts;  // in words
  starts.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    // The initial orders took the dates before.
    const auto date = static_cast<uint32_t>(cardinalities_.customers_per_district + 1 + i);
    const ProcedureId procedure = ChooseProcedure(random);
    starts.emplace_back(procedure, list.storage.size());
    if (procedure == kPayment) {
      Append(list.storage, ChoosePayment(random, home, date));
    } else if (procedure == kNewOrder) {
      AppendNewOrder(random, home, date, list.storage);
    } else if (procedure == kOrderStatus) {
      Append(list.storage, ChooseOrderStatus(random, home));
    } else if (procedure == kDelivery) {
      Append(list.storage, ChooseDelivery(random, home, date));
    } else {
      Append(list.storage, ChooseStockLevel(random, home));
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

ProcedureId Tpcc::ChooseProcedure(Random& random) const {
  if (!config_.full_mix) return random.Chance(config_.perc_payment) ? kPayment : kNewOrder;
  uint64_t ticket = random.Below(100);
  for (uint8_t procedure = 0; procedure + 1u < kFullMix.size(); ++procedure) {
    if (ticket < kFullMix[procedure]) return ProcedureId(procedure);
    ticket -= kFullMix[procedure];
  }
  return kStockLevel;
}

uint32_t Tpcc::ChooseCustomer(Random& random) const {
  return static_cast<uint32_t>(NuRand(random, 1023, kCustomerC, 1, cardinalities_.customers_per_district));
}

CustomerName Tpcc::NameCustomer(Random& random) const {
  if (!random.Chance(kByLastNameShare)) return static_cast<CustomerName>(ChooseCustomer(random));
  return static_cast<CustomerName>(kByLastName | NuRand(random, 255, kLastNameC, 0, cardinalities_.last_names - 1));
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
  args.customer = NameCustomer(random);
  return args;
}

OrderStatusArgs Tpcc::ChooseOrderStatus(Random& random, uint32_t home) const {
  OrderStatusArgs args{};
  args.w_id = static_cast<uint16_t>(home);
  args.d_id = static_cast<uint8_t>(random.Between(1, kDistrictsPerWarehouse));
  args.customer = NameCustomer(random);
  return args;
}

DeliveryArgs Tpcc::ChooseDelivery(Random& random, uint32_t home, uint32_t date) const {
  DeliveryArgs args{};
  args.date = date;
  args.w_id = static_cast<uint16_t>(home);
  args.carrier_id = static_cast<uint8_t>(random.Between(1, kCarriers));
  return args;
}

StockLevelArgs Tpcc::ChooseStockLevel(Random& random, uint32_t home) const {
  StockLevelArgs args{};
  args.w_id = static_cast<uint16_t>(home);
  args.d_id = static_cast<uint8_t>(random.Between(1, kDistrictsPerWarehouse));
  args.threshold = static_cast<uint8_t>(random.Between(kThresholdMin, kThresholdMax));
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
  // The other mix lacks a table that they need.
  if (!config_.full_mix) return false;
  if (procedure == kOrderStatus) return ValidOrderStatus(args);
  if (procedure == kDelivery) return ValidDelivery(args);
  return procedure == kStockLevel && ValidStockLevel(args);
}

bool Tpcc::ValidCustomer(CustomerName customer) const {
  return IsLastName(customer) ? LastNameOf(customer) < cardinalities_.last_names
                              : In(customer, 1, cardinalities_.customers_per_district);
}

bool Tpcc::ValidPayment(std::span<const std::byte> bytes) const {
  if (bytes.size() != sizeof(PaymentArgs)) return false;
  const auto args = LoadArgs<PaymentArgs>(bytes);
  // The load's transaction ids are taken by the initial HISTORY.
  return args.id.worker() != kLoadWorker && In(args.w_id, 1, config_.warehouses) &&
         In(args.c_w_id, 1, config_.warehouses) && In(args.d_id, 1, kDistrictsPerWarehouse) &&
         In(args.c_d_id, 1, kDistrictsPerWarehouse) && In(args.amount_cents, kPaymentMinCents, kPaymentMaxCents) &&
         ValidCustomer(args.customer);
}

bool Tpcc::ValidNewOrder(std::span<const std::byte> bytes) const {
  if (bytes.size() < sizeof(NewOrderArgs) || (bytes.size() - sizeof(NewOrderArgs)) % sizeof(NewOrderLine) != 0) {
    return false;
  }
  const size_t count = (bytes.size() - sizeof(NewOrderArgs)) / sizeof(NewOrderLine);
  const auto args = LoadArgs<NewOrderArgs>(bytes);
  if (!In(count, kLinesMin, kLinesMax) || args.id.worker() == kLoadWorker || !In(args.w_id, 1, config_.warehouses) ||
      !In(args.d_id(), 1, kDistrictsPerWarehouse) || !In(args.c_id(), 1, cardinalities_.customers_per_district)) {
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto line = LoadArgs<NewOrderLine>(bytes, sizeof args + i * sizeof(NewOrderLine));
    // Only the last line may name the unused item.
    const uint32_t item_max = cardinalities_.items + (i + 1 == count);
    if (!In(line.i_id, 1, item_max) || !In(line.supply_w_id, 1, config_.warehouses) ||
        !In(line.quantity, 1, kQuantityMax)) {
      return false;
    }
  }
  return true;
}

bool Tpcc::ValidOrderStatus(std::span<const std::byte> bytes) const {
  if (bytes.size() != sizeof(OrderStatusArgs)) return false;
  const auto args = LoadArgs<OrderStatusArgs>(bytes);
  return args.id.worker() != kLoadWorker && In(args.w_id, 1, config_.warehouses) &&
         In(args.d_id, 1, kDistrictsPerWarehouse) && ValidCustomer(args.customer) &&
         (args.zero[0] | args.zero[1] | args.zero[2]) == 0;
}

bool Tpcc::ValidDelivery(std::span<const std::byte> bytes) const {
  if (bytes.size() != sizeof(DeliveryArgs)) return false;
  const auto args = LoadArgs<DeliveryArgs>(bytes);
  return args.id.worker() != kLoadWorker && In(args.w_id, 1, config_.warehouses) && In(args.carrier_id, 1, kCarriers) &&
         args.date != kNotDelivered && args.zero == 0;
}

bool Tpcc::ValidStockLevel(std::span<const std::byte> bytes) const {
  if (bytes.size() != sizeof(StockLevelArgs)) return false;
  const auto args = LoadArgs<StockLevelArgs>(bytes);
  return args.id.worker() != kLoadWorker && In(args.w_id, 1, config_.warehouses) &&
         In(args.d_id, 1, kDistrictsPerWarehouse) && In(args.threshold, kThresholdMin, kThresholdMax) && args.zero == 0;
}

void Tpcc::PrefetchCustomerBucket(uint32_t w, uint32_t d, CustomerName customer) const {
  if (IsLastName(customer)) {
    // The row that the name leads to is fetched a few calls later.
    tables_.customer_by_last_name->Prefetch(LastNameKey(w, d, LastNameOf(customer)));
  } else {
    tables_.customer->PrefetchBucket(CustomerKey(w, d, customer));
  }
}

void Tpcc::PrefetchBuckets(const Call& call) const {
  if (call.procedure == kPayment) {
    const auto args = LoadArgs<PaymentArgs>(call.args);
    return PrefetchCustomerBucket(args.c_w_id, args.c_d_id, args.customer);
  }
  if (call.procedure == kOrderStatus) {
    const auto args = LoadArgs<OrderStatusArgs>(call.args);
    return PrefetchCustomerBucket(args.w_id, args.d_id, args.customer);
  }
  if (call.procedure != kNewOrder) return;
  const auto args = LoadArgs<NewOrderArgs>(call.args);
  tables_.customer->PrefetchBucket(CustomerKey(args.w_id, args.d_id(), args.c_id()));
  for (size_t at = sizeof args; at < call.args.size(); at += sizeof(NewOrderLine)) {
    const auto line = LoadArgs<NewOrderLine>(call.args, at);
    tables_.item->PrefetchBucket(ItemKey(line.i_id));
    tables_.stock->PrefetchBucket(StockKey(line.supply_w_id, line.i_id));
  }
}

void Tpcc::PrefetchRows(const Call& call, WrittenRows written) const {
  const bool whole = written == WrittenRows::kWhole;
  const auto prefetch = [written](const Table& table, Key key, size_t tuple_bytes) {
    table.PrefetchRow(key, written == WrittenRows::kNoTuple ? 0 : tuple_bytes);
  };
  // The bytes that a transaction touches, from the start of a tuple.
  const size_t customer_bytes = OffsetOf(&Customer::street_1);
  const size_t district_bytes = whole ? sizeof(District) : OffsetOf(&District::street_1);
  if (call.procedure == kPayment) {
    const auto args = LoadArgs<PaymentArgs>(call.args);
    prefetch(*tables_.district, DistrictKey(args.w_id, args.d_id), district_bytes);
    if (const std::optional<Key> customer = CustomerNamed(args.c_w_id, args.c_d_id, args.customer)) {
      prefetch(*tables_.customer, *customer, whole ? sizeof(Customer) : customer_bytes);
    }
    return;
  }
  if (call.procedure == kOrderStatus) {
    const auto args = LoadArgs<OrderStatusArgs>(call.args);
    if (const std::optional<Key> customer = CustomerNamed(args.w_id, args.d_id, args.customer)) {
      prefetch(*tables_.customer, *customer, customer_bytes);
      tables_.order_by_customer->PrefetchBucket(OrderByCustomerKey(*customer, kOrderMax));
    }
    return;
  }
  if (call.procedure != kNewOrder) return;
  const auto args = LoadArgs<NewOrderArgs>(call.args);
  prefetch(*tables_.district, DistrictKey(args.w_id, args.d_id()), district_bytes);
  prefetch(*tables_.customer, CustomerKey(args.w_id, args.d_id(), args.c_id()), customer_bytes);
  // Up to the S_DIST of the order's district.
  const size_t stock_bytes = whole ? sizeof(Stock) : OffsetOf(&Stock::dist) + args.d_id() * sizeof(Text<24>);
  for (size_t at = sizeof args; at < call.args.size(); at += sizeof(NewOrderLine)) {
    const auto line = LoadArgs<NewOrderLine>(call.args, at);
    prefetch(*tables_.item, ItemKey(line.i_id), sizeof(Item::price));
    prefetch(*tables_.stock, StockKey(line.supply_w_id, line.i_id), stock_bytes);
  }
}

}  // namespace dbx
