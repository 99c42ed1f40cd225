// How close an emulated device is to its profile on this host, next to the directory's own performance.
//
//   emulated_device_bench --dir DIR --log_device DEVICE [--seconds S]
//
// All I/O uses the file system of a run. A figure that is off by much means that the directory is too slow for the
// profile, or the host's timers are; short flushes suffer first.
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "logging/device/emulated_file_system.h"
#include "logging/device/posix_file_system.h"
#include "system/command_line/parse_device.h"
#include "system/command_line/parse_value.h"

namespace dbx {
namespace {

constexpr size_t kBlockBytes = 4096;
constexpr size_t kWriteBytes = size_t{512} << 10;
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kWritesInFlight = 8;
constexpr double kOffMax = 0.05;

struct Settings {
  std::string directory;
  std::string device;
  double seconds = 1;  // per figure, about
};

struct FreeDeleter {
  void operator()(std::byte* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::byte, FreeDeleter>;

Buffer MakeBuffer(size_t bytes) {
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, bytes)));
  if (!buffer) throw Error(ExitStatus::kNoSpace, "no memory for an I/O buffer");
  std::fill_n(buffer.get(), bytes, std::byte{0x5A});
  return buffer;
}

double SecondsOf(const std::function<void()>& action) {
  const uint64_t begin = Clock::MonotonicNanos();
  action();
  return static_cast<double>(Clock::MonotonicNanos() - begin) * 1e-9;
}

// Two files for each figure, deleted at the end.
class Bench {
 public:
  Bench(const Settings& settings, FileSystem& files, const DeviceProfile& profile, const std::string& name)
      : settings_(settings), files_(files), profile_(profile), name_(name), data_(MakeBuffer(kWriteBytes)) {
    // Timed sleeps end on time, as a log writer's do.
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
  }
  ~Bench() {
    for (const std::string& path : paths_) ::unlink(path.c_str());
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Bytes per second of large writes, eight in flight, by `threads` files at once.
  double WriteRate(unsigned threads) {
    const size_t writes = Count(Rate(), kWriteBytes) / threads;
    std::vector<std::unique_ptr<BlockDevice>> open;
    for (unsigned i = 0; i < threads; ++i) open.push_back(Create(writes * kWriteBytes));
    const double seconds = SecondsOf([&] {
      std::vector<std::jthread> running;
      for (const auto& file : open) running.emplace_back([&] { Write(*file, writes, kWriteBytes, kWritesInFlight); });
    });
    return static_cast<double>(threads * writes * kWriteBytes) / seconds;
  }

  // Seconds per durable write of a block, in turn to `count` files.
  double FlushSeconds(size_t count, double expected_seconds) {
    const auto writes = static_cast<size_t>(std::clamp(settings_.seconds / expected_seconds, 20.0, 100'000.0));
    std::vector<std::unique_ptr<BlockDevice>> open;
    for (size_t i = 0; i < count; ++i) open.push_back(Create((writes + 1) * kBlockBytes));
    const double seconds = SecondsOf([&] {
      for (size_t i = 0; i < writes; ++i) {
        BlockDevice& file = *open[i % count];
        file.StartWrite(i / count * kBlockBytes, {data_.get(), kBlockBytes});
        file.Complete(true);
      }
    });
    return seconds / static_cast<double>(writes);
  }

  double ReadRate() {
    const size_t bytes = Count(Rate(), kReadBytes) * kReadBytes;
    const std::string path = Create(bytes)->path();
    const auto file = files_.Open(path);
    const Buffer to = MakeBuffer(kReadBytes);
    const double seconds = SecondsOf([&] {
      for (size_t at = 0; at < bytes; at += kReadBytes) file->Read(at, {to.get(), kReadBytes});
    });
    return static_cast<double>(bytes) / seconds;
  }

  double Rate() const { return static_cast<double>(profile_.AloneBytesPerSecond()); }

 private:
  // So many requests of `bytes` as take the time at `rate`; bounded, as the file must fit.
  size_t Count(double rate, size_t bytes) const {
    return static_cast<size_t>(std::clamp(rate * settings_.seconds / static_cast<double>(bytes), 16.0, 2048.0));
  }
  std::unique_ptr<BlockDevice> Create(size_t bytes) {
    paths_.push_back(settings_.directory + "/emulated_device_bench-" + std::to_string(::getpid()) + "-" + name_ +
                     std::to_string(paths_.size()) + ".tmp");
    return files_.Create(paths_.back(), {.preallocate_bytes = bytes});
  }
  void Write(BlockDevice& file, size_t writes, size_t bytes, size_t in_flight) const {
    for (size_t i = 0; i < writes; ++i) {
      file.StartWrite(i * bytes, {data_.get(), bytes});
      if ((i + 1) % in_flight == 0 || i + 1 == writes) file.Complete(true);
    }
  }

  const Settings& settings_;
  FileSystem& files_;
  const DeviceProfile profile_;
  const std::string name_;
  const Buffer data_;
  std::vector<std::string> paths_;
};

// One line; true if the measured value agrees with the claimed one.
bool Show(const char* what, const char* unit, double claimed, double measured) {
  const double off = measured / claimed - 1;
  const bool holds = std::abs(off) <= kOffMax;
  std::printf("%-44s claimed %10.2f %-4s  measured %10.2f %-4s %+7.2f %%%s\n", what, claimed, unit, measured, unit,
              100 * off, holds ? "" : "  NOT within 5 %");
  return holds;
}

bool ShowRates(Bench& bench, const DeviceProfile& profile) {
  if (bench.Rate() == 0) return true;
  // A round of eight writes ends with a flush; two files pay a seek whenever the head moves to the other one.
  const double round_seconds =
      kWritesInFlight * kWriteBytes / bench.Rate() + static_cast<double>(profile.flush_nanos) * 1e-9;
  const double claimed = kWritesInFlight * kWriteBytes / round_seconds / 1e6;
  bool holds = Show("512 KiB writes, rounds of 8 in flight", "MB/s", claimed, bench.WriteRate(1) / 1e6);
  if (profile.seek_nanos == 0 && profile.flush_nanos * 50 < kWritesInFlight * kWriteBytes / bench.Rate() * 1e9) {
    holds &= Show("  the same to two files by two threads", "MB/s", bench.Rate() / 1e6, bench.WriteRate(2) / 1e6);
  }
  return Show("1 MiB reads in sequence", "MB/s", bench.Rate() / 1e6, bench.ReadRate() / 1e6) && holds;
}

bool ShowAll(const Settings& settings) {
  const std::optional<DeviceProfile> profile = ParseDevice(settings.device);
  if (!profile) throw Error(ExitStatus::kUsage, "--log_device=real is measured by host_limits");
  PosixFileSystem real;
  EmulatedFileSystem files(real, *profile, {settings.directory});
  const DirectoryKind kind = files.Describe(settings.directory, {});
  std::printf("%s on %s (%s, %s)\n", settings.device.c_str(), settings.directory.c_str(), kind.file_system.c_str(),
              kind.io_engine.c_str());
  Bench bench(settings, files, *profile, "emulated");
  const auto seconds = [](uint64_t nanos) { return static_cast<double>(nanos) * 1e-9; };
  const double transfer = bench.Rate() == 0 ? 0 : kBlockBytes / bench.Rate();
  const double flush = transfer + seconds(profile->flush_nanos), seek = flush + seconds(profile->seek_nanos);
  bool holds = ShowRates(bench, *profile);
  if (flush > 0)
    holds &= Show("4 KiB durable writes, one at a time", "us", flush * 1e6, bench.FlushSeconds(1, flush) * 1e6);
  if (seek > 0) holds &= Show("  in turn to two files", "us", seek * 1e6, bench.FlushSeconds(2, seek) * 1e6);
  if (flush > 0) {
    Bench bare(settings, real, *profile, "bare");
    std::printf("%-44s %45.2f us\n", "  by the directory itself", bare.FlushSeconds(1, flush) * 1e6);
  }
  return holds;
}

Settings ParseArguments(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    // NAME VALUE or NAME=VALUE
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    if (equals == std::string::npos && i + 1 == arguments.size())
      throw Error(ExitStatus::kUsage, name + " needs a value");
    const std::string value = equals != std::string::npos ? arguments[i].substr(equals + 1) : arguments[++i];
    if (name == "--dir") {
      settings.directory = value;
    } else if (name == "--log_device") {
      settings.device = value;
    } else if (name == "--seconds") {
      settings.seconds = ParseSeconds(value, 0.01, 60);
    } else {
      throw Error(ExitStatus::kUsage, "unknown argument " + name + " (--dir DIR, --log_device DEVICE, --seconds S)");
    }
  }
  if (settings.directory.empty() || settings.device.empty()) {
    throw Error(ExitStatus::kUsage, "--dir DIR and --log_device DEVICE are needed");
  }
  return settings;
}

}  // namespace
}  // namespace dbx

// Exit status 1: something is off by more than 5 %.
int main(int argc, char** argv) {
  try {
    return dbx::ShowAll(dbx::ParseArguments({argv + 1, argv + argc})) ? 0 : 1;
  } catch (const dbx::BadValue& bad) {
    std::fprintf(stderr, "error: a value %s\n", bad.what());
    return static_cast<int>(dbx::ExitStatus::kUsage);
  } catch (const dbx::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.status());
  }
}
