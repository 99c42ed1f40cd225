#include "system/runs/replication.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

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

std::string EndText(const Replica::Result& result, const Options& options) {
  if (result.directories.empty()) return "the run ended before it had files; there is no copy\n";
  return fmt::format("copy of a run in {}: {} frames, {:.1f} MB; {}\n", fmt::join(result.directories, " and "),
                     result.frames, static_cast<double>(result.bytes) / 1e6,
                     result.clean ? "the run has ended"
                                  : fmt::format("the connection was lost; go on with: ./rundb-all --continue "
                                                "--log_dir={}",
                                                fmt::join(options.log_dirs, ",")));
}

}  // namespace

RunReplication::RunReplication(FileSystem& beneath, const Options& options) {
  const HostAndPort place = ParseHostAndPort(options.replicate_to, kDefaultHost);
  result_.synchronous = options.replication == "SYNC";
  result_.round_trip_ns = options.replica_round_trip_ns;
  result_.bytes_per_second = options.replica_bytes_per_second;
  stream_ = std::make_unique<ReplicaStream>(
      ConnectTcp(place.host, place.port), "the replica at " + options.replicate_to, result_.synchronous,
      LinkEmulation{result_.round_trip_ns, result_.bytes_per_second}, static_cast<uint32_t>(options.log_dirs.size()));
  files_ = std::make_unique<ReplicatedFileSystem>(beneath, options.log_dirs, *stream_);
}

ReplicationResult RunReplication::End() {
  stream_->End();
  const ReplicaStream::Counts counts = stream_->counts();
  result_.frames = counts.frames, result_.bytes = counts.bytes;
  result_.lost = stream_->lost().value_or("");
  if (!result_.lost.empty()) std::fprintf(stderr, "warning: %s\n", result_.lost.c_str());
  return result_;
}

bool KeepReplica(const Options& options, FileSystem& files) {
  InstallStopHandlers();
  for (const std::string& directory : options.log_dirs) CreateDirectories(files, directory);
  const HostAndPort place = ParseHostAndPort(options.replica, kDefaultHost);
  TcpListener listener(place.host, place.port);
  Say(fmt::format("replica: listens at {}:{}\n", place.host, listener.port()));
  const auto channel = listener.Accept([] { return StopRequested().load(); });
  if (channel == nullptr) return false;
  Replica replica(files, options.log_dirs, *channel, FlushInstructionNamed(options.flush).value());
  const Replica::Result result = replica.Run();
  Say("replica: " + EndText(result, options));
  return result.clean || !StopRequested().load();
}

}  // namespace dbx
