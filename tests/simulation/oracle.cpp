#include "tests/simulation/oracle.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "tests/simulation/allocation.h"
#include "tests/simulation/scheduler.h"

namespace dbx::sim {
namespace {

std::string NameOf(uint64_t id) {
  return "transaction " + std::to_string(TxnId{id}.sequence()) + " of worker " +
         std::to_string(TxnId{id}.worker().value());
}

}  // namespace

Oracle oracle;

// No hash of a tuple, not even of one that is just eight bytes with the same number.
Version Oracle::AbsenceBy(TxnId id) {
  constexpr uint64_t kSeed = 0xab5e;
  return XXH3_64bits_withSeed(&id.value, sizeof id.value, kSeed) | 1;
}

Version HashOf(std::span<const std::byte> tuple) {
  const Version hash = XXH3_64bits(tuple.data(), tuple.size());
  return hash == kAbsent ? 1 : hash;
}

void Oracle::Reset() { *this = Oracle(); }

void Oracle::NewGeneration(const std::vector<uint64_t>& recovered, const std::vector<uint64_t>& on_disk,
                           const std::vector<TxnId>& acknowledged) {
  const std::unordered_set<uint64_t> survivors(recovered.begin(), recovered.end());
  for (const TxnId id : acknowledged) {
    if (!HasWritten(id)) old_readers_.insert(id.value);
  }
  std::erase_if(txns_,
                [&](const auto& txn) { return !survivors.contains(txn.first) && !old_readers_.contains(txn.first); });
  taken_ = survivors;
  taken_.insert(on_disk.begin(), on_disk.end());
  current_.clear();
  acknowledged_.clear();
  longest_wait_nanos_ = 0;
  ++generation_;
  on_begin = nullptr;
  on_acknowledge = nullptr;
}

void Oracle::Loaded(const std::vector<RowVersion>& rows) {
  for (const RowVersion& row : rows) loaded_[RowOf(row.table, row.key)] = row.version;
}

// A transaction that is run again starts over.
void Oracle::Begin(TxnId id) {
  {
    const Exempt exempt;
    if (taken_.contains(id.value)) used_twice_ = id;
    old_readers_.erase(id.value);
    Txn& txn = txns_[id.value];
    Forget(id, txn.writes);
    txn = Txn();
    txn.generation = generation_;
    txn.began = ++events_;
    txn.began_at = NowNanos();
  }
  if (on_begin) on_begin();
}

void Oracle::Read(TxnId id, TableId table, Key key, Version version) {
  const Exempt exempt;
  txns_[id.value].reads.push_back({table.value(), key, version});
}

void Oracle::Miss(TxnId id, TableId table, Key key, Version before, bool of_snapshot) {
  {
    const Exempt exempt;
    Txn& txn = txns_[id.value];
    const Place row = RowOf(table, key);
    const bool is_own =
        std::any_of(txn.writes.begin(), txn.writes.end(), [&](const Place& w) { return w.Row() == row; });
    if (!is_own) txn.misses.push_back(row);
  }
  DependOnCurrent(id, table, key, before, of_snapshot);
}

// A row without a writer in this generation is initial, or was recovered and stays.
void Oracle::DependOnCurrent(TxnId id, TableId table, Key key, Version before, bool of_snapshot) {
  if (before == kAbsent || before != Current(table, key)) return;
  if (of_snapshot && !WasAbsentAtBegin(id, {table.value(), key, before})) return;
  Read(id, table, key, before);
  const Exempt exempt;
  txns_[id.value].guessed.push_back({table.value(), key, before});
}

// What is there now may be younger than a snapshot.
bool Oracle::WasAbsentAtBegin(TxnId id, const Place& place) const {
  const auto writer = writers_.find(place);
  if (writer == writers_.end() || place.version != AbsenceBy(TxnId{writer->second})) return false;
  const uint64_t since = txns_.at(writer->second).pre_committed;
  return since != 0 && since < txns_.at(id.value).began;
}

void Oracle::Write(TxnId id, TableId table, Key key, Version version) {
  const Exempt exempt;
  txns_[id.value].writes.push_back({table.value(), key, version});
  const auto [place, is_new] = writers_.try_emplace({table.value(), key, version}, id.value);
  if (!is_new && place->second != id.value) place->second = kManyWriters;
}

void Oracle::Delete(TxnId id, TableId table, Key key) {
  DependOnCurrent(id, table, key, Current(table, key), /*of_snapshot=*/false);
  Write(id, table, key, AbsenceBy(id));
}

void Oracle::Survived(const std::vector<uint64_t>& survivors) {
  const Exempt exempt;
  const std::unordered_set<uint64_t> survived(survivors.begin(), survivors.end());
  for (auto& [id, txn] : txns_) {
    for (const Place& guess : txn.guessed) {
      const auto writer = writers_.find(guess);
      if (writer == writers_.end() || survived.contains(writer->second)) continue;
      if (const auto read = std::find(txn.reads.begin(), txn.reads.end(), guess); read != txn.reads.end())
        txn.reads.erase(read);
    }
  }
}

// Versions that no transaction may have seen.
void Oracle::Forget(TxnId id, const std::vector<Place>& versions) {
  for (const Place& version : versions) {
    const auto writer = writers_.find(version);
    if (writer != writers_.end() && writer->second == id.value) writers_.erase(writer);
  }
}

// Of what it wrote to a row the last version stays; the others were its own to see.
void Oracle::PreCommit(TxnId id) {
  const Exempt exempt;
  Txn& txn = txns_[id.value];
  txn.pre_committed = ++events_;
  for (const Place& write : txn.writes) current_[write.Row()] = write.version;
  const auto is_last = [&](const Place& place) { return current_[place.Row()] == place.version; };
  const auto others = std::stable_partition(txn.writes.begin(), txn.writes.end(), is_last);
  const std::vector<Place> overwritten(others, txn.writes.end());
  txn.writes.erase(others, txn.writes.end());
  std::erase_if(txn.reads, [&](const Place& read) {
    return std::find(overwritten.begin(), overwritten.end(), read) != overwritten.end();
  });
  Forget(id, overwritten);
}

Version Oracle::Current(TableId table, Key key) const {
  const auto current = current_.find(RowOf(table, key));
  return current == current_.end() ? kAbsent : current->second;
}

void Oracle::Acknowledge(TxnId id) {
  const Exempt exempt;
  acknowledged_.push_back(id);
  longest_wait_nanos_ = std::max(longest_wait_nanos_, NowNanos() - txns_.at(id.value).began_at);
  if (on_acknowledge) on_acknowledge(id);
}

std::vector<TxnId> Oracle::ReadFrom(TxnId id) const {
  std::vector<TxnId> writers;
  const auto txn = txns_.find(id.value);
  if (txn == txns_.end()) return writers;
  for (const Place& read : txn->second.reads) {
    const auto writer = writers_.find(read);
    if (writer == writers_.end() || writer->second == kManyWriters || writer->second == id.value) continue;
    writers.push_back(TxnId{writer->second});
  }
  return writers;
}

bool Oracle::HasWritten(TxnId id) const {
  const auto txn = txns_.find(id.value);
  return txn != txns_.end() && !txn->second.writes.empty();
}

std::vector<uint64_t> Oracle::WritersBelow(const std::vector<uint64_t>& sequences) const {
  std::vector<uint64_t> ids;
  for (const auto& [id, txn] : txns_) {
    const uint32_t worker = TxnId{id}.worker().value();
    if (txn.pre_committed == 0 || txn.writes.empty() || worker >= sequences.size()) continue;
    if (TxnId{id}.sequence() < sequences[worker]) ids.push_back(id);
  }
  return ids;
}

bool Oracle::IsOfThisGeneration(TxnId id) const {
  const auto txn = txns_.find(id.value);
  return txn != txns_.end() && txn->second.generation == generation_;
}

std::optional<std::string> Oracle::Unacknowledged() const {
  const std::unordered_set<uint64_t> told = [this] {
    std::unordered_set<uint64_t> ids;
    for (const TxnId id : acknowledged_) ids.insert(id.value);
    return ids;
  }();
  for (const auto& [id, txn] : txns_) {
    if (txn.generation == generation_ && txn.pre_committed != 0 && !told.contains(id)) return NameOf(id);
  }
  return std::nullopt;
}

bool Oracle::WasLoaded(const Place& place) const {
  const auto loaded = loaded_.find(place.Row());
  return loaded != loaded_.end() && loaded->second == place.version;
}

bool Oracle::IsKnown(const Place& place) const { return writers_.contains(place) || WasLoaded(place); }

std::optional<std::string> Oracle::WrongReadOf(TxnId reader, const std::unordered_set<uint64_t>& survivors) const {
  const auto txn = txns_.find(reader.value);
  if (txn == txns_.end()) return std::nullopt;
  for (const Place& read : txn->second.reads) {
    if (!IsKnown(read)) return " read a version that no transaction wrote, in table " + std::to_string(read.table);
  }
  for (const TxnId writer : ReadFrom(reader)) {
    if (!survivors.contains(writer.value)) return " read from " + NameOf(writer.value) + ", which is lost";
  }
  return std::nullopt;
}

std::optional<std::string> Oracle::ViolationOf(const std::vector<uint64_t>& recovered,
                                               const std::vector<TxnId>& acknowledged) const {
  if (used_twice_) return "I8: a continued run used the name of " + NameOf(used_twice_->value) + " again";
  const std::unordered_set<uint64_t> survivors(recovered.begin(), recovered.end());
  for (const TxnId id : acknowledged) {
    const std::string who = "acknowledged " + NameOf(id.value);
    if (HasWritten(id) && !survivors.contains(id.value)) return "I1: " + who + " is lost";
    if (const auto wrong = WrongReadOf(id, survivors)) return "I1: " + who + *wrong;
  }
  for (const uint64_t id : recovered) {
    const auto txn = txns_.find(id);
    if (txn == txns_.end()) return "I2: " + NameOf(id) + " was recovered and never began";
    if (txn->second.pre_committed == 0) return "I2: " + NameOf(id) + " was recovered and never committed";
    if (const auto wrong = WrongReadOf(TxnId{id}, survivors)) return "I3: recovered " + NameOf(id) + *wrong;
  }
  return std::nullopt;
}

std::optional<std::string> Oracle::ViolationOfEarlierReaders(const std::vector<uint64_t>& recovered) const {
  const std::unordered_set<uint64_t> survivors(recovered.begin(), recovered.end());
  for (const uint64_t id : old_readers_) {
    if (const auto wrong = WrongReadOf(TxnId{id}, survivors)) return "I1: earlier " + NameOf(id) + *wrong;
  }
  return std::nullopt;
}

// Writers of one row pre-commit one after the other: none sees its own row free before that.
std::unordered_map<Oracle::Place, Version, Oracle::PlaceHash> Oracle::LastWritesOf(
    const std::vector<uint64_t>& recovered) const {
  std::vector<std::pair<uint64_t, const Txn*>> in_order;
  for (const uint64_t id : recovered) {
    if (const auto txn = txns_.find(id); txn != txns_.end()) in_order.emplace_back(id, &txn->second);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const auto& a, const auto& b) { return a.second->pre_committed < b.second->pre_committed; });
  std::unordered_map<Place, Version, PlaceHash> last;
  for (const auto& [id, txn] : in_order) {
    for (const Place& write : txn->writes) {
      last[write.Row()] = write.version == AbsenceBy(TxnId{id}) ? kAbsent : write.version;
    }
  }
  return last;
}

