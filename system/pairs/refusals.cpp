// Applies the rules (rules.h) to every pair, compiled in or not, so that --list and a look-up can report why a pair is
// refused, and --list a pair's isolation levels. No pair is instantiated for that: traits are enough.
#include <utility>

#include "system/pairs/control_types.h"
#include "system/pairs/registry.h"
#include "system/pairs/rules.h"
#include "system/pairs/scheme_types.h"

namespace dbx {
namespace {

template <CcAlg kAlg, bool kLocktable, format::Scheme kScheme, LogType kType>
void RefuseIfRuled(Registry& registry) {
  using Pair = PairOf<kAlg, kLocktable, kScheme, kType>;
  using Log = typename Pair::Log;
  static_assert(Pair::Cc::kTraits.name == InfoOf(kAlg).name);
  static_assert(Pair::Cc::kTraits.reads_are_locked == InfoOf(kAlg).locks_rows);
  static_assert((Pair::Cc::kTraits.commit_order == CommitOrder::kPhysical || Pair::Cc::kTraits.multi_version) ==
                InfoOf(kAlg).has_commands);
  static_assert(Log::kTraits.scheme == kScheme && Log::kTraits.name == InfoOf(kScheme).name);
  static_assert(Log::kTraits.single_stream == InfoOf(kScheme).one_log);
  static_assert(Log::kTraits.needs_pages == InfoOf(kScheme).needs_pages);
  static_assert(Log::kTraits.version_heap == InfoOf(kScheme).version_heap);
  static_assert(Log::kTraits.row_chains == InfoOf(kScheme).row_chains);
  // Without a log there is no type.
  if constexpr (!Log::kTraits.logs && kType == LogType::kCommand) return;
  constexpr std::string_view kWhy = rules::Refusal(kLocktable, Pair::Cc::kTraits, Log::kTraits);
  if constexpr (!kWhy.empty()) {
    constexpr std::string_view kLogType = kType == LogType::kCommand ? "LOG_COMMAND" : "LOG_DATA";
    registry.Refuse({std::string(Pair::Cc::kTraits.name), kLocktable, std::string(Log::kTraits.name),
                     std::string(Log::kTraits.logs ? kLogType : "")},
                    std::string(kWhy));
  }
}

template <CcAlg kAlg, bool kLocktable, size_t... kNumbers>
void RefuseByRules(Registry& registry, std::index_sequence<kNumbers...>) {
  (RefuseIfRuled<kAlg, kLocktable, kSchemes[kNumbers].scheme, LogType::kData>(registry), ...);
  (RefuseIfRuled<kAlg, kLocktable, kSchemes[kNumbers].scheme, LogType::kCommand>(registry), ...);
}
template <CcAlg kAlg>
void AddIsolationLevels(Registry& registry) {
  constexpr CcTraits kTraits = CcOf<kAlg, false, NoLog>::type::kTraits;
  for (const auto& [level, name] :
       {std::pair(Isolation::kSerializable, "SERIALIZABLE"), std::pair(Isolation::kSnapshot, "SNAPSHOT")}) {
    if (rules::IsolationRefusal(level, kTraits).empty()) registry.AddIsolationLevel(std::string(kTraits.name), name);
  }
}
template <CcAlg kAlg>
void RefuseByRules(Registry& registry) {
  AddIsolationLevels<kAlg>(registry);
  RefuseByRules<kAlg, false>(registry, std::make_index_sequence<kSchemes.size()>());
  RefuseByRules<kAlg, true>(registry, std::make_index_sequence<kSchemes.size()>());
}
template <size_t... kNumbers>
void RefuseUnderEach(Registry& registry, std::index_sequence<kNumbers...>) {
  (RefuseByRules<kControls[kNumbers].alg>(registry), ...);
}

}  // namespace

void RefuseByRules(Registry& registry) { RefuseUnderEach(registry, std::make_index_sequence<kControls.size()>()); }

}  // namespace dbx
