#include "system/runs/run_traces.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "system/runs/file_header.h"
#include "system/runs/log_directory.h"

namespace dbx {
namespace {

// Where the first byte from `from` on lies that is not zero.
std::optional<uint64_t> FirstWritten(BlockDevice& device, uint64_t from) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  std::vector<std::byte> piece(kPieceBytes);
  for (uint64_t at = from;; at += piece.size()) {
    const auto end = piece.begin() + static_cast<ptrdiff_t>(device.Read(at, piece));
    const auto found = std::find_if(piece.begin(), end, [](std::byte byte) { return byte != std::byte{0}; });
    if (found != end) return at + static_cast<uint64_t>(found - piece.begin());
    if (end != piece.end()) return std::nullopt;
  }
}

std::optional<format::FileHeader> IntactHeader(BlockDevice& device) {
  try {
    return ReadHeader(device);
  } catch (const Error& error) {
    if (error.status() != ExitStatus::kCorrupt) throw;
    return std::nullopt;
  }
}

bool IsWitness(const std::string& name) {
  return name == kCommittedFileName || name == kManifestFileName || name == kFrozenFileName ||
         name == kSuccessorFileName;
}

// A file, and where what it holds besides headers begins.
struct Stream {
  std::string path;
  uint64_t begin;
};

// Whether a log has its temporary name and not its own.
bool IsUnfinished(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
    const std::string suffix = TemporaryName("");
    if (!path.ends_with(suffix)) return false;
    const std::string name = path.substr(0, path.size() - suffix.size());
    return LogIndexOf(BaseNameOf(name)) && std::find(paths.begin(), paths.end(), name) == paths.end();
  });
}

// Of the logs below `count`, whether each is there under its own name or its temporary one.
bool AreAllThere(const std::vector<std::string>& paths, uint32_t count) {
  std::set<std::string> names;
  for (const std::string& path : paths) names.insert(BaseNameOf(path));
  for (uint32_t i = 0; i < count; ++i) {
    if (!names.contains(LogFileName(i)) && !names.contains(TemporaryName(LogFileName(i)))) return false;
  }
  return true;
}

// The headers of the logs among `paths`. Puts what is to be looked through for anything written into `streams`.
RunHeaders HeadersOf(FileSystem& files, const std::vector<std::string>& paths, std::vector<Stream>& streams,
                     std::string& damaged_log) {
  bool any = false, fresh = false;
  uint32_t log_count = 0;
  for (const std::string& path : paths) {
    if (!LogIndexOf(BaseNameOf(path))) continue;
    any = true;
    if (const auto header = IntactHeader(*files.Open(path))) {
      fresh |= !Continues(*header);
      log_count = std::max<uint32_t>(log_count, header->log_count);
      streams.push_back({path, format::kStreamOffset});
    } else if (damaged_log.empty()) {
      damaged_log = path;
    }
  }
  if (!any) return RunHeaders::kNone;
  if (!damaged_log.empty()) return RunHeaders::kDamaged;
  if (!AreAllThere(paths, log_count)) return RunHeaders::kIncomplete;
  if (fresh) return IsUnfinished(paths) ? RunHeaders::kUnfinished : RunHeaders::kFresh;
  return RunHeaders::kContinuing;
}

}  // namespace

RunTraces TracesOf(FileSystem& files, const std::vector<std::string>& run_directories) {
  const std::vector<std::string> paths = FilesOfRun(files, run_directories);
  RunTraces traces;
  traces.has_witness =
      std::any_of(paths.begin(), paths.end(), [](const auto& path) { return IsWitness(BaseNameOf(path)); });
  if (traces.has_witness) return traces;
  std::vector<Stream> streams;
  traces.headers = HeadersOf(files, paths, streams, traces.damaged_log);
  if (StateOf(false, traces.headers, false) != RunState::kNeverServed) return traces;
  for (const std::string& path : paths) {
    if (BaseNameOf(path) == kFrontierFileName) streams.push_back({path, sizeof(format::FrontierBlock)});
  }
  for (const Stream& stream : streams) {
    const std::optional<uint64_t> written = FirstWritten(*files.Open(stream.path), stream.begin);
    if (!written) continue;
    traces.has_stream = true;
    traces.written_at = stream.path + "@" + std::to_string(*written);
    break;
  }
  return traces;
}

bool WasNeverServed(FileSystem& files, const std::vector<std::string>& run_directories) {
  const RunTraces traces = TracesOf(files, run_directories);
  const RunState state = StateOf(traces.has_witness, traces.headers, traces.has_stream);
  if (state != RunState::kDamaged) return state == RunState::kNeverServed;
  if (!traces.damaged_log.empty()) {
    throw Error(ExitStatus::kCorrupt,
                "cannot recover " + traces.damaged_log +
                    "@0: neither copy of the log's header is intact; if a crash cut short its creation by an "
                    "older version, delete the run by hand");
  }
  throw Error(ExitStatus::kCorrupt,
              "cannot recover " + traces.written_at + ": something was written here, and no log has its name");
}

}  // namespace dbx
