#include "system/runs/replication.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/host.h"
#include "base/stop.h"
#include "logging/replication/replica.h"
#include "logging/replication/tcp_channel.h"
#include "system/command_line/parse_replication.h"

namespace dbx {
namespace {

constexpr const char* kDefaultHost = "127.0.0.1";

void Say(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

void Warn(const std::string& text) { std::fprintf(stderr, "warning: %s\n", text.c_str()); }

std::string EndText(const Replica::Result& result, const Options& options) {
  if (result.directories.empty()) return "the run ended before it had files; there is no copy\n";
  const char* const why = StopRequested().load() ? "a signal ended the replica" : "the connection was lost";
  return fmt::format("copy of a run in {}: {} frames, {:.1f} MB; {}\n", fmt::join(result.directories, " and "),
                     result.frames, static_cast<double>(result.bytes) / 1e6,
                     result.clean ? "the run has ended"
                                  : fmt::format("{}; go on with: ./rundb-all --continue --log_dir={}", why,
                                                fmt::join(options.log_dirs, ",")));
}

// A failover continues the newest run that is there, which is to be the copy.
void CheckThatNoRunIsThere(FileSystem& files, const Options& options) {
  for (const std::string& directory : options.log_dirs) {
    for (const std::string& name : files.List(directory)) {
      if (!name.starts_with("run-")) continue;
      throw Error(ExitStatus::kMismatch,
                  directory + "/" + name + " is there already: name an empty --log_dir for the replica");
    }
  }
}

// Of one connection. False: it was no run's.
bool KeepCopy(const Options& options, FileSystem& files, TcpListener& listener) {
  constexpr uint64_t kHelloNanos = 10'000'000'000;
  std::optional<Replica> replica;
  uint64_t begin = 0;  // of the connection
  const auto channel = listener.Accept([&] { return StopRequested().load(); },
                                       [&] {
                                         const bool is_silent =
                                             !replica->has_begun() && host::MonotonicNanos() - begin > kHelloNanos;
                                         return StopRequested().load() || is_silent;
                                       });
  if (channel == nullptr) return false;
  begin = host::MonotonicNanos();
  replica.emplace(files, options.log_dirs, *channel, FlushInstructionNamed(options.flush).value());
  try {
    const Replica::Result result = replica->Run();
    if (!replica->has_begun()) return false;
    Say("replica: " + EndText(result, options));
    return true;
  } catch (const Error& e) {
    if (replica->has_begun()) throw;
    std::fprintf(stderr, "notice: a connection was no run's, or not this version's: %s\n", e.what());
    return false;
  }
}

}  // namespace

RunReplication::RunReplication(FileSystem& beneath, const Options& options) {
  const HostAndPort place = ParseHostAndPort(options.replicate_to, kDefaultHost);
  result_.synchronous = options.replication == "SYNC";
  result_.round_trip_ns = options.replica_round_trip_ns;
  result_.bytes_per_second = options.replica_bytes_per_second;
  stream_ = std::make_unique<ReplicaStream>(
      ConnectTcp(place.host, place.port), "the replica at " + options.replicate_to, result_.synchronous,
      LinkEmulation{result_.round_trip_ns, result_.bytes_per_second}, static_cast<uint32_t>(options.log_dirs.size()),
      result_.synchronous ? nullptr : Warn);
  stream_->AwaitApplied(ReplicaStream::kHello);
  if (const auto lost = stream_->lost()) throw Error(ExitStatus::kIo, *lost);
  files_ = std::make_unique<ReplicatedFileSystem>(beneath, options.log_dirs, *stream_);
}

ReplicationResult RunReplication::End() {
  stream_->End();
  const ReplicaStream::Counts counts = stream_->counts();
  result_.frames = counts.frames, result_.bytes = counts.bytes;
  result_.lost = stream_->lost().value_or("");
  return result_;
}

bool KeepReplica(const Options& options, FileSystem& files) {
  InstallStopHandlers();
  for (const std::string& directory : options.log_dirs) CreateDirectories(files, directory);
  CheckThatNoRunIsThere(files, options);
  const HostAndPort place = ParseHostAndPort(options.replica, kDefaultHost);
  TcpListener listener(place.host, place.port);
  Say(fmt::format("replica: listens at {}:{}\n", place.host, listener.port()));
  bool is_over = false;
  while (!is_over && !StopRequested().load()) is_over = KeepCopy(options, files, listener);
  return is_over && !StopRequested().load();
}

}  // namespace dbx
