// The limits of this host: memory, shared cache lines, devices. A throughput means little without them, measured in the
// same hour.
//
//   host_limits [--dir DIR]... [--json FILE] [--memory_bytes N[K|M|G]] [--quick]
//
// Every figure is the sum over its threads. Memory is in huge pages where the host has them. The "YCSB floor" is the
// least that a transaction of two accesses does to memory: one row of 1000 bytes copied, one overwritten, no index.
// With prefetch, rows are fetched up to 8 calls ahead. Device figures use plain system calls, none of the engine's
// code, on a file whose blocks exist.
#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/cache_line.h"
#include "base/error.h"
#include "logging/device/file_device.h"

namespace dbx {
namespace {

using Clock = std::chrono::steady_clock;
using PerThreads = std::map<unsigned, double>;

constexpr size_t kRowStride = 1024;
constexpr size_t kYcsbRowBytes = 1000;
constexpr size_t kAhead = 8;
constexpr size_t kBlockBytes = 4096;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Settings {
  std::vector<std::string> directories;
  std::string json_file;
  uint64_t memory_bytes = 0;     // 0: follows from the other settings
  double seconds = 0.35;         // per figure
  double device_seconds = 0.25;  // per device figure
  uint64_t file_bytes = uint64_t{256} << 20;
};

struct WriteFigure {
  size_t block_bytes;
  std::string mode;
  double bytes_per_s;
  double latency_us;
};

struct DeviceFigures {
  std::string path;
  std::string kind;
  std::string file_system;
  std::vector<WriteFigure> writes;
  double read_bytes_per_s = 0;
};

struct Figures {
  unsigned threads = 1;
  bool huge_pages = false;
  PerThreads row_copy, row_copy_prefetch, row_overwrite, row_overwrite_prefetch;
  PerThreads fetch_add_shared, fetch_add_private, lock_unlock, ycsb_floor, ycsb_floor_prefetch;
  double dependent_load_ns = 0;
  std::vector<DeviceFigures> devices;
};

// Anonymous memory, in huge pages where possible, all of it faulted in.
class Memory {
 public:
  explicit Memory(uint64_t bytes) : bytes_(bytes) {
    void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw Error(ExitStatus::kNoSpace, "no memory for " + std::to_string(bytes) + " bytes of rows");
    data_ = static_cast<std::byte*>(p);
    huge_ = ::madvise(p, bytes, MADV_HUGEPAGE) == 0;
    std::memset(p, 1, bytes);
  }
  ~Memory() { ::munmap(data_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* row(uint64_t i) const { return data_ + i * kRowStride; }
  uint64_t rows() const { return bytes_ / kRowStride; }
  bool huge() const { return huge_; }

 private:
  uint64_t bytes_;
  std::byte* data_ = nullptr;
  bool huge_ = false;
};

// A cheap generator: a Weyl sequence, mixed and scaled to the range by multiplication.
class RandomRow {
 public:
  RandomRow(unsigned thread, uint64_t rows) : state_(0x9E3779B97F4A7C15u * (thread + 1)), rows_(rows) {}
  uint64_t Next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(x) * rows_) >> 64);
  }

 private:
  uint64_t state_;
  const uint64_t rows_;
};

void PrefetchRowToRead(const std::byte* row) {
  PrefetchLines(row, kRowStride / kCacheLineBytes);
}

void PrefetchRowToWrite(const std::byte* row) {
  for (size_t at = 0; at < kRowStride; at += kCacheLineBytes) PrefetchToWrite(row + at);
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  (void)::sched_setaffinity(0, sizeof set, &set);  // a figure is valid without pinning too
}

// Runs `batch(thread)`, which returns how many operations it did, in `threads` pinned threads for `seconds`.
// Returns operations per second of all threads.
double Rate(unsigned threads, double seconds, const std::function<std::function<uint64_t()>(unsigned)>& make_batch) {
  static const std::vector<int> cpus = AllowedCpus();
  std::atomic<unsigned> ready{0};
  std::vector<double> rates(threads);
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      PinTo(cpus[t % cpus.size()]);
      const std::function<uint64_t()> batch = make_batch(t);
      batch();  // page tables, caches of the generator
      ready.fetch_add(1);
      while (ready.load() < threads) {
      }
      const auto start = Clock::now();
      uint64_t operations = 0;
      double elapsed = 0;
      while ((elapsed = SecondsSince(start)) < seconds) operations += batch();
      rates[t] = static_cast<double>(operations) / elapsed;
    });
  }
  for (std::thread& thread : pool) thread.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

