#include "benchmarks/test/test_workload.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "benchmarks/test/elle.h"

namespace dbx {

using namespace test;

namespace {

constexpr uint32_t kAccountGroupsMax = 1 << 16;
constexpr uint32_t kCountersMax = 1 << 20;
constexpr uint32_t kSlotsMax = 1 << 20;
constexpr uint16_t kAmountMax = 60;

// Programs of one time work on one window of slots, so that each slot is contended for a while and then idle: this
// leaves few possible orders of its lives.
constexpr uint64_t kCallsPerWindow = 64;
constexpr uint64_t kSlotsPerWindow = 16;

constexpr double kGiveUpChance = 0.03;

const char* const kPlaceNames[] = {"ACCOUNT", "COUNTER", "SLOT", "SHELF"};
constexpr Place kAllPlaces[] = {Place::kAccount, Place::kCounter, Place::kSlot, Place::kShelf};

std::string NameObject(uint64_t object) {
  return std::string(kPlaceNames[static_cast<size_t>(PlaceOf(object))]) + " " + std::to_string(KeyOf(object));
}

// The keys that an operation may access, and the number of operations that it counts as.
bool IsScan(Operation operation) { return operation == Operation::kScan || operation == Operation::kScanBack; }
Key KeysOf(Operation operation) { return IsScan(operation) ? kKeysPerScan : 1; }
size_t WeightOf(Operation operation) { return IsScan(operation) ? kOperationsPerScan : 1; }

Operation OperationOf(uint64_t word) { return static_cast<Operation>(word >> kOperationShift); }
uint64_t ObjectOf(uint64_t word) { return word & ((uint64_t{1} << kOperationShift) - 1); }
// May a program do the one before the other? An object is accessed once, except those that a scan has passed.
bool MayFollow(uint64_t earlier, uint64_t later) {
  const Operation first = OperationOf(earlier), second = OperationOf(later);
  const bool overlap = ObjectOf(earlier) < ObjectOf(later) + KeysOf(second) &&  //
                       ObjectOf(later) < ObjectOf(earlier) + KeysOf(first);
  return !overlap || (IsScan(first) && !IsScan(second));
}

Schema TestRowSchema(const char* name, uint64_t rows, bool ordered) {
  Schema schema;
  schema.name = name;
  schema.ordered = ordered;
  schema.columns = {{"WRITER", 0, 8}, {"PREDECESSOR", 8, 8}, {"CHAIN", 16, 8}, {"VALUE", 24, 8}};
  schema.tuple_bytes = sizeof(TestRow);
  schema.row_alignment_bytes = 64;
  schema.expected_rows = rows;
  schema.heap_range_bits = ordered ? 3 : 0;
  return schema;
}

Schema HistorySchema(uint64_t rows) {
  Schema schema;
  schema.name = "HISTORY";
  schema.columns = {{"PROCEDURE", 0, 4}, {"ACCESS_COUNT", 4, 4}, {"RESULT", 8, 8}};
  for (uint32_t i = 0; i < kAccessesMax; ++i) {
    schema.columns.push_back({"OBJECT_" + std::to_string(i), 16 + i * 16, 8});
    schema.columns.push_back({"VERSION_" + std::to_string(i), 24 + i * 16, 8});
  }
  schema.tuple_bytes = sizeof(HistoryRow);
  schema.clustered_key_bits = 2;
  schema.expected_rows = rows;
  return schema;
}

// Appends a call's words and remembers where they begin.
struct CallBuilder {
  CallList list;
  std::vector<std::pair<ProcedureId, size_t>> starts;

