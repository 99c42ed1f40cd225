// Changes of pages: what each does and refuses, and their bytes.
#include "multi_master/page/page_change.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/random.h"

namespace dbx::mm {
namespace {

constexpr TreeId kTree{3};
constexpr MasterId kMaster{2};
constexpr TxnName kFirst{MasterId(2), ClusterEpoch(1), 10};
constexpr TxnName kSecond{MasterId(3), ClusterEpoch(1), 4};

std::span<const std::byte> AsBytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PutRow Pieces(Key key, const TxnName& writer, const std::string& pieces) {
  return {key, writer, true, 0, 0, AsBytes(pieces), true};
}

// A page to which changes are applied one after the other, each at the next time.
class PageUnderTest {
 public:
  explicit PageUnderTest(uint8_t level = 0, PageId right = PageId(), Key high_key = 0)
      : page_(std::make_unique<SlottedPage>()) {
    std::vector<std::byte> cells;
    if (level > 0) EncodeChild(0, PageId(50), cells);
    EXPECT_EQ(Do(FormatPage{kTree, level, right, high_key, static_cast<uint16_t>(level > 0 ? 1 : 0), cells}),
              ApplyStatus::kApplied);
  }
  PageChange Next(const Change& what) const {
    const PageLsn now = page_->lsn();
    return {PageId(7), {kMaster, VsTime(now.time.value() + 5)}, now, what};
  }
  ApplyStatus Do(const Change& what) {
    const SlottedPage before = *page_;
    const ApplyStatus status = Apply(*page_, Next(what));
    if (status != ApplyStatus::kApplied) {
      EXPECT_EQ(std::memcmp(before.bytes().data(), page_->bytes().data(), kPageBytes), 0) << "changed, though refused";
    } else {
      EXPECT_EQ(page_->WhyInvalid(PageId(7)), nullptr);
    }
    return status;
  }
  ApplyStatus Put(Key key, const TxnName& writer, const std::string& image) {
    return Do(MakePut(*page_, key, writer, AsBytes(image)));
  }
  RowView Row(Key key) const { return page_->RowAt(page_->Find(key).value()); }
  SlottedPage& page() { return *page_; }

