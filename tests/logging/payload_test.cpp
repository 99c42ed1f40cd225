// A record has the bytes that its log's traits promise, and beside them only what its transaction brings.
#include "logging/payload.h"

#include <gtest/gtest.h>

#include "tests/concurrency_control/harness.h"

namespace dbx::testing {
namespace {

template <class Log>
class RecordOf : public ::testing::Test {};
using Logs = ::testing::Types<SerialLog<CommandPayload>, SerialLog<VersionedCommandPayload>, SerialLog<DataPayload>,
                              TaurusLog<CommandPayload>, TaurusLog<VersionedCommandPayload>, TaurusLog<DataPayload>>;
TYPED_TEST_SUITE(RecordOf, Logs);

TYPED_TEST(RecordOf, ATransactionIsItsFixedBytesAndItsArgumentsOrImages) {
  constexpr LogTraits kTraits = TypeParam::kTraits;
  using Cc = std::conditional_t<kTraits.needs_multi_version, Hekaton<TypeParam>, NoWaitRows<TypeParam>>;
  Harness<Cc, TypeParam> h(1);
  h.LoadRow(1, 0);
  ASSERT_TRUE(h.Write(0, 1, 5).wrote);
  constexpr size_t kArgumentBytes = sizeof(uint64_t);  // behind the transaction id
  const size_t own_bytes =
      kTraits.payload == PayloadKind::kData ? DataPayload::ImageBytes(h.table(), false) : kArgumentBytes;
  EXPECT_EQ(h.state(0).place.bytes, kTraits.fixed_bytes + own_bytes);
}

}  // namespace
}  // namespace dbx::testing