  template <class Args>
  void Add(ProcedureId procedure, const Args& args) {
    starts.emplace_back(procedure, list.storage.size());
    list.storage.resize(list.storage.size() + sizeof args / sizeof(uint64_t));
    std::memcpy(&list.storage[starts.back().second], &args, sizeof args);
  }
  CallList Build() && {
    for (size_t i = 0; i < starts.size(); ++i) {
      const size_t end = i + 1 < starts.size() ? starts[i + 1].second : list.storage.size();
      const auto words = std::span(list.storage).subspan(starts[i].second, end - starts[i].second);
      list.calls.push_back({starts[i].first, std::as_writable_bytes(words)});
    }
    return std::move(list);
  }
};

template <size_t kCount>
Operation Choose(Random& random, const Operation (&operations)[kCount]) {
  return operations[random.Below(kCount)];
}

void AddTransfer(Random& random, uint32_t groups, CallBuilder& calls) {
  TransferArgs args{};
  args.group = static_cast<uint32_t>(random.Below(groups));
  args.from = static_cast<uint8_t>(random.Below(kAccountsPerGroup));
  args.to = static_cast<uint8_t>((args.from + 1 + random.Below(kAccountsPerGroup - 1)) % kAccountsPerGroup);
  args.amount = static_cast<uint16_t>(random.Between(1, kAmountMax));
  calls.Add(kTransfer, args);
}

void AddAudit(Random& random, uint32_t groups, CallBuilder& calls) {
  AuditArgs args{};
  args.group = static_cast<uint32_t>(random.Below(groups));
  args.quiet = static_cast<uint32_t>(random.Below(2));
  calls.Add(kAudit, args);
}

// A program; `choose` returns an operation with its object.
template <class ChooseWord>
void AddProgram(Random& random, size_t operations, CallBuilder& calls, const ChooseWord& choose) {
  calls.Add(kProgram, TxnId{});
  std::vector<uint64_t>& storage = calls.list.storage;
  const size_t first = storage.size();
  while (operations > 0) {
    const uint64_t word = choose();
    const bool may_follow = std::all_of(storage.begin() + static_cast<ptrdiff_t>(first), storage.end(),
                                        [&](uint64_t earlier) { return MayFollow(earlier, word); });
    const size_t weight = WeightOf(OperationOf(word));
    if (!may_follow || weight > operations) continue;
    storage.push_back(word);
    operations -= weight;
  }
  if (random.Chance(kGiveUpChance)) storage.push_back(MakeOperation(Operation::kGiveUp, 0));
}

uint64_t ShelfWord(Random& random, Key first) {
  using enum Operation;
  const Operation operation = Choose(
      random, {kRead, kWrite, kInsert, kInsert, kDelete, kToggle, kToggle, kScan, kScan, kScan, kScan, kScanBack});
  const Key key = first + random.Below(kSlotsPerWindow + 1 - KeysOf(operation));
  return MakeOperation(operation, MakeObject(Place::kShelf, key));
}

// Every other slot and shelf is there from the start, and every account and counter.
Key InitialKeyStep(Place place) { return place >= Place::kSlot ? 2 : 1; }

// Sums up a database at rest. The history is added before the rows.
class Checker {
 public:
  explicit Checker(const TestConfig& config)
      : audits_see_sums_(!config.read_committed), group_sums_(config.account_groups), history_(NameObject) {
    if (config.snapshot) history_.AllowWriteSkew();
    if (config.read_committed) history_.AskForReadCommitted();
  }

  void AddHistory(const Table& table) {
    ForEach<HistoryRow>(table, [&](Key key, const HistoryRow& row) { AddHistoryRow(TxnId{key}, row); });
  }
  const History& history() const { return history_; }
  void AddReader(TxnId id, const HistoryRow& row) { AddHistoryRow(id, row); }
  void AddInitial(uint64_t object) { history_.AddInitial(object); }
  void AddRows(Place place, uint64_t objects, const Table& table) {
    ForEach<TestRow>(table, [&](Key key, const TestRow& row) {
      if (key >= objects) return Fail(NameObject(MakeObject(place, key)) + " is beyond its range");
      AddRow(place, key, row);
    });
  }
  std::optional<std::string> Finish() {
    for (size_t group = 0; group < group_sums_.size(); ++group) {
      if (group_sums_[group] == kAccountsPerGroup * kInitialBalance) continue;
      Fail("READ_WRITE: the accounts of group " + std::to_string(group) + " hold " +
           std::to_string(group_sums_[group]));
    }
    if (!failure_) failure_ = history_.FindAnomaly();
    return failure_;
  }

 private:
  template <class S, class Visit>
  static void ForEach(const Table& table, const Visit& visit) {
    table.ForEachRowOfPart(0, 1, [&](const Row& row) {
      if ((row.control.load(std::memory_order_relaxed) & Row::kAbsent) != 0) return;
      S tuple;
      std::memcpy(&tuple, table.tuple(&row), sizeof tuple);
      visit(row.key, tuple);
    });
  }
  void Fail(const std::string& what) {
    if (!failure_) failure_ = what;
  }
  void AddHistoryRow(TxnId id, const HistoryRow& row);
  void AddRow(Place place, Key key, const TestRow& row);