 private:
  std::unique_ptr<SlottedPage> page_;
};

TEST(PageChangeTest, TheFirstWriteOfATransactionKeepsTheVersionBefore) {
  PageUnderTest leaf;
  EXPECT_EQ(leaf.Put(1, kFirst, "a"), ApplyStatus::kApplied);
  EXPECT_EQ(leaf.Put(1, kSecond, "b"), ApplyStatus::kApplied);
  EXPECT_EQ(leaf.Put(1, kSecond, "c"), ApplyStatus::kApplied);
  EXPECT_EQ(Text(leaf.Row(1).current.image), "c");
  EXPECT_EQ(leaf.Row(1).current.writer, kSecond);
  EXPECT_EQ(Text(leaf.Row(1).before.image), "a");
  EXPECT_EQ(leaf.Row(1).before.writer, kFirst);
}

TEST(PageChangeTest, RestoreUndoesAllThatItsWriterDid) {
  PageUnderTest leaf;
  leaf.Put(1, kFirst, "a");
  leaf.Put(1, kSecond, "b");
  EXPECT_EQ(leaf.Do(MakeDelete(1, kSecond)), ApplyStatus::kApplied);
  EXPECT_FALSE(leaf.Row(1).current.present);
  EXPECT_EQ(leaf.Do(RestoreRow{1, kFirst}), ApplyStatus::kWrongWriter);
  EXPECT_EQ(leaf.Do(RestoreRow{1, kSecond}), ApplyStatus::kApplied);
  EXPECT_EQ(Text(leaf.Row(1).current.image), "a");
  EXPECT_EQ(leaf.Row(1).current.writer, kFirst);
  EXPECT_EQ(leaf.Do(RestoreRow{1, kFirst}), ApplyStatus::kWrongWriter) << "nothing is kept before it";
  EXPECT_EQ(leaf.Do(RestoreRow{2, kFirst}), ApplyStatus::kNoSuchRow);
}

TEST(PageChangeTest, AnInsertThatIsUndoneLeavesADeletedRowThatCanBeRemoved) {
  PageUnderTest leaf;
  leaf.Put(1, kFirst, "a");
  EXPECT_EQ(leaf.Do(RemoveRow{1}), ApplyStatus::kRowThere);
  EXPECT_EQ(leaf.Do(RestoreRow{1, kFirst}), ApplyStatus::kApplied);
  EXPECT_FALSE(leaf.Row(1).current.present);
  EXPECT_EQ(leaf.Row(1).current.writer, TxnName());
  EXPECT_EQ(leaf.Do(RemoveRow{1}), ApplyStatus::kApplied);
  EXPECT_EQ(leaf.Do(RemoveRow{1}), ApplyStatus::kNoSuchRow);
}

TEST(PageChangeTest, AChangeFitsOneVersionOfOnePage) {
  PageUnderTest leaf;
  PageChange change = leaf.Next(MakeDelete(1, kFirst));
  change.page = PageId(8);
  EXPECT_EQ(Apply(leaf.page(), change), ApplyStatus::kWrongPage);
  change = leaf.Next(MakeDelete(1, kFirst));
  change.previous.master = MasterId(5);
  EXPECT_EQ(Apply(leaf.page(), change), ApplyStatus::kWrongVersion);
  change = leaf.Next(MakeDelete(1, kFirst));
  change.lsn.time = change.previous.time;
  EXPECT_EQ(Apply(leaf.page(), change), ApplyStatus::kWrongVersion);
  change = leaf.Next(MakeDelete(1, kFirst));
  EXPECT_EQ(Apply(leaf.page(), change), ApplyStatus::kApplied);
  EXPECT_EQ(Apply(leaf.page(), change), ApplyStatus::kWrongVersion) << "applied twice";
}

TEST(PageChangeTest, WhatDoesNotFitTheRowIsRefused) {
  PageUnderTest leaf(0, PageId(9), 100);
  leaf.Put(1, kFirst, "abc");
  EXPECT_EQ(leaf.Do(PutRow{1, kFirst, true, 2, 2, {}}), ApplyStatus::kIllegal) << "keeps more than there is";
  EXPECT_EQ(leaf.Do(PutRow{2, kFirst, true, 1, 0, {}}), ApplyStatus::kIllegal) << "of a row that is not there";
  EXPECT_EQ(leaf.Do(PutRow{1, kFirst, false, 1, 0, {}}), ApplyStatus::kIllegal) << "a deleted row with an image";
  EXPECT_EQ(leaf.Put(100, kFirst, "x"), ApplyStatus::kIllegal) << "right of the page";
  EXPECT_EQ(leaf.Put(5, TxnName(), "x"), ApplyStatus::kIllegal) << "no writer";
  const std::string large(kImageBytesMax + 1, 'x');
  EXPECT_EQ(leaf.Do(PutRow{5, kFirst, true, 0, 0, AsBytes(large)}), ApplyStatus::kIllegal);
  EXPECT_EQ(leaf.Do(InsertChild{5, PageId(4)}), ApplyStatus::kIllegal) << "a child on a leaf";
}

TEST(PageChangeTest, AFullPageRefusesARow) {
  PageUnderTest leaf;
  const std::string large(kImageBytesMax, 'x');
  Key key = 0;
  while (leaf.Put(key, kFirst, large) == ApplyStatus::kApplied) ++key;
  EXPECT_EQ(leaf.Put(key, kFirst, large), ApplyStatus::kNoRoom);
  EXPECT_EQ(key, 7u);
}

TEST(PageChangeTest, InnerPagesTakeChildrenOnce) {
  PageUnderTest inner(1, PageId(9), 100);
  EXPECT_EQ(inner.Do(InsertChild{40, PageId(51)}), ApplyStatus::kApplied);
  EXPECT_EQ(inner.Do(InsertChild{40, PageId(52)}), ApplyStatus::kRowThere);
  EXPECT_EQ(inner.Do(InsertChild{100, PageId(52)}), ApplyStatus::kIllegal);
  EXPECT_EQ(inner.Do(InsertChild{50, PageId(7)}), ApplyStatus::kIllegal) << "its own child";
  EXPECT_EQ(inner.page().ChildAt(inner.page().ChildSlotOf(39)), PageId(50));
  EXPECT_EQ(inner.page().ChildAt(inner.page().ChildSlotOf(99)), PageId(51));
  EXPECT_EQ(inner.Put(1, kFirst, "a"), ApplyStatus::kIllegal) << "a row on an inner page";
}

TEST(PageChangeTest, SplitsLeaveValidPages) {
  PageUnderTest inner(1);
  inner.Do(InsertChild{40, PageId(51)});
  EXPECT_EQ(inner.Do(SplitLeft{0, PageId(9)}), ApplyStatus::kIllegal) << "nothing is left";
  EXPECT_EQ(inner.Do(SplitLeft{40, PageId(7)}), ApplyStatus::kIllegal) << "its own neighbour";
  EXPECT_EQ(inner.Do(SplitLeft{40, PageId(9)}), ApplyStatus::kApplied);
  EXPECT_EQ(inner.Do(SplitLeft{40, PageId(10)}), ApplyStatus::kIllegal) << "right of the page";
  EXPECT_EQ(inner.Do(SplitRoot{PageId(1), PageId(2), 5}), ApplyStatus::kIllegal) << "not a root";
  PageUnderTest root;
  EXPECT_EQ(root.Do(SplitRoot{PageId(1), PageId(1), 5}), ApplyStatus::kIllegal);
  EXPECT_EQ(root.Do(SplitRoot{PageId(1), PageId(2), 5}), ApplyStatus::kApplied);
  EXPECT_EQ(root.page().level(), 1);
}

TEST(PageChangeTest, AFormatIsCheckedAsAPage) {
  std::vector<std::byte> cells;
  EncodeRow({5, {TxnName(), true, {}}, false, {}}, cells);
  EncodeRow({4, {TxnName(), true, {}}, false, {}}, cells);
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(), 0, 2, cells})) << "keys do not ascend";
  const auto first = std::span<const std::byte>(cells).first(kRowCellBytes);
  EXPECT_TRUE(IsWellFormed(PageId(7), {kTree, 0, PageId(8), 6, 1, first}));
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(8), 5, 1, first})) << "at the high key";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(8), 0, 1, first})) << "a link without a high key";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(7), 6, 1, first})) << "its own neighbour";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(), 0, 2, first})) << "a cell is missing";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 0, PageId(), 0, 1, cells})) << "bytes behind the cells";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, 1, PageId(), 0, 0, {}})) << "an inner page without children";
  EXPECT_FALSE(IsWellFormed(PageId(7), {kTree, kLevelsMax, PageId(), 0, 0, {}}));
}

