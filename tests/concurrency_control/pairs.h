// The pairs of concurrency control and log scheme that the typed tests of both go over.
#pragma once

#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {

template <class CcT, class LogT>
struct Pair {
  using Cc = CcT;
  using Log = LogT;
};
template <template <class> class Cc>
using CommandPair = Pair<Cc<TaurusLog<CommandPayload>>, TaurusLog<CommandPayload>>;
// Of a concurrency control that keeps many versions.
template <template <class> class Cc>
using VersionedPair = Pair<Cc<TaurusLog<VersionedCommandPayload>>, TaurusLog<VersionedCommandPayload>>;
template <template <class> class Cc>
using VersionedSerialPair = Pair<Cc<SerialLog<VersionedCommandPayload>>, SerialLog<VersionedCommandPayload>>;
template <template <class> class Cc>
using DataPair = Pair<Cc<TaurusLog<DataPayload>>, TaurusLog<DataPayload>>;
template <template <class> class Cc>
using SerialPair = Pair<Cc<SerialLog<CommandPayload>>, SerialLog<CommandPayload>>;
template <template <class> class Cc>
using PloverPair = Pair<Cc<PloverLog<DataPayload>>, PloverLog<DataPayload>>;
template <template <class> class Cc>
using SerialDataPair = Pair<Cc<SerialLog<DataPayload>>, SerialLog<DataPayload>>;
using SiloRPair = Pair<Silo<SiloRLog<DataPayload>>, SiloRLog<DataPayload>>;

using AllPairs = ::testing::Types<
    CommandPair<NoWaitRows>, CommandPair<NoWaitTable>, CommandPair<Silo>, DataPair<NoWaitRows>, DataPair<NoWaitTable>,
    DataPair<Silo>, SerialPair<NoWaitRows>, SerialPair<NoWaitTable>, SerialPair<Silo>, PloverPair<NoWaitRows>,
    PloverPair<NoWaitTable>, PloverPair<Silo>, SiloRPair, CommandPair<WaitDieRows>, CommandPair<WaitDieTable>,
    DataPair<WaitDieRows>, SerialPair<WaitDieRows>, PloverPair<WaitDieTable>, CommandPair<DlDetectRows>,
    CommandPair<DlDetectTable>, DataPair<DlDetectRows>, SerialPair<DlDetectRows>, PloverPair<DlDetectTable>,
    DataPair<TicToc>, SerialDataPair<TicToc>, PloverPair<TicToc>, VersionedPair<Hekaton>, DataPair<Hekaton>,
    VersionedSerialPair<Hekaton>, SerialDataPair<Hekaton>, PloverPair<Hekaton>>;

using AllTaurusPairs =
    ::testing::Types<CommandPair<NoWaitRows>, CommandPair<NoWaitTable>, CommandPair<Silo>, DataPair<NoWaitRows>,
                     DataPair<NoWaitTable>, DataPair<Silo>, CommandPair<WaitDieRows>, CommandPair<WaitDieTable>,
                     CommandPair<DlDetectRows>, CommandPair<DlDetectTable>, DataPair<DlDetectTable>, DataPair<TicToc>,
                     VersionedPair<Hekaton>, VersionedPair<HekatonSnapshot>, DataPair<Hekaton>>;

// Whose commands are replayed in one version.
using AllCommandPairs = ::testing::Types<CommandPair<NoWaitRows>, CommandPair<NoWaitTable>, CommandPair<Silo>,
                                         CommandPair<WaitDieRows>, CommandPair<DlDetectTable>>;

}  // namespace dbx::testing
