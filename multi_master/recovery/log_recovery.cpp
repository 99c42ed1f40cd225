#include "multi_master/recovery/log_recovery.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "multi_master/log/flush_buffer.h"

namespace dbx::mm {
namespace {

// After which Stop is looked at.
constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::milliseconds kFenceTry{500};

LfbReaderOptions ReaderOptions(const LogRecoveryOptions& options) {
  LfbReaderOptions of_reader;
  of_reader.log = options.log;
  of_reader.salt = SaltOf(options.cluster.value(), options.log);
  of_reader.set = options.stores;
  return of_reader;
}

}  // namespace

LogRecovery::LogRecovery(Network& network, const LogRecoveryOptions& options)
    : options_(options),
      fence_(network, options.log, ClusterEpoch(options.epoch.value() + 1), options.stores),
      reader_(network, ReaderOptions(options)) {}

bool LogRecovery::OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) {
  if (type != kLogData) return fence_.OnMessage(from, type, body);
  const std::optional<LogMessage> message = DecodeLog(body);
  if (!message) return false;
  return message->log != options_.log || reader_.OnMessage(from, type, body);
}

std::optional<Lsn> LogRecovery::Fence() {
  while (!stopped_.load()) {
    if (const std::optional<Lsn> end = fence_.Run(kFenceTry)) return end;
    if (fence_.IsStale()) {
      throw Error(ExitStatus::kIo, "cannot seal the log of master " + std::to_string(options_.log.value()) +
                                       ": a later epoch or set of log stores has taken it over");
    }
  }
  return std::nullopt;
}

std::optional<DeadLog::Result> LogRecovery::Run() {
  const std::optional<Lsn> end = Fence();
  if (!end) return std::nullopt;
  seal_ = end->value();
  DeadLog log(options_.log, options_.epoch);
  while (!stopped_.load()) {
    const bool has_all = reader_.received() >= *end;
    std::optional<LfbGroup> group = reader_.Next(has_all ? std::chrono::milliseconds(0) : kLook);
    if (!group && has_all) return log.Finish();
    if (group) log.Take(DecodeFlush(options_.log, std::make_shared<const LfbGroup>(std::move(*group))));
  }
  return std::nullopt;
}

}  // namespace dbx::mm
