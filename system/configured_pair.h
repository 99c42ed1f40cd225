// The pair of concurrency control and log scheme that config.h names, as types. Included by pair.cpp alone.
//
// A new scheme or concurrency control is one #include and one line here. Only what is chosen is instantiated.
#pragma once

#include <type_traits>

#include "concurrency_control/lock_table.h"
#include "concurrency_control/no_wait.h"
#include "concurrency_control/row_locks.h"
#include "concurrency_control/silo.h"
#include "logging/none/no_log.h"
#include "logging/payload.h"
#include "logging/serial/serial_log.h"
#include "logging/taurus/taurus_log.h"
#include "system/configured.h"

namespace dbx {

template <LogAlgorithm kAlgorithm, class PayloadT>
struct LogOf;
template <class PayloadT>
struct LogOf<LogAlgorithm::kNo, PayloadT> : std::type_identity<NoLog> {};
template <class PayloadT>
struct LogOf<LogAlgorithm::kSerial, PayloadT> : std::type_identity<SerialLog<PayloadT>> {};
template <class PayloadT>
struct LogOf<LogAlgorithm::kTaurus, PayloadT> : std::type_identity<TaurusLog<PayloadT>> {};

template <CcAlg kAlg, bool kLocktable, class Log>
struct CcOf;
template <class Log>
struct CcOf<CcAlg::kNoWait, false, Log> : std::type_identity<NoWait<Log, RowLocks>> {};
template <class Log>
struct CcOf<CcAlg::kNoWait, true, Log> : std::type_identity<NoWait<Log, LockTableLocks>> {};
template <class Log>
struct CcOf<CcAlg::kSilo, false, Log> : std::type_identity<Silo<Log>> {};
template <class Log>
struct CcOf<CcAlg::kSilo, true, Log> {
  static_assert(sizeof(Log) == 0,
                "SILO keeps its versions in the rows and has no locks to put in a table: set USE_LOCKTABLE 0");
  using type = Silo<Log>;
};

using ConfiguredPayload = std::conditional_t<Configured::kLogType == LogType::kCommand, CommandPayload, DataPayload>;
using ConfiguredLog = typename LogOf<Configured::kLogAlgorithm, ConfiguredPayload>::type;
using ConfiguredCc = typename CcOf<Configured::kCcAlg, Configured::kUseLocktable, ConfiguredLog>::type;

}  // namespace dbx
