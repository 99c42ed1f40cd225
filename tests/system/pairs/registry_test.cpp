// The registry with engines that do nothing.
#include "system/pairs/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "system/command_line/parse_options.h"

namespace dbx {
namespace {

class FakeEngine : public Engine {
 public:
  RunResult Run(const Options&, LogStorage&) override { return {}; }
  RecoveryResult Recover(const Options&, LogStorage&) override { return {}; }
};

Registry::Factory Fake() {
  return [] { return std::make_unique<FakeEngine>(); };
}

Options Pair(const char* cc, bool use_locktable, const char* log, const char* log_type) {
  Options options = DefaultOptions();
  options.cc = cc;
  options.use_locktable = use_locktable;
  options.log = log;
  options.log_type = log_type;
  return options;
}

std::string RefusalOf(const Registry& registry, const Options& options) {
  try {
    registry.Create(options);
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), ExitStatus::kUsage);
    return e.what();
  }
  return {};
}

TEST(Registry, CreatesThePairThatTheOptionsName) {
  Registry registry;
  registry.Add({"NO_WAIT", false, "LOG_TAURUS", "LOG_DATA"}, Fake());
  EXPECT_NE(registry.Create(Pair("NO_WAIT", false, "LOG_TAURUS", "LOG_DATA")), nullptr);
  EXPECT_NE(RefusalOf(registry, Pair("NO_WAIT", false, "LOG_TAURUS", "LOG_COMMAND")), "");
  EXPECT_NE(RefusalOf(registry, Pair("NO_WAIT", true, "LOG_TAURUS", "LOG_DATA")), "");
}

TEST(Registry, WithoutALogTheTypeDoesNotMatter) {
  Registry registry;
  registry.Add({"SILO", false, "LOG_NO", ""}, Fake());
  EXPECT_NE(registry.Create(Pair("SILO", false, "LOG_NO", "LOG_COMMAND")), nullptr);
  EXPECT_NE(registry.Create(Pair("SILO", false, "LOG_NO", "LOG_DATA")), nullptr);
}

TEST(Registry, AMissingPairSaysWhatThereIsAndHowToBuildTheOther) {
  Registry registry;
  registry.Add({"NO_WAIT", false, "LOG_NO", ""}, Fake());
  const std::string why = RefusalOf(registry, Pair("SILO", false, "LOG_SERIAL", "LOG_DATA"));
  EXPECT_NE(why.find("it holds: NO_WAIT, LOG_NO"), std::string::npos) << why;
  EXPECT_NE(why.find("make CC_ALG=SILO USE_LOCKTABLE=0 LOG_ALGORITHM=LOG_SERIAL LOG_TYPE=LOG_DATA"), std::string::npos);
}

TEST(Registry, ARefusedPairGivesTheRulesSentence) {
  Registry registry;
  registry.Refuse({"SILO", true, "LOG_NO", ""}, "it has no locks: set USE_LOCKTABLE 0");
  EXPECT_NE(RefusalOf(registry, Pair("SILO", true, "LOG_NO", "")).find("set USE_LOCKTABLE 0"), std::string::npos);
  EXPECT_TRUE(registry.Supported().empty());
  EXPECT_NE(registry.ListText().find("| SILO | 1 | LOG_NO | - | - | refused: it has no locks"), std::string::npos);
}

TEST(Registry, TheListSaysWhichIsolationLevelsTheRulesGrant) {
  Registry registry;
  RefuseByRules(registry);
  registry.Add({"HEKATON", false, "LOG_NO", ""}, Fake());
  registry.Add({"TICTOC", false, "LOG_TAURUS", "LOG_DATA"}, Fake());
  const std::string list = registry.ListText();
  EXPECT_NE(list.find("| HEKATON | 0 | LOG_NO | - | SERIALIZABLE, SNAPSHOT | supported |\n"), std::string::npos);
  EXPECT_NE(list.find("| TICTOC | 0 | LOG_TAURUS | LOG_DATA | SERIALIZABLE | supported |\n"), std::string::npos);
}

TEST(Registry, TheRulesRefuseALockTableWithoutLocks) {
  Registry registry;
  RefuseByRules(registry);
  for (const char* log : {"LOG_NO", "LOG_SERIAL", "LOG_TAURUS", "LOG_ELEDA"}) {
    for (const char* log_type : {"LOG_DATA", "LOG_COMMAND"}) {
      EXPECT_NE(RefusalOf(registry, Pair("SILO", true, log, log_type)).find("refused"), std::string::npos);
      for (const char* cc : {"NO_WAIT", "WAIT_DIE", "DL_DETECT"}) {
        EXPECT_EQ(RefusalOf(registry, Pair(cc, true, log, log_type)).find("refused"), std::string::npos);
      }
    }
  }
}