void CopyRow(std::byte* row) {
  static thread_local std::array<std::byte, kRowStride> to;
  std::memcpy(to.data(), row, kRowStride);
  asm volatile("" : : "r"(to.data()) : "memory");
}

void OverwriteRow(std::byte* row) {
  static thread_local std::array<std::byte, kRowStride> from{};
  std::memcpy(row, from.data(), kRowStride);
  asm volatile("" : : "r"(row) : "memory");
}

using RowAction = void (*)(std::byte*);
using PrefetchAction = void (*)(const std::byte*);
constexpr uint64_t kRowsPerBatch = 256;

// One row after the other, each found at random.
template <RowAction kAct>
double RowRate(const Memory& memory, unsigned threads, double seconds) {
  return Rate(threads, seconds, [&](unsigned thread) {
    return [&memory, random = RandomRow(thread, memory.rows())]() mutable {
      for (uint64_t i = 0; i < kRowsPerBatch; ++i) kAct(memory.row(random.Next()));
      return kRowsPerBatch;
    };
  });
}

// The same with every row prefetched kAhead rows before its turn.
template <RowAction kAct, PrefetchAction kPrefetch>
double RowRatePrefetched(const Memory& memory, unsigned threads, double seconds) {
  return Rate(threads, seconds, [&](unsigned thread) {
    RandomRow random(thread, memory.rows());
    std::array<std::byte*, kAhead> ahead;
    for (std::byte*& row : ahead) row = memory.row(random.Next());
    return [&memory, random, ahead]() mutable {
      for (uint64_t i = 0; i < kRowsPerBatch; ++i) {
        std::byte*& slot = ahead[i % kAhead];
        kAct(slot);
        slot = memory.row(random.Next());
        kPrefetch(slot);
      }
      return kRowsPerBatch;
    };
  });
}

double YcsbFloor(const Memory& memory, unsigned threads, double seconds) {
  return Rate(threads, seconds, [&](unsigned thread) {
    return
        [&memory, random = RandomRow(thread, memory.rows()), local = std::array<std::byte, kYcsbRowBytes>()]() mutable {
          for (uint64_t i = 0; i < kRowsPerBatch; ++i) {
            std::memcpy(local.data(), memory.row(random.Next()), kYcsbRowBytes);
            asm volatile("" : : "r"(local.data()) : "memory");
            std::memcpy(memory.row(random.Next()), local.data(), kYcsbRowBytes);
            asm volatile("" : : : "memory");
          }
          return kRowsPerBatch;
        };
  });
}

double YcsbFloorPrefetched(const Memory& memory, unsigned threads, double seconds) {
  static constexpr size_t kCallsAhead = kAhead / 2;
  struct Call {
    std::byte* read;
    std::byte* write;
  };
  return Rate(threads, seconds, [&](unsigned thread) {
    RandomRow random(thread, memory.rows());
    std::array<Call, kCallsAhead> ahead;
    for (Call& call : ahead) call = {memory.row(random.Next()), memory.row(random.Next())};
    return [&memory, random, ahead, local = std::array<std::byte, kYcsbRowBytes>()]() mutable {
      for (uint64_t i = 0; i < kRowsPerBatch; ++i) {
        Call& call = ahead[i % kCallsAhead];
        std::memcpy(local.data(), call.read, kYcsbRowBytes);
        asm volatile("" : : "r"(local.data()) : "memory");
        std::memcpy(call.write, local.data(), kYcsbRowBytes);
        asm volatile("" : : : "memory");
        call = {memory.row(random.Next()), memory.row(random.Next())};
        PrefetchRowToRead(call.read);
        PrefetchRowToWrite(call.write);
      }
      return kRowsPerBatch;
    };
  });
}

