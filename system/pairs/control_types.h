// The concurrency controls as types, and with a log scheme as a pair. A new control is one #include and one line here,
// a new scheme in scheme_types.h. Only types in use are instantiated.
//
// No macro of config.h is read here, so that all pairs share one precompiled header (prelude.h).
#pragma once

#include <type_traits>

#include "concurrency_control/controls.h"
#include "concurrency_control/dl_detect.h"
#include "concurrency_control/hekaton.h"
#include "concurrency_control/lock_table.h"
#include "concurrency_control/no_wait.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/silo.h"
#include "concurrency_control/tictoc.h"
#include "concurrency_control/two_phase_locking.h"
#include "concurrency_control/wait_die.h"
#include "logging/payload.h"
#include "system/pairs/scheme_types.h"

namespace dbx {

template <bool kLocktable, class Log, class Policy>
struct LockingOf : std::type_identity<TwoPhaseLocking<Log, RowLocks, Policy>> {};
template <class Log, class Policy>
struct LockingOf<true, Log, Policy> : std::type_identity<TwoPhaseLocking<Log, LockTableLocks, Policy>> {};

// kLocktable without locks is a type too, so that rules.h can refuse it with a sentence.
template <CcAlg kAlg, bool kLocktable, class Log>
struct CcOf;
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kNoWait, kLocktable, Log> : LockingOf<kLocktable, Log, NoWait> {};
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kWaitDie, kLocktable, Log> : LockingOf<kLocktable, Log, WaitDie> {};
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kDlDetect, kLocktable, Log> : LockingOf<kLocktable, Log, DlDetect> {};
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kSilo, kLocktable, Log> : std::type_identity<Silo<Log>> {};
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kTicToc, kLocktable, Log> : std::type_identity<TicToc<Log>> {};
template <bool kLocktable, class Log>
struct CcOf<CcAlg::kHekaton, kLocktable, Log> : std::type_identity<Hekaton<Log>> {};

// Multi-version concurrency control has multi-version replay, under command logging.
template <CcAlg kAlg, bool kLocktable, LogType kType>
using PayloadOf = std::conditional_t<kType == LogType::kData, DataPayload,
                                     std::conditional_t<CcOf<kAlg, kLocktable, NoLog>::type::kTraits.multi_version,
                                                        VersionedCommandPayload, CommandPayload>>;

template <CcAlg kAlg, bool kLocktable, format::Scheme kScheme, LogType kType>
struct PairOf {
  using Payload = PayloadOf<kAlg, kLocktable, kType>;
  using Log = typename TypesOf<kScheme>::template Log<Payload>;
  using Cc = typename CcOf<kAlg, kLocktable, Log>::type;
};

}  // namespace dbx
