// The pairs of concurrency control and log scheme that this binary holds.
//
// Each pair's translation unit (pair.cpp) adds it before main; main and the tests look pairs up.
// Registration is single-threaded (static initialisation), look-ups are read-only afterwards.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "system/command_line/options.h"
#include "system/pairs/engine.h"

namespace dbx {

// As in config.h. Without a log there is no log_type: it is empty, whatever the options say.
struct PairName {
  std::string cc;
  bool use_locktable = false;
  std::string log;
  std::string log_type;

  static PairName Of(const Options& options);
  // "CC + lock table, LOG TYPE"
  std::string Text() const;
  friend auto operator<=>(const PairName&, const PairName&) = default;
};

class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Engine>()>;
  struct Entry {
    PairName name;
    Factory create;       // empty for a refused pair
    std::string refusal;  // why rules refuse the pair, and the alternatives
  };

  // The registry of this process. It contains the refused pairs from the start.
  static Registry& Global();

  // Each pair once; CHECK.
  void Add(PairName name, Factory create);
  void Refuse(PairName name, std::string why);
  // Of every pair of `cc`; in the order of the calls.
  void AddIsolationLevel(const std::string& cc, std::string_view level);

  // The pair that the options name. Throws Error(kUsage): it is refused by rule, or this binary does not hold it; the
  // message lists the pairs that it holds.
  std::unique_ptr<Engine> Create(const Options& options) const;

  // The pairs that can run, ordered by name.
  std::vector<PairName> Supported() const;

  // All pairs as a Markdown table: with the isolation levels of the concurrency control, refused ones with the reason.
  std::string ListText() const;

 private:
  std::vector<Entry> Sorted() const;
  void Insert(Entry entry);

  std::vector<Entry> entries_;
  std::map<std::string, std::string> isolation_levels_;  // of a CC_ALG: its levels, with commas
};

// Enters every pair that a rule refuses, and the isolation levels that rules grant (refusals.cpp).
void RefuseByRules(Registry& registry);

}  // namespace dbx