// The address of each load needs the value of the one before it.
double DependentLoadNanos(const Memory& memory, double seconds) {
  const double rate = Rate(1, seconds, [&](unsigned) {
    return [&memory, random = RandomRow(0, memory.rows()), value = uint64_t{0}]() mutable {
      for (uint64_t i = 0; i < kRowsPerBatch; ++i) {
        const std::byte* row = memory.row(random.Next());
        // The offset is always 0, but an `and` with 0 still waits for the value that was loaded last.
        asm volatile("and $0, %0\n\tmov (%1, %0), %0" : "+r"(value) : "r"(row) : "memory", "cc");
      }
      return kRowsPerBatch;
    };
  });
  return 1e9 / rate;
}

struct alignas(2 * kCacheLineBytes) Line {
  std::atomic<uint64_t> value{0};
};

constexpr uint64_t kAtomicsPerBatch = 4096;

double FetchAddRate(bool shared, unsigned threads, double seconds) {
  std::vector<Line> lines(threads);
  return Rate(threads, seconds, [&](unsigned thread) {
    return [&line = lines[shared ? 0 : thread]] {
      for (uint64_t i = 0; i < kAtomicsPerBatch; ++i) line.value.fetch_add(1, std::memory_order_relaxed);
      return kAtomicsPerBatch;
    };
  });
}

double LockRate(unsigned threads, double seconds) {
  Line lock;
  return Rate(threads, seconds, [&](unsigned) {
    return [&lock] {
      for (uint64_t i = 0; i < kAtomicsPerBatch; ++i) {
        uint64_t free = 0;
        while (!lock.value.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
          free = 0;
          __builtin_ia32_pause();
        }
        lock.value.store(0, std::memory_order_release);
      }
      return kAtomicsPerBatch;
    };
  });
}

struct Freer {
  void operator()(std::byte* p) const { std::free(p); }
};

std::unique_ptr<std::byte[], Freer> AlignedBlock(size_t bytes) {
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, bytes));
  if (p == nullptr) throw Error(ExitStatus::kNoSpace, "no memory for an I/O buffer");
  std::memset(p, 0x5A, bytes);
  return std::unique_ptr<std::byte[], Freer>(p);
}

// One file, written over and over from its start.
class DeviceProbe {
 public:
  DeviceProbe(std::string path, const Settings& settings) : path_(std::move(path)), settings_(settings) {
    DeviceOptions options;
    options.preallocate_bytes = settings.file_bytes;
    CreateFileDevice(path_, options);
  }
  ~DeviceProbe() { ::unlink(path_.c_str()); }
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;

