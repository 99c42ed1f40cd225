#include "tests/concurrency_control/pairs.h"

#include <stdexcept>

#include "tests/concurrency_control/pair_of.h"

namespace dbx::testing {
namespace {

const std::vector<TestPair>& AllPairs() {
  static const std::vector<TestPair> pairs = [] {
    std::vector<TestPair> all;
    const auto add = [&](const std::vector<TestPair>& some) { all.insert(all.end(), some.begin(), some.end()); };
    add(NoWaitPairs());
    add(WaitingPairs());
    add(OptimisticPairs());
    add(MultiVersionPairs());
    return all;
  }();
  return pairs;
}

}  // namespace

TestPairs PairsWhere(bool (*holds)(const TestPair& pair)) {
  TestPairs found;
  for (const TestPair& pair : AllPairs()) {
    if (holds(pair)) found.push_back(&pair);
  }
  return found;
}

std::unique_ptr<TestEngine> EngineNamed(std::string_view name, const EngineOptions& options) {
  for (const TestPair& pair : AllPairs()) {
    if (pair.name == name) return pair.make(options);
  }
  throw std::invalid_argument("no pair is called " + std::string(name));
}

}  // namespace dbx::testing