TEST(Registry, TheRulesRefuseCommandsWhereRowsAreReplayed) {
  Registry registry;
  RefuseByRules(registry);
  for (const char* log : {"LOG_PLOVER", "LOG_BATCH"}) {
    EXPECT_NE(RefusalOf(registry, Pair("SILO", false, log, "LOG_COMMAND")).find("set LOG_TYPE LOG_DATA"),
              std::string::npos);
  }
  EXPECT_EQ(RefusalOf(registry, Pair("NO_WAIT", false, "LOG_PLOVER", "LOG_DATA")).find("refused"), std::string::npos);
}

TEST(Registry, TheRulesRefuseCommandsUnderALogicalOrder) {
  Registry registry;
  RefuseByRules(registry);
  for (const char* log : {"LOG_SERIAL", "LOG_TAURUS", "LOG_ELEDA"}) {
    EXPECT_NE(RefusalOf(registry, Pair("TICTOC", false, log, "LOG_COMMAND")).find("commits in a logical order"),
              std::string::npos);
    EXPECT_EQ(RefusalOf(registry, Pair("TICTOC", false, log, "LOG_DATA")).find("refused"), std::string::npos);
  }
}

TEST(Registry, TheRulesRefuseEpochsWithoutTids) {
  Registry registry;
  RefuseByRules(registry);
  EXPECT_NE(RefusalOf(registry, Pair("NO_WAIT", false, "LOG_BATCH", "LOG_DATA")).find("set CC_ALG SILO"),
            std::string::npos);
  EXPECT_NE(RefusalOf(registry, Pair("TICTOC", false, "LOG_BATCH", "LOG_DATA")).find("set CC_ALG SILO"),
            std::string::npos);
  EXPECT_EQ(RefusalOf(registry, Pair("SILO", false, "LOG_BATCH", "LOG_DATA")).find("refused"), std::string::npos);
}

// Commands too: their records have timestamps.
TEST(Registry, TheRulesRefuseVersionsWhereTidsOrALockTableAreNeeded) {
  Registry registry;
  RefuseByRules(registry);
  for (const char* log : {"LOG_SERIAL", "LOG_TAURUS", "LOG_ELEDA"}) {
    for (const char* log_type : {"LOG_DATA", "LOG_COMMAND"}) {
      EXPECT_EQ(RefusalOf(registry, Pair("HEKATON", false, log, log_type)).find("refused"), std::string::npos);
      EXPECT_NE(RefusalOf(registry, Pair("HEKATON", true, log, log_type)).find("set USE_LOCKTABLE 0"),
                std::string::npos);
    }
  }
  EXPECT_NE(RefusalOf(registry, Pair("HEKATON", false, "LOG_BATCH", "LOG_DATA")).find("set CC_ALG SILO"),
            std::string::npos);
}

TEST(Registry, TheRulesRefuseHeapsWhereNothingKeepsWhatIsRead) {
  Registry registry;
  RefuseByRules(registry);
  for (const char* cc : {"SILO", "TICTOC"}) {
    EXPECT_NE(RefusalOf(registry, Pair(cc, false, "LOG_WBL", "LOG_DATA")).find("set CC_ALG HEKATON or NO_WAIT"),
              std::string::npos);
  }
  for (const char* cc : {"NO_WAIT", "WAIT_DIE", "DL_DETECT", "HEKATON"}) {
    EXPECT_EQ(RefusalOf(registry, Pair(cc, false, "LOG_WBL", "LOG_DATA")).find("refused"), std::string::npos) << cc;
    EXPECT_NE(RefusalOf(registry, Pair(cc, false, "LOG_WBL", "LOG_COMMAND")).find("LOG_TYPE LOG_DATA"),
              std::string::npos)
        << cc;
  }
  EXPECT_EQ(RefusalOf(registry, Pair("NO_WAIT", true, "LOG_WBL", "LOG_DATA")).find("refused"), std::string::npos);
}

TEST(RegistryDeathTest, APairIsEnteredOnce) {
  Registry registry;
  registry.Add({"SILO", false, "LOG_NO", ""}, Fake());
  EXPECT_EXIT(registry.Add({"SILO", false, "LOG_NO", ""}, Fake()), testing::ExitedWithCode(7), "internal check failed");
}

}  // namespace
}  // namespace dbx