TEST(PageChangeTest, GrowthIsWhatThePageGrowsBy) {
  Random random(5);
  PageUnderTest leaf;
  for (uint32_t i = 0; i < 400; ++i) {
    const Key key = random.Below(20);
    const TxnName writer{MasterId(1), ClusterEpoch(1), random.Between(1, 3)};
    const std::string image(random.Below(60), 'x');
    const PutRow put = MakePut(leaf.page(), key, writer, AsBytes(image));
    const auto before = static_cast<int64_t>(leaf.page().bytes_used());
    const int64_t growth = GrowthOf(leaf.page(), put);
    ASSERT_EQ(leaf.Do(put), ApplyStatus::kApplied);
    ASSERT_EQ(static_cast<int64_t>(leaf.page().bytes_used()), before + growth);
    if (random.Chance(0.2)) leaf.Do(RestoreRow{key, writer});
  }
}

TEST(PageChangeTest, AFormatThatIsNoPageIsRefused) {
  PageUnderTest leaf;
  EXPECT_EQ(leaf.Do(FormatPage{kTree, 1, PageId(), 0, 0, {}}), ApplyStatus::kIllegal);
  EXPECT_EQ(leaf.Do(FormatPage{kTree, 0, PageId(7), 5, 0, {}}), ApplyStatus::kIllegal);
}

