// Which pairs make sense: the rules over traits, those of real pairs where there are any that a rule is about.
#include "system/pairs/rules.h"

#include <gtest/gtest.h>

#include "concurrency_control/silo.h"
#include "concurrency_control/tictoc.h"
#include "logging/none/no_log.h"
#include "logging/payload.h"
#include "logging/serial/serial_log.h"
#include "logging/taurus/taurus_log.h"

namespace dbx {
namespace {

// At run time, as --list asks; system/pairs/pair.cpp asks the compiler.
template <class Cc, class Log>
std::string_view RefusalOf() {
  const CcTraits cc = Cc::kTraits;
  const LogTraits log = Log::kTraits;
  return rules::Refusal(/*use_locktable=*/false, cc, log);
}

// The log may order a writer before a transaction that read the version it has overwritten.
TEST(Rules, CommandsNeedAPhysicalOrder) {
  EXPECT_EQ((RefusalOf<TicToc<NoLog>, TaurusLog<CommandPayload>>()), rules::kNeedsPhysicalOrder);
  EXPECT_EQ((RefusalOf<TicToc<NoLog>, SerialLog<CommandPayload>>()), rules::kNeedsPhysicalOrder);
  EXPECT_EQ((RefusalOf<TicToc<NoLog>, TaurusLog<DataPayload>>()), "");
  EXPECT_EQ((RefusalOf<Silo<NoLog>, TaurusLog<CommandPayload>>()), "");
}

TEST(Rules, ASnapshotNeedsVersions) {
  CcTraits one{}, many{};
  many.multi_version = true;
  using rules::IsolationRefusal;
  EXPECT_EQ(IsolationRefusal(Isolation::kSerializable, one), "");
  EXPECT_EQ(IsolationRefusal(Isolation::kSerializable, many), "");
  EXPECT_EQ(IsolationRefusal(Isolation::kSnapshot, many), "");
  EXPECT_NE(IsolationRefusal(Isolation::kSnapshot, one).find("CC_ALG HEKATON"), std::string::npos);
}

TEST(Rules, AHeapNeedsSnapshotsOrReadersThatLockAndNoCommands) {
  CcTraits optimistic{}, many{}, locking{};
  many.multi_version = locking.reads_are_locked = true;
  LogTraits rows{}, data{}, commands{};
  data.version_heap = commands.version_heap = true;
  data.payload = PayloadKind::kData;
  commands.payload = PayloadKind::kCommand;
  using rules::NeedsVersions;
  EXPECT_FALSE(NeedsVersions(optimistic, rows));
  EXPECT_FALSE(NeedsVersions(many, data) || NeedsVersions(locking, data));
  EXPECT_TRUE(NeedsVersions(optimistic, data));
  EXPECT_TRUE(NeedsVersions(many, commands) && NeedsVersions(locking, commands));
}

TEST(Rules, CommandsOfManyVersionsNeedTimestampsAndNoOthersDo) {
  CcTraits one{}, many{};
  many.multi_version = true;
  LogTraits data{}, without{}, with{};
  data.payload = PayloadKind::kData;
  without.payload = with.payload = PayloadKind::kCommand;
  with.needs_multi_version = true;
  using rules::NeedsTimestamps;
  EXPECT_FALSE(NeedsTimestamps(one, data) || NeedsTimestamps(many, data));
  EXPECT_FALSE(NeedsTimestamps(one, without) || NeedsTimestamps(many, with));
  EXPECT_TRUE(NeedsTimestamps(many, without));
  EXPECT_TRUE(NeedsTimestamps(one, with));
}

}  // namespace
}  // namespace dbx
