// The tree under several threads with transactions that abort, over a pool that evicts, against a std::map; and the
// record bodies against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/random.h"
#include "tests/multi_master/page/tree_fixture.h"

namespace dbx::mm {
namespace {

struct Load {
  uint64_t seed = 1;
  uint32_t threads = 4;
  uint32_t transactions = 300;  // of each thread
  uint64_t keys = 400;
  size_t frames = 1024;
};

// The transactions of one thread on keys of its own, which lie between those of the others on the same pages. So it
// needs no row locks, and its map is exact.
class Client {
 public:
  Client(TreeUnderTest& test, const Load& load, uint32_t index)
      : test_(test), load_(load), index_(index), random_(load.seed, index) {}

  void Run() {
    for (uint32_t i = 0; i < load_.transactions; ++i) {
      RunTransaction(uint64_t{index_ + 1} << 32 | (i + 1));
      if (random_.Chance(0.1)) CheckOwnRows();
    }
  }
  const std::map<Key, std::string>& rows() const { return rows_; }

 private:
  Key AnyKey() { return random_.Below(load_.keys) * load_.threads + index_; }

  void RunTransaction(uint64_t txn) {
    std::map<Key, std::string> after = rows_;
    std::vector<Key> written;  // each once, in the order of the first writes
    for (uint64_t n = random_.Between(1, 5); n > 0; --n) {
      const Key key = AnyKey();
      EXPECT_EQ(test_.Get(key, &hints_).has_value(), after.contains(key)) << key;
      if (std::find(written.begin(), written.end(), key) == written.end()) written.push_back(key);
      if (after.contains(key) && random_.Chance(0.4)) {
        test_.Delete(key, txn);
        after.erase(key);
      } else {
        after[key] = std::string(random_.Below(test_.tree().image_bytes_max() + 1), static_cast<char>('a' + n));
        test_.Put(key, txn, after[key], &hints_);
      }
    }
    if (random_.Chance(0.3)) {
      for (auto key = written.rbegin(); key != written.rend(); ++key) test_.Restore(*key, txn);
      after = rows_;
    }
    rows_ = after;
    for (const Key key : written) {
      if (!rows_.contains(key) && random_.Chance(0.5)) test_.Purge(key);
    }
  }
  void CheckOwnRows() {
    const Key low = AnyKey();
    std::map<Key, std::string> seen;
    for (const auto& [key, image] : test_.Scan(low)) {
      if (key % load_.threads == index_) seen.emplace(key, image);
    }
    EXPECT_EQ(seen, (std::map<Key, std::string>(rows_.lower_bound(low), rows_.end())));
  }

  TreeUnderTest& test_;
  const Load load_;
  const uint32_t index_;
  Random random_;
  LeafHints hints_;  // which the splits of all threads make old
  std::map<Key, std::string> rows_;
};

void RunLoad(const Load& load) {
  SCOPED_TRACE("seed " + std::to_string(load.seed));
  TreeUnderTest test(load.frames);
  std::vector<Client> clients;
  for (uint32_t i = 0; i < load.threads; ++i) clients.emplace_back(test, load, i);
  {
    std::vector<Thread> threads;
    for (Client& client : clients) threads.emplace_back([&client] { client.Run(); });
  }
  std::map<Key, std::string> expected;
  for (const Client& client : clients) expected.insert(client.rows().begin(), client.rows().end());
  const reference::CheckedTree checked = test.CheckAll();
  EXPECT_EQ(PresentRows(checked), expected);
  EXPECT_EQ(checked.unposted, 0u);
  EXPECT_EQ(test.Scan(), expected);
  EXPECT_GT(test.tree().splits(), 40u);
}

TEST(PagedTreeRandomTest, OneThread) {
  for (uint64_t seed = 1; seed <= 4; ++seed) RunLoad({seed, 1, 800, 1000, 1024});
}

TEST(PagedTreeRandomTest, SeveralThreads) {
  for (uint64_t seed = 1; seed <= 6; ++seed) RunLoad({.seed = seed});
}

TEST(PagedTreeRandomTest, SeveralThreadsOverAPoolThatEvicts) {
  for (uint64_t seed = 1; seed <= 4; ++seed) RunLoad({.seed = seed, .transactions = 150, .frames = 24});
}

// All insert ascending keys at the right edge, where every split is.
TEST(PagedTreeRandomTest, SeveralThreadsAtTheRightEdge) {
  TreeUnderTest test;
  Atomic<uint64_t> next = 0;
  {
    std::vector<Thread> threads;
    for (uint32_t i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (Key key = next.fetch_add(1); key < 3000; key = next.fetch_add(1)) test.Put(key, key + 1, "row");
      });
    }
  }
  const reference::CheckedTree checked = test.CheckAll();
  EXPECT_EQ(checked.rows.size(), 3000u);
  EXPECT_EQ(checked.unposted, 0u);
}

}  // namespace
}  // namespace dbx::mm
