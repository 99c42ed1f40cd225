// The ELEDA worker over a stream that the test flushes: what its producers may learn, and when.
#include "logging/eleda/eleda_worker.h"

#include <gtest/gtest.h>

#include "tests/logging/device/faulty_file_system.h"

namespace dbx {
namespace {

class EledaWorkerTest : public ::testing::Test {
 protected:
  EledaWorkerTest() {
    auto device = files_.Create("log", {});
    std::vector<std::byte> header(format::kStreamOffset);
    device->StartWrite(0, header);
    device->Complete(true);
    stream_ = std::make_unique<LogStream>(0, 1234, 64 << 10, 64 << 10, 1, std::move(device), persistent_);
    worker_ = std::make_unique<EledaWorker>(*stream_, 1, 4096);
    stream_->SetTracker(*worker_);
    worker_->Start();
  }

  LogPlace Append(uint32_t bytes) {
    worker_->MakeSpace(0);
    const LogPlace place = stream_->ReserveTracked(0, bytes);
    stream_->FillVoid(0, place);
    worker_->Filled(0, place, true);
    return place;
  }
  void Flush() {
    stream_->AppendPad();
    stream_->CatchUp();
    stream_->StartFlush(1 << 20);
    stream_->CompleteFlush(true);
  }

  uint64_t persistent_ = 0;
  FaultyFileSystem files_;
  std::unique_ptr<LogStream> stream_;
  std::unique_ptr<EledaWorker> worker_;
};

TEST_F(EledaWorkerTest, CallsBackForWhatIsDurableAndNotForWhatIsBuffered) {
  const LogPlace place = Append(1000);
  stream_->CatchUp();
  ASSERT_EQ(worker_->FilledUntil(), place.end());
  worker_->CollectAll();
  EXPECT_EQ(worker_->callbacks(), 0u);
  Flush();
  worker_->CollectAll();
  worker_->CollectAll();
  EXPECT_EQ(worker_->callbacks(), 1u);
}

}  // namespace
}  // namespace dbx