  const bool audits_see_sums_;
  std::vector<int64_t> group_sums_;
  std::unordered_map<uint64_t, int64_t> increments_;
  History history_;
  std::optional<std::string> failure_;
};

void Checker::AddHistoryRow(TxnId id, const HistoryRow& row) {
  const auto name = [&] { return "HISTORY row " + std::to_string(id.value); };
  if (row.access_count > kAccessesMax) return Fail(name() + " is damaged");
  if (audits_see_sums_ && row.procedure == kAudit.value() && row.result != kAccountsPerGroup * kInitialBalance) {
    Fail("READ_WRITE: an audit saw a sum of " + std::to_string(row.result) + " (" + name() + ")");
  }
  HistoryAccess accesses[kAccessesMax];
  for (size_t i = 0; i < row.access_count; ++i) {
    const LoggedAccess& logged = row.accesses[i];
    HistoryAccess& access = accesses[i];
    access.object = logged.kind_and_object & ((uint64_t{1} << kOperationShift) - 1);
    access.kind = static_cast<AccessKind>(logged.kind_and_object >> kOperationShift);
    access.version = logged.version;
    if (PlaceOf(access.object) > Place::kShelf || access.kind < AccessKind::kRead ||
        access.kind > AccessKind::kDelete) {
      return Fail(name() + " is damaged");
    }
    increments_[access.object] += access.kind == AccessKind::kWrite;
  }
  history_.AddTransaction(id, std::span(accesses, row.access_count));
}

void Checker::AddRow(Place place, Key key, const TestRow& row) {
  const uint64_t object = MakeObject(place, key);
  history_.AddFinal(object, row.writer, row.predecessor);
  if (place == Place::kAccount) group_sums_[key / kAccountsPerGroup] += row.value;
  if (place == Place::kCounter && row.value != increments_[object]) {
    Fail("CONFLICT: " + NameObject(object) + " is " + std::to_string(row.value) + " after " +
         std::to_string(increments_[object]) + " increments");
  }
}

}  // namespace

TestWorkload::TestWorkload(const TestConfig& config) : config_(config) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw Error(ExitStatus::kUsage, what);
  };
  require(config.read_write || config.conflict,
          "the TEST workload has nothing to do: set READ_WRITE (-Ar) or CONFLICT (-Ac)");
  require(config.account_groups >= 1 && config.account_groups <= kAccountGroupsMax, "too few or too many accounts");
  require(config.counters >= kOperationsMax && config.counters <= kCountersMax, "too few or too many counters");
  require(config.slots >= kSlotsPerWindow && config.slots <= kSlotsMax, "too few or too many slots");
}

uint64_t TestWorkload::objects_in(Place place) const {
  switch (place) {
    case Place::kAccount:
      return uint64_t{config_.account_groups} * kAccountsPerGroup;
    case Place::kCounter:
      return config_.counters;
    case Place::kSlot:
    case Place::kShelf:
      return config_.slots;
  }
  return 0;
}

void TestWorkload::CreateTables(Database& db) {
  for (Place place : kAllPlaces) {
    const auto index = static_cast<size_t>(place);
    tables_[index] = &db.CreateTable(TestRowSchema(kPlaceNames[index], objects_in(place), place == Place::kShelf));
  }
  history_ = &db.CreateTable(HistorySchema(config_.expected_transactions));
}

// A few thousand rows: one thread is enough.
void TestWorkload::Load(Database&, uint64_t seed, uint32_t) {
  for (Place place : kAllPlaces) {
    const Key step = InitialKeyStep(place);
    for (Key key = 0; key < objects_in(place); key += step) {
      const TestRow row{.writer = kInitialVersion,
                        .predecessor = kNoVersion,
                        .chain = HashPair(seed, MakeObject(place, key)),
                        .value = place == Place::kAccount ? kInitialBalance : 0};
      table(place).LoadRow(WorkerId(0), key, std::as_bytes(std::span(&row, 1)));
    }
  }
}

CallList TestWorkload::Generate(WorkerId worker, uint64_t count, uint64_t seed) const {
  CallBuilder calls;
  Random random(seed, worker.value());
  const auto account = [&] { return MakeObject(Place::kAccount, random.Below(objects_in(Place::kAccount))); };
  const auto counter = [&] { return MakeObject(Place::kCounter, random.Below(config_.counters)); };
  const auto conflict_word = [&] {
    using enum Operation;
    return MakeOperation(Choose(random, {kRead, kWrite, kWrite, kReadWrite}), counter());
  };
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t window = i / kCallsPerWindow % (config_.slots / kSlotsPerWindow);
    const auto slot_word = [&] {
      using enum Operation;
      if (random.Chance(0.1)) return MakeOperation(kRead, random.Below(2) == 0 ? account() : counter());
      const Key key = window * kSlotsPerWindow + random.Below(kSlotsPerWindow);
      return MakeOperation(Choose(random, {kRead, kRead, kWrite, kReadWrite, kInsert, kDelete, kToggle, kToggle}),
                           MakeObject(Place::kSlot, key));
    };
    const bool conflict = config_.conflict && (!config_.read_write || random.Below(2) == 0);
    const double kind = random.Unit();
    if (conflict) {
      AddProgram(random, random.Between(1, 3), calls, conflict_word);
    } else if (kind < 0.3) {
      AddTransfer(random, config_.account_groups, calls);
    } else if (kind < 0.4) {
      AddAudit(random, config_.account_groups, calls);
    } else if (kind < 0.65) {
      AddProgram(random, random.Between(2, kOperationsMax), calls, slot_word);
    } else {
      const auto shelf_word = [&] { return ShelfWord(random, window * kSlotsPerWindow); };
      AddProgram(random, random.Between(2, kOperationsMax), calls, shelf_word);
    }
  }
  return std::move(calls).Build();
}

