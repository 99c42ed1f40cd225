// The log schemes as types, both sides of each: system/'s one list of them. A new scheme needs its #includes and a line
// here, and the #undef of its macro in configured.h; properties of a scheme that do not need its class are in
// logging/schemes.h.
//
// Read by control_types.h, which pairs the run sides with concurrency controls, and by recovery_run.cpp, which
// compiles the recovery sides once, without any; the price of one list is that a changed run side recompiles them,
// once. Nothing else in system/ names a scheme (tests/lint/scheme_names.py).
#pragma once

#include "logging/differential/differential_log.h"
#include "logging/differential/differential_recovery.h"
#include "logging/eleda/eleda_log.h"
#include "logging/instant/instant_log.h"
#include "logging/none/no_log.h"
#include "logging/plover/plover_log.h"
#include "logging/plover/plover_recovery.h"
#include "logging/schemes.h"
#include "logging/serial/serial_log.h"
#include "logging/serial/serial_recovery.h"
#include "logging/silo_r/silo_r_log.h"
#include "logging/silo_r/silo_r_recovery.h"
#include "logging/taurus/taurus_log.h"
#include "logging/taurus/taurus_recovery.h"
#include "logging/write_behind/write_behind_log.h"

namespace dbx {

template <template <class Payload> class LogT, class RecoveryT>
struct SchemeTypes {
  template <class Payload>
  using Log = LogT<Payload>;
  using Recovery = RecoveryT;
};
template <class Payload>
using NoLogOf = NoLog;

template <format::Scheme kScheme>
struct TypesOf;
template <>
struct TypesOf<format::Scheme::kNone> : SchemeTypes<NoLogOf, SerialRecovery> {};  // recovers nothing: never run
template <>
struct TypesOf<format::Scheme::kSerial> : SchemeTypes<SerialLog, SerialRecovery> {};
template <>
struct TypesOf<format::Scheme::kTaurus> : SchemeTypes<TaurusLog, TaurusRecovery> {};
template <>
struct TypesOf<format::Scheme::kPlover> : SchemeTypes<PloverLog, PloverRecovery> {};
template <>
struct TypesOf<format::Scheme::kSiloR> : SchemeTypes<SiloRLog, SiloRRecovery> {};
template <>
struct TypesOf<format::Scheme::kEleda> : SchemeTypes<EledaLog, SerialRecovery> {};  // one sequence, replayed as such
template <>
struct TypesOf<format::Scheme::kDifferential> : SchemeTypes<DifferentialLog, DifferentialRecovery> {};
template <>
struct TypesOf<format::Scheme::kWriteBehind> : SchemeTypes<WriteBehindLog, SerialRecovery> {};  // replays nothing
template <>
struct TypesOf<format::Scheme::kInstant> : SchemeTypes<InstantLog, SerialRecovery> {};  // in one order, too

}  // namespace dbx
