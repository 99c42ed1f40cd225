// What a record of changes holds of the rows that its transaction wrote.
#include "logging/instant/row_change_payload.h"

#include <gtest/gtest.h>

#include <numeric>

#include "storage/database.h"

namespace dbx {
namespace {

constexpr uint32_t kTupleBytes = 21;

// A transaction that has changed one row.
struct OneChange {
  LoggedChange change;
  void ForEachChange(auto&& visit) const { visit(change); }
};

class RowChangePayloadTest : public ::testing::Test {
 protected:
  RowChangePayloadTest() { std::iota(image_.begin(), image_.end(), 'a'); }

  RowChange Encoded(bool was_present, bool deleted, std::vector<ByteRange> ranges) {
    const OneChange txn{{&table_, 7, deleted, was_present, reinterpret_cast<const std::byte*>(image_.data()),
                         reinterpret_cast<Meta>(&meta_), ranges}};
    bytes_.assign(RowChangePayload::Bytes(txn) + 1, std::byte{0xEE});
    RowChangePayload::Encode(txn, bytes_.data());
    EXPECT_EQ(bytes_.back(), std::byte{0xEE}) << "it wrote more than it said";
    const std::span<const std::byte> body(bytes_.data(), bytes_.size() - 1);
    RowChanges changes(body);
    RowChange change;
    EXPECT_TRUE(changes.Next(change));
    EXPECT_TRUE(Fits(change, kTupleBytes));
    RowChange none;
    EXPECT_FALSE(changes.Next(none) || changes.malformed());
    return change;
  }

  Database database_{{.log_bytes = sizeof(RowLink)}, 1};
  Table& table_ = database_.CreateTable({.name = "T", .columns = {}, .tuple_bytes = kTupleBytes, .expected_rows = 8});
  std::string image_ = std::string(kTupleBytes, ' ');
  RowLink meta_{Lsn(128)};
  std::vector<std::byte> bytes_;
};

TEST_F(RowChangePayloadTest, AnInsertHoldsTheTuple) {
  const RowChange change = Encoded(false, false, {});
  EXPECT_EQ(change.op, format::RowChangeOp::kInsert);
  EXPECT_EQ(std::memcmp(change.bytes.data(), image_.data(), kTupleBytes), 0);
}

TEST_F(RowChangePayloadTest, ADeleteHoldsNothing) {
  EXPECT_EQ(Encoded(true, true, {{0, 8}}).op, format::RowChangeOp::kDelete);
  EXPECT_EQ(Encoded(false, true, {}).op, format::RowChangeOp::kDelete);
}

TEST_F(RowChangePayloadTest, AnUpdateHoldsTheChangedRangesUpToTheLastByte) {
  const RowChange change = Encoded(true, false, {{0, 1}, {13, kTupleBytes}});
  EXPECT_EQ(change.op, format::RowChangeOp::kUpdate);
  std::string tuple(kTupleBytes, '.');
  ApplyTo(reinterpret_cast<std::byte*>(tuple.data()), kTupleBytes, change);
  EXPECT_EQ(tuple, "a............" + image_.substr(13));
}

TEST_F(RowChangePayloadTest, ItNamesTheRowsPreviousRecord) {
  EXPECT_EQ(Encoded(true, false, {{0, 1}}).previous, RowLink(Lsn(128)));
  meta_ = RowLink();
  EXPECT_TRUE(Encoded(true, false, {{0, 1}}).previous.is_none());
}

}  // namespace
}  // namespace dbx