bool TestWorkload::ValidArgs(ProcedureId procedure, std::span<const std::byte> args) const {
  TxnId id;
  if (args.size() < sizeof id) return false;
  std::memcpy(&id, args.data(), sizeof id);
  if (id.worker() == kInitialVersion.worker()) return false;
  if (procedure == kTransfer) return ValidTransfer(args);
  if (procedure == kAudit) return ValidAudit(args);
  return procedure == kProgram && ValidProgram(args);
}

bool TestWorkload::ValidTransfer(std::span<const std::byte> bytes) const {
  TransferArgs args;
  if (bytes.size() != sizeof args) return false;
  std::memcpy(&args, bytes.data(), sizeof args);
  return args.group < config_.account_groups && args.from < kAccountsPerGroup && args.to < kAccountsPerGroup &&
         args.from != args.to && args.amount >= 1 && args.amount <= kAmountMax;
}

bool TestWorkload::ValidAudit(std::span<const std::byte> bytes) const {
  AuditArgs args;
  if (bytes.size() != sizeof args) return false;
  std::memcpy(&args, bytes.data(), sizeof args);
  return args.group < config_.account_groups && args.quiet <= 1;
}

bool TestWorkload::Allowed(Operation operation, Place place) {
  switch (operation) {
    case Operation::kRead:
      return true;
    case Operation::kWrite:
    case Operation::kReadWrite:
      return place != Place::kAccount;
    case Operation::kInsert:
    case Operation::kDelete:
    case Operation::kToggle:
      return place >= Place::kSlot;
    case Operation::kScan:
    case Operation::kScanBack:
      return place == Place::kShelf;
    case Operation::kGiveUp:
      return false;
  }
  return false;
}

bool TestWorkload::ValidProgram(std::span<const std::byte> bytes) const {
  const size_t words = bytes.size() / sizeof(uint64_t) - 1;
  if (bytes.size() % sizeof(uint64_t) != 0 || words > kOperationsMax + 1) return false;
  uint64_t program[kOperationsMax + 1] = {};
  std::memcpy(program, bytes.data() + sizeof(TxnId), words * sizeof(uint64_t));
  const bool gives_up = words > 0 && program[words - 1] == MakeOperation(Operation::kGiveUp, 0);
  const size_t operations = words - gives_up;
  if (operations < 1) return false;
  size_t weight = 0;
  for (size_t i = 0; i < operations; ++i) {
    const Operation operation = OperationOf(program[i]);
    const uint64_t object = ObjectOf(program[i]);
    const Place place = PlaceOf(object);
    if (place > Place::kShelf || KeyOf(object) + KeysOf(operation) > objects_in(place)) return false;
    if (!Allowed(operation, place)) return false;
    for (size_t j = 0; j < i; ++j) {
      if (!MayFollow(program[j], program[i])) return false;
    }
    weight += WeightOf(operation);
  }
  return weight <= kOperationsMax;
}

void TestWorkload::WriteHistory(const Database& db, std::span<const QuietReader> readers, std::ostream& out) const {
  Checker checker(config_);
  for (const QuietReader& reader : readers) checker.AddReader(reader.id, reader.row);
  checker.AddHistory(db.table(history_->id()));
  for (Place place : kAllPlaces) {
    for (Key key = 0; key < objects_in(place); key += InitialKeyStep(place)) {
      checker.AddInitial(MakeObject(place, key));
    }
  }
  WriteElle(checker.history(), out);
}

std::vector<QuietReader> TestWorkload::ReadersIn(std::span<const std::byte> notes) {
  std::vector<QuietReader> readers;
  for (; notes.size() >= kNoteBytes; notes = notes.subspan(kNoteBytes)) {
    QuietReader reader;
    std::memcpy(&reader, notes.data(), sizeof reader);
    if (reader.row.access_count == 0) break;
    readers.push_back(reader);
  }
  return readers;
}

std::optional<std::string> TestWorkload::Inconsistency(const Database& db, std::span<const QuietReader> readers) const {
  Checker checker(config_);
  for (const QuietReader& reader : readers) checker.AddReader(reader.id, reader.row);
  checker.AddHistory(db.table(history_->id()));
  for (Place place : kAllPlaces) {
    const Key step = InitialKeyStep(place);
    for (Key key = 0; key < objects_in(place); key += step) checker.AddInitial(MakeObject(place, key));
    checker.AddRows(place, objects_in(place), db.table(table(place).id()));
  }
  return checker.Finish();
}

}  // namespace dbx
