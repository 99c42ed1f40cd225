#include "system/pairs/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "logging/schemes.h"

namespace dbx {
namespace {

// How to build a binary that holds the pair.
std::string BuildHint(const PairName& name) {
  std::string hint =
      fmt::format("make CC_ALG={} USE_LOCKTABLE={:d} LOG_ALGORITHM={}", name.cc, name.use_locktable, name.log);
  if (!name.log_type.empty()) hint += " LOG_TYPE=" + name.log_type;
  return hint;
}

}  // namespace

PairName PairName::Of(const Options& options) {
  const bool logs = options.log != InfoOf(format::Scheme::kNone).name;
  return {options.cc, options.use_locktable, options.log, logs ? options.log_type : ""};
}

std::string PairName::Text() const {
  return fmt::format("{}{}, {}{}{}", cc, use_locktable ? " + lock table" : "", log, log_type.empty() ? "" : " ",
                     log_type);
}

Registry& Registry::Global() {
  // A function's static: static objects of other translation units register before main.
  static Registry registry = [] {
    Registry made;
    RefuseByRules(made);
    return made;
  }();
  return registry;
}

void Registry::Add(PairName name, Factory create) {
  CHECK(create != nullptr);
  Insert({std::move(name), std::move(create), {}});
}

void Registry::Refuse(PairName name, std::string why) {
  CHECK(!why.empty());
  Insert({std::move(name), nullptr, std::move(why)});
}

void Registry::AddIsolationLevel(const std::string& cc, std::string_view level) {
  std::string& levels = isolation_levels_[cc];
  levels += fmt::format("{}{}", levels.empty() ? "" : ", ", level);
}

void Registry::Insert(Entry entry) {
  for (const Entry& other : entries_) CHECK(other.name != entry.name);
  entries_.push_back(std::move(entry));
}

std::vector<Registry::Entry> Registry::Sorted() const {
  std::vector<Entry> sorted = entries_;
  std::sort(sorted.begin(), sorted.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return sorted;
}

std::vector<PairName> Registry::Supported() const {
  std::vector<PairName> names;
  for (const Entry& entry : Sorted()) {
    if (entry.create) names.push_back(entry.name);
  }
  return names;
}

std::unique_ptr<Engine> Registry::Create(const Options& options) const {
  const PairName wanted = PairName::Of(options);
  for (const Entry& entry : entries_) {
    if (entry.name != wanted) continue;
    if (entry.create) return entry.create();
    throw Error(ExitStatus::kUsage, fmt::format("{} is refused: {}", wanted.Text(), entry.refusal));
  }
  std::string held;
  for (const PairName& name : Supported()) held += fmt::format("{}{}", held.empty() ? "" : "; ", name.Text());
  throw Error(ExitStatus::kUsage, fmt::format("this binary does not hold {}; use ./rundb-all, or {}; it holds: {}",
                                              wanted.Text(), BuildHint(wanted), held.empty() ? "nothing" : held));
}

std::string Registry::ListText() const {
  std::string text =
      "| CC_ALG | USE_LOCKTABLE | LOG_ALGORITHM | LOG_TYPE | ISOLATION_LEVEL | |\n"
      "|---|---|---|---|---|---|\n";
  for (const Entry& entry : Sorted()) {
    const auto levels = isolation_levels_.find(entry.name.cc);
    text += fmt::format("| {} | {:d} | {} | {} | {} | {} |\n", entry.name.cc, entry.name.use_locktable, entry.name.log,
                        entry.name.log_type.empty() ? "-" : entry.name.log_type,
                        levels == isolation_levels_.end() ? "-" : levels->second,
                        entry.create ? "supported" : "refused: " + entry.refusal);
  }
  return text;
}

}  // namespace dbx
