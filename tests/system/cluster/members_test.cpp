// What the death of a cluster's process means for its run, and that processes which end are seen.
#include "system/cluster/members.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace dbx {
namespace {

using mm::NodeId, mm::Role;
using std::chrono::milliseconds;

TEST(RunOutlivesTest, WhatIsLeftOfTheRoleDecides) {
  const auto outlives = [](Role role, uint32_t left) { return RunOutlives(role, left, std::nullopt); };
  EXPECT_FALSE(outlives(Role::kLocks, 0));
  EXPECT_TRUE(outlives(Role::kLogStore, 2));
  EXPECT_FALSE(outlives(Role::kLogStore, 1));
  EXPECT_TRUE(outlives(Role::kPageStore, 1));
  EXPECT_FALSE(outlives(Role::kPageStore, 0));
  EXPECT_TRUE(outlives(Role::kMaster, 1));
  EXPECT_FALSE(outlives(Role::kMaster, 0));
}

TEST(RunOutlivesTest, AnErrorThatOthersWouldMeetTooEndsTheRun) {
  for (const ExitStatus status : {ExitStatus::kCorrupt, ExitStatus::kNoSpace, ExitStatus::kInternal}) {
    EXPECT_FALSE(RunOutlives(Role::kPageStore, 3, status));
  }
  EXPECT_TRUE(RunOutlives(Role::kPageStore, 3, ExitStatus::kIo));
}

// Three Log Stores that do as they are told: "die", "crash", "fail", "say" and "end".
struct MembersTest : testing::Test {
  MembersTest() {
    for (uint8_t i = 0; i < 3; ++i) stores.push_back(&members.Add({Role::kLogStore, i}, Obey));
    members.Connect();
    members.SetPhase("run");
  }
  static void Obey(Channel& parent) {
    parent.SendValue(uint16_t{7});
    if (!parent.Receive(kStartTime)) return;
    parent.SendValue(Started());
    for (;;) {
      const auto word = parent.ReceiveText(kPoll);
      if (word == "die") kill(getpid(), SIGKILL);
      if (word == "crash") std::abort();
      if (word == "fail") throw Error(ExitStatus::kCorrupt, "damaged");
      if (word == "say") parent.SendValue(uint64_t{42});
      if (word == kEndOfRun) return parent.SendValue(uint64_t{43});
    }
  }
  void Lose(size_t i) {
    members.Tell(*stores[i], "die");
    while (stores[i]->is_there()) members.Look();
  }

  std::vector<std::string> died;
  Members members{"/logs", [this](const ProcessDeath& death) { died.push_back(death.how); }};
  std::vector<Member*> stores;
};

TEST_F(MembersTest, OneThatDiesIsKnownAndTheOthersGoOn) {
  Lose(1);
  EXPECT_EQ(died, std::vector<std::string>{"log store 1 was ended by signal 9"});
  EXPECT_STREQ(members.deaths().front().phase, "run");
  EXPECT_EQ(members.There(Role::kLogStore), (std::vector{stores[0], stores[2]}));
  EXPECT_FALSE(members.Tell(*stores[1], "say"));
  ASSERT_TRUE(members.Tell(*stores[2], "say"));
  EXPECT_EQ(members.Receive<uint64_t>(*stores[2], milliseconds(5000)), 42u);
}

// The others run the same code.
TEST_F(MembersTest, OneThatCrashesEndsTheRun) {
  members.Tell(*stores[1], "crash");
  try {
    while (stores[1]->is_there()) members.Look();
    FAIL() << "the run goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kInternal);
    EXPECT_EQ(std::string(error.what()).find("log store 1 crashed, by signal 6"), 0u) << error.what();
  }
}

TEST_F(MembersTest, OneTooManyEndsTheRunWithOneLine) {
  Lose(1);
  try {
    Lose(0);
    FAIL() << "one of three is left";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kIo);
    EXPECT_STREQ(error.what(),
                 "log store 0 was ended by signal 9 (lost before: log store 1); all other processes of the cluster "
                 "were ended, and its logs are in /logs");
  }
}

TEST_F(MembersTest, AFailureKeepsItsStatus) {
  members.Tell(*stores[0], "fail");
  try {
    while (stores[0]->is_there()) members.Look();
    FAIL() << "its log is damaged";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kCorrupt);
  }
}

TEST_F(MembersTest, EndsAreNoDeaths) {
  for (Member* store : stores) {
    members.TellToEnd(*store);
    EXPECT_EQ(members.Last<uint64_t>(*store), 43u);
    members.AwaitEndOf(*store);
  }
  EXPECT_TRUE(died.empty());
  EXPECT_TRUE(members.There(Role::kLogStore).empty());
}

TEST_F(MembersTest, OneThatIsKilledHasDiedForTheReasonGiven) {
  members.Kill(*stores[1], "log store 1 is cut off");
  EXPECT_EQ(died, std::vector<std::string>{"log store 1 is cut off"});
}

// Two have ended well, and count as left.
TEST_F(MembersTest, ADeathBesideEndsIsOutlived) {
  members.End(*stores[0]);
  Lose(1);
  members.End(*stores[2]);
  EXPECT_EQ(died.size(), 1u);
}

}  // namespace
}  // namespace dbx