// --- Bytes ---

PageChange At(PageId page, const Change& what, uint64_t time = 20) {
  return {page, {kMaster, VsTime(time)}, {MasterId(1), VsTime(9)}, what};
}

// Behind one byte that is kept "xy".
const std::string kPiece{"\1\0\2\0xy", 6};

std::vector<PageChange> OneOfEachKind(const std::string& middle, const std::vector<std::byte>& cells) {
  return {At(PageId(7), FormatPage{kTree, 0, PageId(9), 600, 1, cells}),
          At(PageId(7), PutRow{1, kFirst, true, 2, 3, AsBytes(middle)}, 21),
          At(PageId(7), RestoreRow{1, kSecond}, 22),
          At(PageId(8), RemoveRow{5}, 23),
          At(PageId(8), SplitLeft{60, PageId(10)}, 24),
          At(PageId(8), SplitRoot{PageId(11), PageId(12), 30}, 25),
          At(PageId(8), InsertChild{70, PageId(13)}, 26),
          At(PageId(8), Pieces(1, kFirst, kPiece), 27)};
}

std::vector<std::byte> SampleBody() {
  const std::string image = "image";
  std::vector<std::byte> cells;
  EncodeRow({77, {kFirst, true, AsBytes(image)}, true, {kSecond, false, {}}}, cells);
  return EncodePages(OneOfEachKind("middle", cells));
}

TEST(PagesRecordTest, WhatIsWrittenIsRead) {
  const std::vector<std::byte> body = SampleBody();
  const auto changes = DecodePages(body);
  ASSERT_TRUE(changes.has_value());
  ASSERT_EQ(changes->size(), 8u);
  EXPECT_EQ((*changes)[1].lsn, (PageLsn{kMaster, VsTime(21)}));
  EXPECT_EQ((*changes)[1].previous, (PageLsn{MasterId(1), VsTime(9)}));
  const auto& put = std::get<PutRow>((*changes)[1].what);
  EXPECT_EQ(put.writer, kFirst);
  EXPECT_EQ(Text(put.middle), "middle");
  EXPECT_EQ(put.suffix_bytes, 3u);
  EXPECT_EQ(std::get<SplitRoot>((*changes)[5].what).right, PageId(12));
  EXPECT_EQ(Text(std::get<PutRow>((*changes)[7].what).middle), kPiece);
  EXPECT_EQ(EncodePages(*changes), body);
}

// multi_master.md, 14.19: at most 64 bytes of a record beyond the bytes that change.
TEST(PagesRecordTest, AChangeAddsAtMost56BytesToItsOwn) {
  const std::string bytes = "0123456789";
  size_t largest = 0;
  for (const PageChange& change : OneOfEachKind(bytes, {})) {
    const auto* put = std::get_if<PutRow>(&change.what);
    const size_t own = put == nullptr ? 0 : put->in_pieces ? 2 : bytes.size();
    largest = std::max(largest, EncodePages(std::span(&change, 1)).size() - own);
  }
  EXPECT_EQ(largest, kPagesHeadBytes + kChangeBytesMax);
  EXPECT_LE(largest, 64u);
}

