#include "benchmarks/test/elle.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

namespace dbx {
namespace {

using nlohmann::json;

std::string Tombstone(TxnId deleter) { return "deleted by " + std::to_string(deleter.value); }

// One object: its lives, and to which of them a version belongs.
struct Object {
  struct Life {
    bool has_begin = true;
    std::optional<TxnId> deleter;
  };
  std::vector<History::Entry> entries;
  std::vector<Life> lives;
  std::unordered_map<TxnId, size_t> life_of;  // version -> life
  std::unordered_set<TxnId> creators;

  void FindLives(bool is_initial) {
    std::unordered_map<TxnId, const History::Entry*> overwriter;
    for (const History::Entry& entry : entries) {
      const AccessKind kind = entry.access.kind;
      if (kind == AccessKind::kWrite || kind == AccessKind::kDelete) overwriter[entry.access.version] = &entry;
      if (kind == AccessKind::kWrite || kind == AccessKind::kInsert) creators.insert(entry.id);
    }
    if (is_initial) Follow(kInitialVersion, /*has_begin=*/false, overwriter);
    for (const History::Entry& entry : entries) {
      if (entry.access.kind == AccessKind::kInsert) Follow(entry.id, /*has_begin=*/true, overwriter);
    }
  }
  size_t LifeOf(TxnId version) const {
    const auto life = life_of.find(version);
    return life == life_of.end() ? lives.size() : life->second;  // a register for versions without a life
  }

 private:
  void Follow(TxnId version, bool has_begin, const std::unordered_map<TxnId, const History::Entry*>& overwriter) {
    lives.push_back({has_begin, std::nullopt});
    while (life_of.try_emplace(version, lives.size() - 1).second) {
      const auto next = overwriter.find(version);
      if (next == overwriter.end()) return;
      if (next->second->access.kind == AccessKind::kDelete) {
        lives.back().deleter = next->second->id;
        return;
      }
      version = next->second->id;
    }
  }
};

}  // namespace

class ElleWriter {
 public:
  ElleWriter(const History& history, std::ostream& out) : history_(history), out_(out) {
    for (const History::Entry& entry : history.entries_) objects_[entry.access.object].entries.push_back(entry);
    for (auto& [id, object] : objects_) object.FindLives(history.initial_.contains(id));
  }

  void Write() {
    const std::unordered_set<TxnId> committed(history_.transactions_.begin(), history_.transactions_.end());
    const std::vector<History::Entry>& all = history_.entries_;
    for (size_t begin = 0, end; begin < all.size(); begin = end) {
      json value = json::array();
      for (end = begin; end < all.size() && all[end].id == all[begin].id; ++end) Add(all[end], value);
      WriteLine("ok", all[begin].id, value);
    }
    for (const History::Entry& entry : all) {
      const TxnId writer = entry.access.version;
      const bool has_writer = writer != kInitialVersion && writer != kNoVersion;
      const Object& object = objects_.at(entry.access.object);
      if (!has_writer || committed.contains(writer) || !failed_.insert(writer).second) continue;
      WriteLine("fail", writer, {{"w", Register(entry, object.LifeOf(writer)), writer.value}});
    }
  }

 private:
  void WriteLine(const char* type, TxnId id, const json& value) {
    out_ << json{{"index", index_++}, {"type", type}, {"process", id.worker().value()}, {"value", value}} << '\n';
  }
  std::string Register(const History::Entry& entry, size_t life) const {
    return history_.name_object_(entry.access.object) + " life " + std::to_string(life);
  }
  static json Value(TxnId version) {
    if (version == kInitialVersion) return {};
    return version == kNoVersion ? json("no version") : json(version.value);
  }

  void Add(const History::Entry& entry, json& value) {
    const Object& object = objects_.at(entry.access.object);
    const TxnId version = entry.access.version;
    const std::string seen = Register(entry, object.LifeOf(version));
    switch (entry.access.kind) {
      case AccessKind::kRead:
        value.push_back({"r", seen, Value(version)});
        return;
      case AccessKind::kWrite:
        value.push_back({"r", seen, Value(version)});
        value.push_back({"w", seen, entry.id.value});
        return;
      case AccessKind::kDelete:
        value.push_back({"r", seen, Value(version)});
        value.push_back({"w", seen, Tombstone(entry.id)});
        return;
      case AccessKind::kInsert:
      case AccessKind::kMiss:
        return AddAbsence(entry, object, value);
    }
  }

  void AddAbsence(const History::Entry& entry, const Object& object, json& value) {
    const bool inserts = entry.access.kind == AccessKind::kInsert;
    const size_t own = inserts ? object.LifeOf(entry.id) : object.lives.size();
    for (size_t i = 0; i < object.lives.size(); ++i) {
      const Object::Life& life = object.lives[i];
      const bool is_before = !life.has_begin || (inserts && own < object.lives.size() && !object.lives[own].deleter);
      if (i == own) continue;
      if (is_before && life.deleter) {
        value.push_back({"r", Register(entry, i), Tombstone(*life.deleter)});
      } else if (!life.deleter && life.has_begin) {
        value.push_back({"r", Register(entry, i), nullptr});
      }
    }
    if (!inserts) return;
    value.push_back({"r", Register(entry, own), nullptr});
    value.push_back({"w", Register(entry, own), entry.id.value});
  }

  const History& history_;
  std::ostream& out_;
  std::map<uint64_t, Object> objects_;
  std::unordered_set<TxnId> failed_;
  size_t index_ = 0;
};

void WriteElle(const History& history, std::ostream& out) { ElleWriter(history, out).Write(); }

}  // namespace dbx