  // One write at a time. Nothing if the file system refuses the open flags.
  std::optional<WriteFigure> Pwrite(size_t block_bytes, int open_flags, bool sync_after, const std::string& mode) {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | open_flags));
    if (!fd.valid()) return {};
    const auto block = AlignedBlock(block_bytes);
    uint64_t writes = 0;
    const auto start = Clock::now();
    do {
      const uint64_t offset = OffsetOf(writes, block_bytes);
      if (::pwrite(fd.get(), block.get(), block_bytes, static_cast<off_t>(offset)) !=
          static_cast<ssize_t>(block_bytes)) {
        if (writes == 0 && errno == EINVAL) return {};
        ThrowErrno("write", path_, offset, errno);
      }
      if (sync_after && ::fdatasync(fd.get()) != 0) ThrowErrno("sync", path_, offset, errno);
      ++writes;
    } while (SecondsSince(start) < settings_.device_seconds);
    return FigureOf(writes, block_bytes, 1, SecondsSince(start), mode);
  }

  // `depth` writes in flight. Nothing if io_uring or O_DIRECT is refused.
  std::optional<WriteFigure> Uring(size_t block_bytes, unsigned depth, const std::string& mode) {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
    const auto block = AlignedBlock(block_bytes);
    io_uring ring;
    if (!fd.valid() || io_uring_queue_init(depth, &ring, 0) != 0) return {};
    const std::unique_ptr<io_uring, void (*)(io_uring*)> closer(&ring, &io_uring_queue_exit);
    uint64_t started = 0, finished = 0;
    const auto start = Clock::now();
    bool more = true;
    while (more || finished < started) {
      for (; more && started - finished < depth; ++started) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring);
        io_uring_prep_write(entry, fd.get(), block.get(), static_cast<unsigned>(block_bytes),
                            OffsetOf(started, block_bytes));
        entry->rw_flags = RWF_DSYNC;
      }
      if (const int n = io_uring_submit_and_wait(&ring, 1); n < 0 && n != -EINTR) ThrowErrno("write", path_, -n);
      io_uring_cqe* completion = nullptr;
      while (io_uring_peek_cqe(&ring, &completion) == 0) {
        if (completion->res != static_cast<int>(block_bytes))
          ThrowErrno("write", path_, completion->res < 0 ? -completion->res : EIO);
        io_uring_cqe_seen(&ring, completion);
        ++finished;
      }
      more = SecondsSince(start) < settings_.device_seconds;
    }
    return FigureOf(finished, block_bytes, depth, SecondsSince(start), mode);
  }

  double ReadBytesPerSecond() {
    constexpr size_t kReadBytes = size_t{1} << 20;
    {
      const UniqueFd fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
      (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // from the device, not from memory
    }
    auto device = OpenFileDevice(path_);
    const auto block = AlignedBlock(kReadBytes);
    uint64_t bytes = 0;
    const auto start = Clock::now();
    while (const size_t n = device->Read(bytes, {block.get(), kReadBytes})) bytes += n;
    return static_cast<double>(bytes) / SecondsSince(start);
  }

 private:
  uint64_t OffsetOf(uint64_t write, size_t block_bytes) const {
    return write % (settings_.file_bytes / block_bytes) * block_bytes;
  }
  static WriteFigure FigureOf(uint64_t writes, size_t block_bytes, unsigned depth, double seconds,
                              const std::string& mode) {
    const auto count = static_cast<double>(writes);
    return {block_bytes, mode, count * static_cast<double>(block_bytes) / seconds, depth * seconds / count * 1e6};
  }

  const std::string path_;
  const Settings& settings_;
};

DeviceFigures MeasureDevice(const std::string& directory, const Settings& settings) {
  const DirectoryKind kind = Describe(directory);
  DeviceFigures figures{directory, kind.kind, kind.file_system, {}, 0};
  DeviceProbe probe(directory + "/host_limits-" + std::to_string(::getpid()) + ".tmp", settings);
  const auto add = [&](const std::optional<WriteFigure>& figure) {
    if (figure) figures.writes.push_back(*figure);
  };
  for (size_t block_bytes : {size_t{4} << 10, size_t{64} << 10, size_t{512} << 10, size_t{1} << 20}) {
    if (kind.kind == "ram") {
      add(probe.Pwrite(block_bytes, 0, false, "pwrite"));
      continue;
    }
    add(probe.Pwrite(block_bytes, O_DIRECT | O_DSYNC, false, "pwrite, O_DIRECT, O_DSYNC"));
    add(probe.Uring(block_bytes, 4, "io_uring depth 4, O_DIRECT, O_DSYNC"));
    if (block_bytes <= (size_t{64} << 10)) add(probe.Pwrite(block_bytes, 0, true, "pwrite, buffered, fdatasync"));
  }
  // The best of three: in a virtual machine the first read also waits for the host to back the page cache's memory.
  for (int attempt = 0; attempt < 3; ++attempt) {
    figures.read_bytes_per_s = std::max(figures.read_bytes_per_s, probe.ReadBytesPerSecond());
  }
  return figures;
}

