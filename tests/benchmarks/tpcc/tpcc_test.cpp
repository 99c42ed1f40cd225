// Claims about the TPC-C workload: generation, arguments, procedures. The conditions are in consistency_test.cpp.
#include "benchmarks/tpcc/tpcc.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "tests/benchmarks/map_context.h"

namespace dbx {
namespace {

using namespace tpcc;

constexpr TpccConfig kTwoWarehouses{.warehouses = 2, .small = true};

struct LoadedTpcc {
  explicit LoadedTpcc(const TpccConfig& config = kTwoWarehouses, uint64_t seed = 1, uint32_t threads = 1)
      : db({}, threads), tpcc(config) {
    tpcc.CreateTables(db);
    tpcc.Load(db, seed, threads);
  }
  Database db;
  Tpcc tpcc;
};

template <class S>
S RowOf(MapContext& context, const Table* table, Key key) {
  S tuple;
  std::memcpy(&tuple, context.map(*table).at(key).data(), sizeof tuple);
  return tuple;
}

// A New-Order of `items`, one unit each except where said, at warehouse 1, district 3, for customer 7.
std::vector<uint64_t> MakeNewOrder(std::vector<NewOrderLine> lines, uint64_t id = 77) {
  std::vector<uint64_t> words(2 + lines.size());
  const NewOrderArgs args{TxnId{id}, 5, 1, 3 << 12 | 7};
  std::memcpy(words.data(), &args, sizeof args);
  std::memcpy(words.data() + 2, lines.data(), lines.size() * sizeof lines[0]);
  return words;
}
Call CallOf(ProcedureId procedure, std::vector<uint64_t>& words) {
  return {procedure, std::as_writable_bytes(std::span(words))};
}
std::vector<uint64_t> WordsOf(const PaymentArgs& args) {
  std::vector<uint64_t> words(sizeof args / 8);
  std::memcpy(words.data(), &args, sizeof args);
  return words;
}

const std::vector<NewOrderLine> kFiveLines = {{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {4, 1, 4}, {5, 1, 5}};

TEST(TpccTest, LoadDependsOnTheSeedAndNotOnTheThreads) {
  LoadedTpcc one(kTwoWarehouses, 1, 1), two(kTwoWarehouses, 1, 2), other(kTwoWarehouses, 2, 1);
  EXPECT_EQ(MapContext(one.db).Digest(), MapContext(two.db).Digest());
  EXPECT_EQ(one.tpcc.tables().customer_by_last_name->Digest(), two.tpcc.tables().customer_by_last_name->Digest());
  EXPECT_NE(MapContext(one.db).Digest(), MapContext(other.db).Digest());
}

TEST(TpccTest, LoadFillsAllNineTables) {
  LoadedTpcc loaded;
  const std::vector<std::pair<const char*, uint64_t>> expected = {
      {"WAREHOUSE", 2}, {"DISTRICT", 20},  {"CUSTOMER", 600}, {"HISTORY", 600}, {"NEW-ORDER", 180},
      {"ORDER", 600},   {"ORDER-LINE", 0}, {"ITEM", 100},     {"STOCK", 200}};
  ASSERT_EQ(loaded.db.table_count(), expected.size());
  for (uint16_t t = 0; t < expected.size(); ++t) {
    const Table& table = loaded.db.table(TableId(t));
    EXPECT_EQ(table.schema().name, expected[t].first);
    if (expected[t].second == 0) continue;  // random
    EXPECT_EQ(table.row_count(), expected[t].second) << table.schema().name;
  }
  EXPECT_NEAR(static_cast<double>(loaded.tpcc.tables().order_line->row_count()), 6000, 400);
}

TEST(TpccTest, ColumnsCoverTheirTuplesWithoutOverlap) {
  LoadedTpcc loaded;
  for (uint16_t t = 0; t < loaded.db.table_count(); ++t) {
    const Schema& schema = loaded.db.table(TableId(t)).schema();
    std::vector<Column> columns = schema.columns;
    std::sort(columns.begin(), columns.end(), [](auto& a, auto& b) { return a.offset_bytes < b.offset_bytes; });
    uint32_t end = 0;
    for (const Column& column : columns) {
      EXPECT_EQ(column.offset_bytes, end) << schema.name << "." << column.name;
      end = column.offset_bytes + column.size_bytes;
    }
    EXPECT_LE(end, schema.tuple_bytes);
    EXPECT_LT(schema.tuple_bytes - end, 8u) << schema.name;
  }
}

TEST(TpccTest, GenerateIsDeterministicInWorkerAndSeed) {
  const Tpcc tpcc(kTwoWarehouses);
  const CallList list = tpcc.Generate(WorkerId(2), 500, 7);
  EXPECT_EQ(list.storage, tpcc.Generate(WorkerId(2), 500, 7).storage);
  EXPECT_NE(list.storage, tpcc.Generate(WorkerId(4), 500, 7).storage);
  EXPECT_NE(list.storage, tpcc.Generate(WorkerId(2), 500, 8).storage);
}

TEST(TpccTest, GeneratedCallsAreValidAndLieInTheStorage) {
  for (bool small : {true, false}) {
    const Tpcc tpcc({.warehouses = 3, .small = small});
    CallList list = tpcc.Generate(WorkerId(5), 2000, 1);
    size_t bytes = 0;
    for (Call& call : list.calls) {
      ASSERT_EQ(static_cast<void*>(call.args.data()), reinterpret_cast<std::byte*>(list.storage.data()) + bytes);
      bytes += call.args.size();
      call.set_txn_id(TxnId::Make(WorkerId(5), bytes));
      ASSERT_TRUE(tpcc.ValidArgs(call.procedure, call.args));
    }
    EXPECT_EQ(bytes, list.storage.size() * 8);
  }
}

TEST(TpccTest, TheMixHasTheProportionsOfTheStandard) {
  const Tpcc tpcc({.warehouses = 4, .perc_payment = 0.4});
  const CallList list = tpcc.Generate(WorkerId(1), 50'000, 3);
  double payments = 0, remote = 0, by_name = 0, lines = 0, remote_lines = 0, unused = 0;
  for (const Call& call : list.calls) {
    if (call.procedure == kPayment) {
      const auto args = LoadArgs<PaymentArgs>(call.args);
      ++payments, remote += args.c_w_id != 2, by_name += IsLastName(args.customer);
      ASSERT_EQ(args.w_id, 2);
      continue;
    }
    for (size_t at = sizeof(NewOrderArgs); at < call.args.size(); at += sizeof(NewOrderLine)) {
      const auto line = LoadArgs<NewOrderLine>(call.args, at);
      ++lines, remote_lines += line.supply_w_id != 2, unused += line.i_id == 100'001;
    }
  }
  EXPECT_NEAR(payments / 50'000, 0.4, 0.01);
  EXPECT_NEAR(remote / payments, 0.15, 0.01);
  EXPECT_NEAR(by_name / payments, 0.6, 0.01);
  EXPECT_NEAR(lines / (50'000 - payments), 10, 0.1);
  EXPECT_NEAR(remote_lines / lines, 0.01, 0.002);
  EXPECT_NEAR(unused / (50'000 - payments), 0.01, 0.003);
}

TEST(TpccTest, NewOrderWritesEveryTableItShould) {
  LoadedTpcc loaded;
  const Tpcc::Tables& t = loaded.tpcc.tables();
  MapContext context(loaded.db);
  const auto before = RowOf<Stock>(context, t.stock, StockKey(2, 3)).level;
  std::vector<uint64_t> words = MakeNewOrder(kFiveLines);
  ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kNewOrder, words)), Outcome::kOk);
  EXPECT_EQ(RowOf<District>(context, t.district, DistrictKey(1, 3)).next_o_id, 32);
  const auto order = RowOf<Order>(context, t.order, OrderKey(1, 3, 31));
  EXPECT_EQ(order.c_id, 7);
  EXPECT_EQ(order.ol_cnt, 5);
  EXPECT_EQ(order.all_local, 0);
  EXPECT_EQ(RowOf<tpcc::NewOrder>(context, t.new_order, OrderKey(1, 3, 31)).o_id, 31);
  const auto line = RowOf<OrderLine>(context, t.order_line, OrderLineKey(OrderKey(1, 3, 31), 3));
  EXPECT_EQ(line.amount, 3 * RowOf<Item>(context, t.item, 3).price);
  const auto stock = RowOf<Stock>(context, t.stock, StockKey(2, 3));
  EXPECT_EQ(line.dist_info, stock.dist[2]);
  EXPECT_EQ(stock.level.ytd, before.ytd + 3);
  EXPECT_EQ(stock.level.remote_cnt, 1);
}

TEST(TpccTest, StockIsFilledUpWhenItRunsLow) {
  LoadedTpcc loaded;
  const Table* stock = loaded.tpcc.tables().stock;
  MapContext context(loaded.db);
  int64_t quantity = RowOf<Stock>(context, stock, StockKey(1, 5)).level.quantity;
  for (uint64_t id = 1; id <= 40; ++id) {
    std::vector<uint64_t> words = MakeNewOrder(kFiveLines, id);
    ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kNewOrder, words)), Outcome::kOk);
    quantity = quantity >= 15 ? quantity - 5 : quantity - 5 + 91;
    ASSERT_EQ(RowOf<Stock>(context, stock, StockKey(1, 5)).level.quantity, quantity);
  }
}

TEST(TpccTest, AnItemOrderedTwiceIsTakenTwice) {
  LoadedTpcc loaded;
  MapContext context(loaded.db);
  std::vector<uint64_t> words = MakeNewOrder({{9, 1, 4}, {9, 1, 3}, {1, 1, 1}, {2, 1, 1}, {3, 1, 1}});
  ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kNewOrder, words)), Outcome::kOk);
  const auto level = RowOf<Stock>(context, loaded.tpcc.tables().stock, StockKey(1, 9)).level;
  EXPECT_EQ(level.ytd, 7);
  EXPECT_EQ(level.order_cnt, 2);
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.tpcc.Inconsistency(loaded.db), std::nullopt);
}

