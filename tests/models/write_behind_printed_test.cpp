// Write-behind logging as the paper prints it (section 4.3, Figures 3, 11 and 12): versions with begin and end
// timestamps and a reference to the previous version, an index entry that leads to the newest, and a gap with which a
// version's begin is compared.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <vector>

namespace dbx::models::write_behind {
namespace {

constexpr int kNever = 1'000'000;
constexpr int kLoser = 5;  // the stamp of a transaction that updates x, which was in progress
// The last record is (4, 9).
constexpr bool InGap(int stamp) { return stamp > 4 && stamp < 9; }

// The words that the update stores; each may have reached memory or not.
enum Word { kHead, kOldEnd, kNewBegin, kNewPrevious, kNewData, kWords };
using Kept = std::array<bool, kWords>;

struct Version {
  int begin, end;
  bool has_previous, is_new_data;
};

// How often x is visible to a transaction after the restart, and whether it is the old x.
struct Visible {
  int times = 0;
  bool old = false;
};

struct Rules {
  bool ends_are_compared = false;  // an end in the gap counts as no end
  bool fenced = false;             // the version's begin and previous are durable before the head leads to it
};

Visible Read(const Kept& kept, const Rules& rules) {
  const Version old{1, kept[kOldEnd] ? kLoser : kNever, false, false};
  const Version fresh{kept[kNewBegin] ? kLoser : 0, kNever, kept[kNewPrevious], kept[kNewData]};
  Visible visible;
  const auto visit = [&](const Version& version, bool is_old) {
    const int end = rules.ends_are_compared && InGap(version.end) ? kNever : version.end;
    if (version.begin == kNever || InGap(version.begin) || version.begin > 50 || end <= 50) return;
    ++visible.times;
    visible.old = is_old;
  };
  if (kept[kHead]) visit(fresh, false);
  if (!kept[kHead] || fresh.has_previous) visit(old, true);
  return visible;
}

// Of the images that a crash may leave, how many lose x or show it twice.
int Wrong(const Rules& rules, int& images) {
  int wrong = 0;
  images = 0;
  for (unsigned bits = 0; bits < 1u << kWords; ++bits) {
    Kept kept;
    for (int word = 0; word < kWords; ++word) kept[static_cast<size_t>(word)] = (bits >> word & 1) != 0;
    if (rules.fenced && kept[kHead] && !(kept[kNewBegin] && kept[kNewPrevious])) continue;
    ++images;
    const Visible visible = Read(kept, rules);
    wrong += visible.times != 1 || !visible.old;
  }
  return wrong;
}

TEST(WriteBehindPrinted, AGapThatIsComparedWithBeginAloneLosesOrDoublesTheRow) {
  int images = 0;
  EXPECT_EQ(Wrong({}, images), 22);
  EXPECT_EQ(images, 32);
}

TEST(WriteBehindPrinted, ComparedWithEndTooItStillDoesWhereTheHeadArrivesFirst) {
  int images = 0;
  EXPECT_EQ(Wrong({.ends_are_compared = true}, images), 12);
  EXPECT_EQ(images, 32);
}

TEST(WriteBehindPrinted, WithAFenceBeforeTheHeadItHolds) {
  int images = 0;
  EXPECT_EQ(Wrong({.ends_are_compared = true, .fenced = true}, images), 0);
  EXPECT_EQ(images, 20);
}

// "Earlier than c_p" is committed, "later than c_p and earlier than c_d" is ignored; c_d is "not higher than" what may
// be issued (Fig. 11).
TEST(WriteBehindPrinted, TwoStampsAreNeitherCommittedNorIgnored) {
  const auto is_committed = [](int stamp) { return stamp < 4; };
  EXPECT_FALSE(is_committed(4) || InGap(4)) << "c_p itself";
  EXPECT_FALSE(is_committed(9) || InGap(9)) << "c_d, which may be issued";
}

// A restart that logs nothing before it serves: the next life draws 10, which reaches memory; the record is (4, 9).
TEST(WriteBehindPrinted, AStampOfALifeWithoutARecordIsInNoGap) { EXPECT_FALSE(InGap(10)); }

}  // namespace
}  // namespace dbx::models::write_behind