Figures Measure(const Settings& settings) {
  Figures figures;
  figures.threads = static_cast<unsigned>(std::min<size_t>(2, AllowedCpus().size()));
  const double s = settings.seconds;
  {
    const Memory memory(settings.memory_bytes);
    figures.huge_pages = memory.huge();
    figures.dependent_load_ns = DependentLoadNanos(memory, s);
    for (unsigned t = 1; t <= figures.threads; ++t) {
      figures.row_copy[t] = RowRate<CopyRow>(memory, t, s);
      figures.row_copy_prefetch[t] = RowRatePrefetched<CopyRow, PrefetchRowToRead>(memory, t, s);
      figures.row_overwrite[t] = RowRate<OverwriteRow>(memory, t, s);
      figures.row_overwrite_prefetch[t] = RowRatePrefetched<OverwriteRow, PrefetchRowToWrite>(memory, t, s);
      figures.ycsb_floor[t] = YcsbFloor(memory, t, s);
      figures.ycsb_floor_prefetch[t] = YcsbFloorPrefetched(memory, t, s);
    }
  }
  for (unsigned t = 1; t <= figures.threads; ++t) {
    figures.fetch_add_shared[t] = FetchAddRate(true, t, s / 2);
    figures.fetch_add_private[t] = FetchAddRate(false, t, s / 2);
    figures.lock_unlock[t] = LockRate(t, s / 2);
  }
  for (const std::string& directory : settings.directories) {
    figures.devices.push_back(MeasureDevice(directory, settings));
  }
  return figures;
}

struct NamedFigure {
  const char* key;
  const char* label;
  PerThreads Figures::*value;
};
constexpr NamedFigure kRates[] = {
    {"row_copy_per_s", "random 1 KB row copy", &Figures::row_copy},
    {"row_copy_prefetch_per_s", "  with 8 prefetched ahead", &Figures::row_copy_prefetch},
    {"row_overwrite_per_s", "random 1 KB overwrite", &Figures::row_overwrite},
    {"row_overwrite_prefetch_per_s", "  with 8 prefetched ahead", &Figures::row_overwrite_prefetch},
    {"fetch_add_shared_per_s", "fetch_add, one line for all", &Figures::fetch_add_shared},
    {"fetch_add_private_per_s", "fetch_add, a line each", &Figures::fetch_add_private},
    {"lock_unlock_per_s", "lock + unlock by CAS, one line", &Figures::lock_unlock},
    {"ycsb_floor_per_s", "YCSB floor (1 row read, 1 written)", &Figures::ycsb_floor},
    {"ycsb_floor_prefetch_per_s", "  with 8 rows prefetched ahead", &Figures::ycsb_floor_prefetch},
};

void Print(const Figures& figures, const Settings& settings) {
  std::printf("memory: %.1f GiB in %s pages\n", static_cast<double>(settings.memory_bytes) / (1 << 30),
              figures.huge_pages ? "huge" : "4 KiB");
  std::printf("%-36s %14s %14s\n", "", "1 thread", figures.threads > 1 ? "2 threads" : "");
  for (const NamedFigure& rate : kRates) {
    std::printf("%-36s", rate.label);
    for (const auto& [threads, value] : figures.*rate.value) std::printf(" %10.2f M/s", value / 1e6);
    std::printf("\n");
  }
  std::printf("%-36s %11.1f ns\n", "dependent random load", figures.dependent_load_ns);
  for (const DeviceFigures& device : figures.devices) {
    std::printf("%s (%s, %s)\n", device.path.c_str(), device.kind.c_str(), device.file_system.c_str());
    for (const WriteFigure& write : device.writes) {
      std::printf("  %5zuK %-38s %9.1f MB/s %9.1f us\n", write.block_bytes >> 10, write.mode.c_str(),
                  write.bytes_per_s / 1e6, write.latency_us);
    }
    std::printf("  %-45s %9.1f MB/s\n", "sequential read", device.read_bytes_per_s / 1e6);
  }
}