TEST(TpccTest, AnUnusedItemRollsBackWithoutATrace) {
  LoadedTpcc loaded;
  MapContext context(loaded.db);
  const uint64_t before = context.Digest();
  std::vector<NewOrderLine> lines = kFiveLines;
  lines.back().i_id = 101;
  std::vector<uint64_t> words = MakeNewOrder(lines);
  EXPECT_TRUE(loaded.tpcc.ValidArgs(kNewOrder, std::as_bytes(std::span(words))));
  EXPECT_EQ(context.Execute(loaded.tpcc, CallOf(kNewOrder, words)), Outcome::kRollback);
  EXPECT_EQ(context.Digest(), before);
}

constexpr PaymentArgs kSomePayment{TxnId::Make(WorkerId(1), 4), 9, 12'345, 1, 2, 7, 3, 4};

TEST(TpccTest, PaymentMovesTheAmountEverywhere) {
  LoadedTpcc loaded;
  const Tpcc::Tables& t = loaded.tpcc.tables();
  MapContext context(loaded.db);
  std::vector<uint64_t> words = WordsOf(kSomePayment);
  ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kPayment, words)), Outcome::kOk);
  EXPECT_EQ(RowOf<Warehouse>(context, t.warehouse, 1).ytd, 30 * 10 * 1000 + 12'345);
  EXPECT_EQ(RowOf<District>(context, t.district, DistrictKey(1, 3)).ytd, 30 * 1000 + 12'345);
  const auto account = RowOf<Customer>(context, t.customer, CustomerKey(2, 4, 7)).account;
  EXPECT_EQ(account.balance, -1000 - 12'345);
  EXPECT_EQ(account.ytd_payment, 1000 + 12'345);
  EXPECT_EQ(account.payment_cnt, 2);
  const auto history = RowOf<tpcc::History>(context, t.history, kSomePayment.id.value);
  EXPECT_EQ(history.amount, 12'345);
  const auto name = RowOf<Warehouse>(context, t.warehouse, 1).name;
  EXPECT_TRUE(std::equal(name.begin(), name.end(), history.data.begin()));
}

TEST(TpccTest, WithoutWarehouseUpdatesTheWarehouseStays) {
  TpccConfig config = kTwoWarehouses;
  config.wh_update = false;
  LoadedTpcc loaded(config);
  MapContext context(loaded.db);
  std::vector<uint64_t> words = WordsOf(kSomePayment);
  ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kPayment, words)), Outcome::kOk);
  EXPECT_EQ(RowOf<Warehouse>(context, loaded.tpcc.tables().warehouse, 1).ytd, 30 * 10 * 1000);
  context.CopyTo(loaded.db);
  EXPECT_EQ(loaded.tpcc.Inconsistency(loaded.db), std::nullopt);
}

// Of the customers of warehouse 2, district 4 with the last name `number`, in the order of their first names.
std::vector<uint32_t> BearersOf(MapContext& context, const Table* customers, uint32_t number) {
  const auto name = RowOf<Customer>(context, customers, CustomerKey(2, 4, number + 1)).last;
  std::map<Text<16>, uint32_t> bearers;
  for (uint32_t c = 1; c <= 30; ++c) {
    const auto customer = RowOf<Customer>(context, customers, CustomerKey(2, 4, c));
    if (customer.last == name) bearers.emplace(customer.first, c);
  }
  std::vector<uint32_t> ordered;
  for (const auto& [first, c] : bearers) ordered.push_back(c);
  return ordered;
}

TEST(TpccTest, PaymentByLastNameTakesTheMiddleCustomerRoundedUp) {
  LoadedTpcc loaded;
  const Table* customers = loaded.tpcc.tables().customer;
  std::set<size_t> sizes;
  for (uint32_t name = 0; name < 10; ++name) {
    MapContext context(loaded.db);
    const std::vector<uint32_t> bearers = BearersOf(context, customers, name);
    sizes.insert(bearers.size() % 2);
    PaymentArgs args = kSomePayment;
    args.customer = static_cast<uint16_t>(kByLastName | name);
    std::vector<uint64_t> words = WordsOf(args);
    ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kPayment, words)), Outcome::kOk);
    const uint32_t middle = bearers[(bearers.size() + 1) / 2 - 1];
    EXPECT_EQ(RowOf<Customer>(context, customers, CustomerKey(2, 4, middle)).account.payment_cnt, 2) << name;
  }
  EXPECT_EQ(sizes.size(), 2u) << "both odd and even numbers of bearers should be tried";
}

