// Pairs of concurrency control and log scheme as types: any pair, and the one that config.h names.
//
// A new scheme or concurrency control is one #include and one line here. Only what is used is instantiated.
// Included by pair.cpp, which compiles a pair, and by refusals.cpp, which asks the rules about all of them.
#pragma once

#include <type_traits>

#include "concurrency_control/dl_detect.h"
#include "concurrency_control/hekaton.h"
#include "concurrency_control/lock_table.h"
#include "concurrency_control/no_wait.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/silo.h"
#include "concurrency_control/tictoc.h"
#include "concurrency_control/two_phase_locking.h"
#include "concurrency_control/wait_die.h"
#include "logging/eleda/eleda_log.h"
#include "logging/none/no_log.h"
#include "logging/payload.h"
#include "logging/plover/plover_log.h"
#include "logging/plover/plover_recovery.h"
#include "logging/serial/serial_log.h"
#include "logging/serial/serial_recovery.h"
#include "logging/silo_r/silo_r_log.h"
#include "logging/silo_r/silo_r_recovery.h"
#include "logging/taurus/taurus_log.h"
#include "logging/taurus/taurus_recovery.h"
#include "system/configured.h"

namespace dbx {

template <format::Scheme kScheme, class PayloadT>
struct LogOf;
template <class PayloadT>
struct LogOf<format::Scheme::kNone, PayloadT> : std::type_identity<NoLog> {
  using Recovery = SerialRecovery;  // never run: there is nothing to recover
};
template <class PayloadT>
struct LogOf<format::Scheme::kSerial, PayloadT> : std::type_identity<SerialLog<PayloadT>> {
  using Recovery = SerialRecovery;
};
template <class PayloadT>
struct LogOf<format::Scheme::kTaurus, PayloadT> : std::type_identity<TaurusLog<PayloadT>> {
  using Recovery = TaurusRecovery;
};
template <class PayloadT>
struct LogOf<format::Scheme::kPlover, PayloadT> : std::type_identity<PloverLog<PayloadT>> {
  using Recovery = PloverRecovery;
};
template <class PayloadT>
struct LogOf<format::Scheme::kSiloR, PayloadT> : std::type_identity<SiloRLog<PayloadT>> {
  using Recovery = SiloRRecovery;
};
template <class PayloadT>
struct LogOf<format::Scheme::kEleda, PayloadT> : std::type_identity<EledaLog<PayloadT>> {
  using Recovery = SerialRecovery;  // one sequence of records, replayed as such
};

template <bool kLocktable, class Log, class Policy>
struct LockingOf : std::type_identity<TwoPhaseLocking<Log, RowLocks, Policy>> {};
template <class Log, class Policy>
struct LockingOf<true, Log, Policy> : std::type_identity<TwoPhaseLocking<Log, LockTableLocks, Policy>> {};

// kLocktable without locks to put there is a type too, so that rules.h can refuse it with a sentence.
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

// Who keeps many versions is replayed in many, where the log holds commands.
template <CcAlg kAlg, bool kLocktable, LogType kType>
using PayloadOf = std::conditional_t<kType == LogType::kData, DataPayload,
                                     std::conditional_t<CcOf<kAlg, kLocktable, NoLog>::type::kTraits.multi_version,
                                                        VersionedCommandPayload, CommandPayload>>;

template <CcAlg kAlg, bool kLocktable, format::Scheme kScheme, LogType kType>
struct PairOf {
  using Payload = PayloadOf<kAlg, kLocktable, kType>;
  using Log = typename LogOf<kScheme, Payload>::type;
  using Recovery = typename LogOf<kScheme, Payload>::Recovery;
  using Cc = typename CcOf<kAlg, kLocktable, Log>::type;
};

using ConfiguredPair = PairOf<Configured::kCcAlg, Configured::kUseLocktable, Configured::kScheme, Configured::kLogType>;
using ConfiguredLog = ConfiguredPair::Log;
using ConfiguredRecovery = ConfiguredPair::Recovery;

}  // namespace dbx