std::string Oracle::DescriptionOf(const Place& row, Version version) const {
  if (version == kAbsent) return "absent";
  const Place place{row.table, row.key, version};
  if (!IsKnown(place)) return "a version that no transaction wrote";
  const auto writer = writers_.find(place);
  if (writer == writers_.end()) return "as it was loaded";
  return writer->second == kManyWriters ? "what several wrote" : "by " + NameOf(writer->second);
}

std::optional<std::string> Oracle::WrongRowOf(const std::vector<uint64_t>& recovered,
                                              const std::vector<RowVersion>& rows) const {
  std::unordered_map<Place, Version, PlaceHash> expected = loaded_;
  for (const auto& [row, version] : LastWritesOf(recovered)) expected[row] = version;
  const auto wrong = [this](const Place& row, Version is, Version should_be) {
    return "I4: " + row.RowName() + " is " + DescriptionOf(row, is) + ", not " + DescriptionOf(row, should_be);
  };
  for (const RowVersion& row : rows) {
    const Place place = RowOf(row.table, row.key);
    const auto should = expected.find(place);
    const Version version = should == expected.end() ? kAbsent : should->second;
    if (version != row.version) return wrong(place, row.version, version);
    expected.erase(should);
  }
  for (const auto& [row, version] : expected) {
    if (version != kAbsent) return wrong(row, kAbsent, version);
  }
  return std::nullopt;
}

}  // namespace dbx::sim