TEST(PagesRecordTest, AnUpdateCarriesOnlyTheBytesThatDiffer) {
  PageUnderTest leaf;
  leaf.Put(1, kFirst, "aaaaBBaaaa");
  const std::string image = "aaaaCCaaaa";
  const PutRow put = MakePut(leaf.page(), 1, kSecond, AsBytes(image));
  EXPECT_EQ(Text(put.middle), "CC");
  leaf.Do(put);
  EXPECT_EQ(Text(leaf.Row(1).current.image), image);
  EXPECT_TRUE(MakePut(leaf.page(), 1, kSecond, AsBytes(image)).middle.empty());
}

TEST(PagesRecordTest, AnUpdateOfSomeColumnsCarriesTheirBytesAlone) {
  PageUnderTest leaf;
  const std::string old(100, 'a');
  std::string image = old;
  image.replace(0, 3, "bcd").replace(50, 2, "ef").replace(55, 1, "g").replace(99, 1, "h");
  PieceBuffer pieces;
  leaf.Put(1, kFirst, old);
  const PutRow write = MakePut(leaf.page(), 1, kSecond, AsBytes(image), pieces);
  ASSERT_TRUE(write.in_pieces);
  EXPECT_EQ(write.middle.size(), 3u * 4 + 3 + 6 + 1) << "a gap of 3 bytes costs less than a piece";
  EXPECT_EQ(leaf.Do(write), ApplyStatus::kApplied);
  EXPECT_EQ(Text(leaf.Row(1).current.image), image);
  EXPECT_EQ(leaf.Row(1).current.writer, kSecond);
  EXPECT_EQ(Text(leaf.Row(1).before.image), old);
  EXPECT_EQ(leaf.Row(1).before.writer, kFirst);
}