TEST(TpccTest, BadCreditIsWrittenIntoTheCustomersData) {
  LoadedTpcc loaded;
  const Table* customers = loaded.tpcc.tables().customer;
  int bad = 0;
  for (uint16_t c = 1; c <= 30; ++c) {
    MapContext context(loaded.db);
    const auto before = RowOf<Customer>(context, customers, CustomerKey(2, 4, c));
    PaymentArgs args = kSomePayment;
    args.customer = c;
    std::vector<uint64_t> words = WordsOf(args);
    ASSERT_EQ(context.Execute(loaded.tpcc, CallOf(kPayment, words)), Outcome::kOk);
    const auto after = RowOf<Customer>(context, customers, CustomerKey(2, 4, c));
    if (before.credit == Text<2>{'G', 'C'}) {
      EXPECT_EQ(before.data, after.data);
      continue;
    }
    ++bad;
    const std::string prefix = std::to_string(c) + " 4 2 3 1 12345 ";
    const std::string old(before.data.data(), before.data.size() - prefix.size());
    EXPECT_EQ(std::string(after.data.data(), after.data.size()), prefix + old);
  }
  EXPECT_GT(bad, 0);
}

TEST(TpccTest, PaymentArgumentsOutOfRangeAreInvalid) {
  const Tpcc tpcc(kTwoWarehouses);
  const auto valid = [&](auto change) {
    PaymentArgs args = kSomePayment;
    change(args);
    return tpcc.ValidArgs(kPayment, std::as_bytes(std::span(&args, 1)));
  };
  EXPECT_TRUE(valid([](PaymentArgs&) {}));
  EXPECT_TRUE(valid([](PaymentArgs& args) { args.customer = kByLastName | 9; }));
  EXPECT_FALSE(valid([](PaymentArgs& args) { args.customer = kByLastName | 10; }));
  for (uint16_t customer : {0, 31}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.customer = customer; }));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.w_id = w; }));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.c_w_id = w; }));
  for (uint8_t d : {0, 11}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.d_id = d; }));
  for (uint8_t d : {0, 11}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.c_d_id = d; }));
  for (uint32_t amount : {99, 500'001}) EXPECT_FALSE(valid([&](PaymentArgs& args) { args.amount_cents = amount; }));
  EXPECT_FALSE(valid([](PaymentArgs& args) { args.id = TxnId::Make(kLoadWorker, 1); }));
  EXPECT_FALSE(tpcc.ValidArgs(ProcedureId(2), std::as_bytes(std::span(&kSomePayment, 1))));
  EXPECT_FALSE(tpcc.ValidArgs(kPayment, std::as_bytes(std::span(&kSomePayment, 1)).first(23)));
  EXPECT_FALSE(tpcc.ValidArgs(kPayment, {}));
}

TEST(TpccTest, NewOrderArgumentsOutOfRangeAreInvalid) {
  const Tpcc tpcc(kTwoWarehouses);
  const auto valid = [&](auto change) {
    std::vector<NewOrderLine> lines = kFiveLines;
    change(lines);
    return tpcc.ValidArgs(kNewOrder, std::as_bytes(std::span(MakeNewOrder(lines).data(), 2 + lines.size())));
  };
  EXPECT_TRUE(valid([](auto&) {}));
  EXPECT_FALSE(valid([](auto& lines) { lines.pop_back(); }));
  EXPECT_FALSE(valid([](auto& lines) { lines.resize(16, {1, 1, 1}); }));
  EXPECT_TRUE(valid([](auto& lines) { lines[4].i_id = 101; }));
  EXPECT_FALSE(valid([](auto& lines) { lines[3].i_id = 101; }));
  for (uint32_t i : {0u, 102u}) EXPECT_FALSE(valid([&](auto& lines) { lines[4].i_id = i; }));
  for (uint16_t w : {0, 3}) EXPECT_FALSE(valid([&](auto& lines) { lines[1].supply_w_id = w; }));
  for (uint16_t n : {0, 11}) EXPECT_FALSE(valid([&](auto& lines) { lines[2].quantity = n; }));
  const std::vector<uint64_t> words = MakeNewOrder(kFiveLines);
  for (size_t bytes : {0, 8, 16, 55}) {
    EXPECT_FALSE(tpcc.ValidArgs(kNewOrder, std::as_bytes(std::span(words)).first(bytes)));
  }
}

TEST(TpccTest, PrefaultBacksTheRowsThatTransactionsInsert) {
  LoadedTpcc loaded;
  const Tpcc::Tables& t = loaded.tpcc.tables();
  const std::vector<std::pair<const Table*, uint64_t>> growing = {
      {t.history, 5000}, {t.order, 5000}, {t.new_order, 5000}, {t.order_line, 50'000}};
  std::vector<size_t> before;
  for (const auto& [table, rows] : growing) before.push_back(table->memory_bytes());
  const size_t stock = t.stock->memory_bytes();
  loaded.tpcc.Prefault(WorkerId(0), 10'000);
  for (size_t i = 0; i < growing.size(); ++i) {
    const auto& [table, rows] = growing[i];
    EXPECT_GE(table->memory_bytes(), before[i] + rows * table->tuple_bytes()) << table->schema().name;
  }
  EXPECT_EQ(t.stock->memory_bytes(), stock);
}

TEST(TpccTest, NumbersOfWarehousesAndSharesAreChecked) {
  EXPECT_THROW(Tpcc({.warehouses = 0}), Error);
  EXPECT_THROW(Tpcc({.warehouses = 65'536}), Error);
  EXPECT_THROW(Tpcc({.perc_payment = -0.1}), Error);
  EXPECT_THROW(Tpcc({.perc_payment = 1.1}), Error);
}

}  // namespace
}  // namespace dbx