nlohmann::json ToJson(const Figures& figures, const Settings& settings) {
  nlohmann::json json;
  for (const NamedFigure& rate : kRates) {
    for (const auto& [threads, value] : figures.*rate.value) json[rate.key][std::to_string(threads)] = value;
  }
  json["dependent_load_ns"] = figures.dependent_load_ns;
  json["memory_bytes"] = settings.memory_bytes;
  json["huge_pages"] = figures.huge_pages;
  json["devices"] = nlohmann::json::array();
  for (const DeviceFigures& device : figures.devices) {
    nlohmann::json writes = nlohmann::json::array();
    for (const WriteFigure& write : device.writes) {
      writes.push_back({{"block_bytes", write.block_bytes},
                        {"mode", write.mode},
                        {"bytes_per_s", write.bytes_per_s},
                        {"latency_us", write.latency_us}});
    }
    json["devices"].push_back({{"path", device.path},
                               {"kind", device.kind},
                               {"file_system", device.file_system},
                               {"writes", std::move(writes)},
                               {"read_bytes_per_s", device.read_bytes_per_s}});
  }
  return json;
}

uint64_t ParseBytes(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
  constexpr uint64_t kBytesMin = uint64_t{1} << 20, kBytesMax = uint64_t{1} << 40;
  const bool unit_ok = shift != 0 || unit.empty();
  if (error != std::errc() || !unit_ok || value > (kBytesMax >> shift) || (value << shift) < kBytesMin) {
    throw Error(ExitStatus::kUsage, "--memory_bytes " + std::string(text) + ": a size from 1M to 1024G");
  }
  return value << shift;
}

Settings ParseArguments(const std::vector<std::string>& arguments) {
  Settings settings;
  uint64_t memory_bytes_default = uint64_t{1} << 30;
  for (size_t i = 0; i < arguments.size(); ++i) {
    // NAME VALUE or NAME=VALUE
    const size_t equals = arguments[i].find('=');
    const std::string name = arguments[i].substr(0, equals);
    const auto value = [&]() -> std::string {
      if (equals != std::string::npos) return arguments[i].substr(equals + 1);
      if (i + 1 == arguments.size()) throw Error(ExitStatus::kUsage, name + " needs a value");
      return arguments[++i];
    };
    if (name == "--dir") {
      settings.directories.push_back(value());
    } else if (name == "--json") {
      settings.json_file = value();
    } else if (name == "--memory_bytes") {
      settings.memory_bytes = ParseBytes(value());
    } else if (arguments[i] == "--quick") {
      memory_bytes_default = uint64_t{256} << 20;  // still far beyond the caches
      settings.seconds = 0.06;
      settings.device_seconds = 0.04;
      settings.file_bytes = uint64_t{64} << 20;
    } else {
      throw Error(ExitStatus::kUsage,
                  "unknown argument " + arguments[i] + " (--dir DIR, --json FILE, --memory_bytes N, --quick)");
    }
  }
  if (settings.memory_bytes == 0) settings.memory_bytes = memory_bytes_default;
  return settings;
}

void WriteJson(const std::string& path, const nlohmann::json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  if (!file) throw Error(ExitStatus::kIo, "cannot write " + path);
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) {
  try {
    const dbx::Settings settings = dbx::ParseArguments({argv + 1, argv + argc});
    const dbx::Figures figures = dbx::Measure(settings);
    dbx::Print(figures, settings);
    if (!settings.json_file.empty()) dbx::WriteJson(settings.json_file, dbx::ToJson(figures, settings));
  } catch (const dbx::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.status());
  }
  return 0;
}
