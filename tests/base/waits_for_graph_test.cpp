#include "base/waits_for_graph.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <optional>
#include <vector>

namespace dbx {
namespace {

// Worker i's transactions start at timestamp i + 1, unless a test says otherwise.
class WaitsForGraphTest : public ::testing::Test {
 protected:
  WaitsForGraphTest() {
    for (uint32_t w = 0; w < 5; ++w) graph_.BeginTry(WorkerId(w));
  }
  void Wait(uint32_t worker, std::initializer_list<uint32_t> others) {
    graph_.ClearEdges(WorkerId(worker));
    for (const uint32_t other : others) graph_.AddEdge(WorkerId(worker), WorkerId(other));
    graph_.Publish(WorkerId(worker), worker + 1);
  }
  // Searches on behalf of `worker`: true if it may go on waiting.
  bool Search(uint32_t worker) { return WaitsForGraph::Search(graph_, WorkerId(worker)).BreakCycles(); }
  bool IsDoomed(uint32_t worker) const { return graph_.IsDoomed(WorkerId(worker)); }

  WaitsForGraph graph_{5};
};

TEST_F(WaitsForGraphTest, AChainIsNoCycle) {
  Wait(0, {1});
  Wait(1, {2, 3});
  Wait(3, {4});
  for (uint32_t w = 0; w < 4; ++w) EXPECT_TRUE(Search(w));
  for (uint32_t w = 0; w < 5; ++w) EXPECT_FALSE(IsDoomed(w));
}

TEST_F(WaitsForGraphTest, TheYoungestOfACycleIsTheVictimWhoeverFindsIt) {
  Wait(0, {1});
  Wait(1, {2});
  Wait(2, {0});
  EXPECT_FALSE(Search(2));
  EXPECT_TRUE(Search(0));
  EXPECT_TRUE(Search(1));
  EXPECT_TRUE(IsDoomed(2));
  EXPECT_FALSE(IsDoomed(0));
  EXPECT_FALSE(IsDoomed(1));
}

TEST_F(WaitsForGraphTest, EveryCycleThroughTheSearcherIsBroken) {
  Wait(1, {0});
  Wait(2, {0});
  Wait(3, {4});
  Wait(0, {1, 2, 3});
  WaitsForGraph::Search search(graph_, WorkerId(0));
  EXPECT_TRUE(search.BreakCycles());
  EXPECT_EQ(search.cycles(), 2u);
  EXPECT_TRUE(IsDoomed(1));
  EXPECT_TRUE(IsDoomed(2));
  EXPECT_FALSE(IsDoomed(3));
}

// The holder has begun another try since: the lock that it held then is free, or held by another worker.
TEST_F(WaitsForGraphTest, AnEdgeToATryThatIsOverLeadsNowhere) {
  Wait(0, {1});
  graph_.BeginTry(WorkerId(1));
  Wait(1, {0});
  EXPECT_TRUE(Search(1));
  EXPECT_FALSE(IsDoomed(0));
}

TEST_F(WaitsForGraphTest, AWorkerThatWaitsNoLongerIsInNoCycle) {
  Wait(0, {1});
  graph_.Retract(WorkerId(0));
  Wait(1, {0});
  EXPECT_TRUE(Search(1));
}

TEST_F(WaitsForGraphTest, ACycleThatDoesNotLeadBackIsForItsOwnMembers) {
  Wait(1, {2});
  Wait(2, {1});
  Wait(0, {1});
  EXPECT_TRUE(Search(0));
  EXPECT_FALSE(IsDoomed(1));
  EXPECT_FALSE(Search(2));
}

// Its next wait is another one.
TEST_F(WaitsForGraphTest, ADoomedTryIsForgottenWithTheNextWait) {
  Wait(1, {0});
  Wait(0, {1});
  EXPECT_TRUE(Search(0));
  EXPECT_TRUE(IsDoomed(1));
  graph_.Retract(WorkerId(1));
  Wait(1, {2});
  EXPECT_FALSE(IsDoomed(1));
}

TEST_F(WaitsForGraphTest, MoreEdgesMayBeAddedToAWait) {
  Wait(0, {1});
  Wait(2, {0});
  graph_.AddEdge(WorkerId(0), WorkerId(2));
  graph_.Publish(WorkerId(0), 9);
  EXPECT_FALSE(Search(0));
}

using NamedGraph = NamedWaitsForGraph<uint32_t, uint64_t>;

void Wait(NamedGraph& graph, uint32_t waiter, uint64_t age, std::initializer_list<uint32_t> blockers) {
  graph.Publish(waiter, age, std::vector<uint32_t>(blockers));
}

TEST(NamedWaitsForGraphTest, EdgesToTransactionsThatDoNotWaitLeadNowhere) {
  NamedGraph graph;
  Wait(graph, 1, 5, {2, 3});
  Wait(graph, 3, 6, {2});
  EXPECT_EQ(graph.FindVictim(1), std::nullopt);
  EXPECT_EQ(graph.FindVictim(2), std::nullopt);
}

TEST(NamedWaitsForGraphTest, TheYoungestOfACycleIsTheVictimWhoeverSearches) {
  NamedGraph graph;
  Wait(graph, 1, 5, {9, 2});
  Wait(graph, 2, 7, {3});
  Wait(graph, 3, 6, {1});
  for (const uint32_t searcher : {1u, 2u, 3u}) EXPECT_EQ(graph.FindVictim(searcher), 2u);
  graph.Retract(2);
  for (const uint32_t searcher : {1u, 2u, 3u}) EXPECT_EQ(graph.FindVictim(searcher), std::nullopt);
}

TEST(NamedWaitsForGraphTest, OfEqualAgeTheLargerNameIsTheYounger) {
  NamedGraph graph;
  Wait(graph, 1, 5, {2});
  Wait(graph, 2, 5, {1});
  EXPECT_EQ(graph.FindVictim(1), 2u);
}

TEST(NamedWaitsForGraphTest, ACycleBesideTheSearcherIsNotItsOwn) {
  NamedGraph graph;
  Wait(graph, 1, 5, {2});
  Wait(graph, 2, 6, {3});
  Wait(graph, 3, 7, {2});
  EXPECT_EQ(graph.FindVictim(1), std::nullopt);
}

}  // namespace
}  // namespace dbx
