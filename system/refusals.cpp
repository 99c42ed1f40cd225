// Asks the rules (rules.h) about every pair, compiled in or not, so that --list and a look-up can say why a pair is
// refused. No pair is instantiated for that: traits are enough.
#include "system/configured_pair.h"
#include "system/registry.h"
#include "system/rules.h"

namespace dbx {
namespace {

template <CcAlg kAlg, bool kLocktable, LogAlgorithm kAlgorithm, LogType kType>
void RefuseIfRuled(Registry& registry) {
  using Pair = PairOf<kAlg, kLocktable, kAlgorithm, kType>;
  using Log = typename Pair::Log;
  constexpr std::string_view kWhy = rules::Refusal(kLocktable, Pair::Cc::kTraits, Log::kTraits);
  if constexpr (!kWhy.empty()) {
    constexpr std::string_view kLogType = kType == LogType::kCommand ? "LOG_COMMAND" : "LOG_DATA";
    registry.Refuse({std::string(Pair::Cc::kTraits.name), kLocktable, std::string(Log::kTraits.name),
                     std::string(Log::kTraits.logs ? kLogType : "")},
                    std::string(kWhy));
  }
}

template <CcAlg kAlg, bool kLocktable>
void RefuseByRules(Registry& registry) {
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kNo, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kSerial, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kSerial, LogType::kCommand>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kTaurus, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kTaurus, LogType::kCommand>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kPlover, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kPlover, LogType::kCommand>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kSiloR, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kSiloR, LogType::kCommand>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kEleda, LogType::kData>(registry);
  RefuseIfRuled<kAlg, kLocktable, LogAlgorithm::kEleda, LogType::kCommand>(registry);
}

}  // namespace

void RefuseByRules(Registry& registry) {
  RefuseByRules<CcAlg::kNoWait, false>(registry);
  RefuseByRules<CcAlg::kNoWait, true>(registry);
  RefuseByRules<CcAlg::kSilo, false>(registry);
  RefuseByRules<CcAlg::kSilo, true>(registry);
}

}  // namespace dbx