// Whatever rows and images: a write leaves what a put of the whole image leaves.
TEST(PageChangeTest, AWriteByPiecesLeavesWhatAPutLeaves) {
  Random random(11);
  PageUnderTest by_put, by_pieces;
  size_t patches = 0;
  for (uint32_t i = 0; i < 5'000; ++i) {
    const Key key = random.Below(8);
    const TxnName writer{MasterId(1), ClusterEpoch(1), random.Between(1, 3)};
    const auto slot = by_put.page().Find(key);
    std::string image = slot ? Text(by_put.Row(key).current.image) : "";
    if (image.empty() || random.Chance(0.1)) image = std::string(random.Below(200), 'x');
    for (uint64_t n = image.empty() ? 0 : random.Below(12); n > 0; --n) image[random.Below(image.size())] ^= 1;
    PieceBuffer pieces;
    const PutRow write = MakePut(by_pieces.page(), key, writer, AsBytes(image), pieces);
    const auto before = static_cast<int64_t>(by_pieces.page().bytes_used());
    const int64_t growth = GrowthOf(by_pieces.page(), write);
    ASSERT_EQ(growth, GrowthOf(by_pieces.page(), key, writer, image.size()));
    patches += write.in_pieces;
    ASSERT_EQ(by_put.Put(key, writer, image), ApplyStatus::kApplied);
    ASSERT_EQ(by_pieces.Do(write), ApplyStatus::kApplied);
    ASSERT_EQ(static_cast<int64_t>(by_pieces.page().bytes_used()), before + growth);
    const RowView a = by_put.Row(key), b = by_pieces.Row(key);
    ASSERT_EQ(Text(a.current.image), Text(b.current.image));
    ASSERT_EQ(Text(a.before.image), Text(b.before.image));
    ASSERT_EQ(a.current.writer, b.current.writer);
    ASSERT_EQ(a.before.writer, b.before.writer);
    ASSERT_EQ(a.before.present, b.before.present);
    const Change undo = random.Chance(0.5) ? Change(RestoreRow{key, writer}) : Change(MakeDelete(key, writer));
    if (random.Chance(0.2)) {
      ASSERT_EQ(by_put.Do(undo), by_pieces.Do(undo));
    }
  }
  EXPECT_GT(patches, 1'000u);
}

TEST(PageChangeTest, APatchThatDoesNotFitTheRowIsRefused) {
  PageUnderTest leaf(0, PageId(9), 100);
  leaf.Put(1, kFirst, "abc");
  EXPECT_EQ(leaf.Do(Pieces(2, kFirst, kPiece)), ApplyStatus::kNoSuchRow);
  EXPECT_EQ(leaf.Do(Pieces(1, TxnName(), kPiece)), ApplyStatus::kIllegal) << "no writer";
  EXPECT_EQ(leaf.Do(Pieces(100, kFirst, kPiece)), ApplyStatus::kIllegal) << "right of the page";
  const std::string behind{"\2\0\2\0xy", 6}, torn{"\1\0\3\0xy", 6}, empty{"\1\0\0\0", 4}, head{"\1\0\1", 3};
  for (const std::string& pieces : {behind, torn, empty, head}) {
    EXPECT_EQ(leaf.Do(Pieces(1, kFirst, pieces)), ApplyStatus::kIllegal);
  }
  EXPECT_EQ(leaf.Do(Pieces(1, kSecond, kPiece)), ApplyStatus::kApplied);
  EXPECT_EQ(Text(leaf.Row(1).current.image), "axy");
  leaf.Do(MakeDelete(1, kSecond));
  EXPECT_EQ(leaf.Do(Pieces(1, kSecond, "")), ApplyStatus::kIllegal) << "a deleted row";
}

TEST(PagesRecordTest, BodiesThatEndEarlyOrLateAreRefused) {
  std::vector<std::byte> body = SampleBody();
  for (size_t length = 0; length < body.size(); ++length) {
    EXPECT_FALSE(DecodePages(std::span<const std::byte>(body).first(length))) << length;
  }
  body.push_back(std::byte{0});
  EXPECT_FALSE(DecodePages(body));
}

// A body is what EncodePages makes of its changes, or it is refused; and no change leaves an invalid page.
TEST(PagesRecordTest, DamagedBodiesAreRefusedOrSafe) {
  const std::vector<std::byte> body = SampleBody();
  Random random(3);
  size_t decoded = 0, applied = 0;
  for (uint32_t i = 0; i < 50'000; ++i) {
    std::vector<std::byte> damaged = body;
    for (uint64_t n = random.Between(1, 3); n > 0; --n) {
      damaged[random.Below(damaged.size())] = std::byte{static_cast<uint8_t>(random.Next())};
    }
    auto changes = DecodePages(damaged);
    if (!changes) continue;
    ++decoded;
    ASSERT_EQ(EncodePages(*changes), damaged);
    PageUnderTest page(static_cast<uint8_t>(random.Below(2)), PageId(90), 700);
    for (PageChange& change : *changes) applied += page.Do(change.what) == ApplyStatus::kApplied;
    if (HasFailure()) return;
  }
  EXPECT_GT(decoded, 1'000u);
  EXPECT_GT(applied, 1'000u);
}

TEST(StampTest, ChangesOfOnePageFollowOneAnother) {
  VsClock clock(kMaster);
  clock.OnGrant({MasterId(1), VsTime(9)}, {});
  std::vector<PageChange> changes = {At(PageId(7), RemoveRow{1}), At(PageId(8), RemoveRow{1}),
                                     At(PageId(7), RemoveRow{2})};
  StampChanges(clock, changes);
  EXPECT_EQ(changes[0].previous, (PageLsn{MasterId(1), VsTime(9)}));
  EXPECT_EQ(changes[1].lsn.time.value(), changes[0].lsn.time.value() + 1);
  EXPECT_EQ(changes[2].previous, changes[0].lsn);
  EXPECT_EQ(changes[2].lsn, (PageLsn{kMaster, clock.now()}));
}

}  // namespace
}  // namespace dbx::mm
