// What a cache line costs this host when it comes from another core: the costs of tests/instruments/line_transfers,
// as JSON.
//
//   line_bench [--dir DIR | --transfers]       --transfers: the first three alone, in a second
//
// transfer_nanos       one line that the other core has written, in turns by compare and exchange: half a round trip
// far_nanos            a line of 4 MiB that the other core has written, in a chain of loads: as long as a transfer
//                      where the two have no cache in common, much shorter where they have
// miss_nanos           the same of lines that this core has written
// following_share      of transfer_nanos: the transfer, or the upgrade, of each further line of a KiB that the other
//                      core has written, read and written in order
// pause_, yield_nanos  the instruction and the system call of waiting loops
// wake_nanos           to notify a thread that sleeps, for the one that notifies
// write_nanos          a write of 4 KiB to an allocated file in DIR (/dev/shm), less its bytes, each KiB of which costs
//                      write_nanos_per_kib (of a write of 256 KiB)
// level2_bytes         of a core's cache, as the system reports it
//
// Two threads, each on a processor of its own; medians of several rounds. On a virtual machine the figures change with
// the host's cores that the two happen to run on: measure them together with what is to be explained.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/affinity.h"
#include "base/cache_line.h"
#include "base/host.h"

namespace dbx {
namespace {

constexpr int kRounds = 7;

// Where the host permits it.
void RunOn(uint32_t processor) { (void)host::AllowCpus({&processor, 1}); }

double MedianOf(auto&& measure) {
  std::vector<double> nanos;
  for (int i = 0; i < kRounds; ++i) nanos.push_back(measure());
  std::nth_element(nanos.begin(), nanos.begin() + kRounds / 2, nanos.end());
  return nanos[kRounds / 2];
}

// Of each of `times` calls.
double NanosOf(uint64_t times, auto&& call) {
  const uint64_t begin = host::MonotonicNanos();
  for (uint64_t i = 0; i < times; ++i) call(i);
  return static_cast<double>(host::MonotonicNanos() - begin) / static_cast<double>(times);
}

using Word = CachePadded<std::atomic<uint64_t>>;

// From one value to the next, in turns with the other thread.
void Follow(std::atomic<uint64_t>& turn, uint64_t first, uint64_t last) {
  for (uint64_t value = first; value < last; value += 2) {
    for (uint64_t expected = value; !turn.compare_exchange_weak(expected, value + 1); expected = value) {
    }
  }
}

double TransferNanos() {
  constexpr uint64_t kTurns = 200'000;
  Word turn(uint64_t{0});
  std::thread other([&] {
    RunOn(1);
    Follow(turn.value, 1, kTurns);
  });
  RunOn(0);
  const uint64_t begin = host::MonotonicNanos();
  Follow(turn.value, 0, kTurns);
  other.join();
  return static_cast<double>(host::MonotonicNanos() - begin) / kTurns;
}

// Of a block of so many lines that one thread writes and the other reads, in turns: both ways together.
double BlockNanos(size_t lines) {
  constexpr uint64_t kTurns = 50'000;
  constexpr size_t kWords = kCacheLineBytes / sizeof(uint64_t);
  alignas(4096) static std::atomic<uint64_t> block[64 * kWords];
  Word turn(uint64_t{0});
  const auto take_turns = [&](uint64_t first) {
    for (uint64_t value = first; value < kTurns; value += 2) {
      while (turn.value.load(std::memory_order_acquire) != value) host::Pause();
      uint64_t sum = value;
      for (size_t i = 0; i < lines; ++i) sum += block[i * kWords].load(std::memory_order_relaxed);
      for (size_t i = 0; i < lines; ++i) block[i * kWords].store(sum, std::memory_order_relaxed);
      turn.value.store(value + 1, std::memory_order_release);
    }
  };
  std::thread other([&] {
    RunOn(1);
    take_turns(1);
  });
  RunOn(0);
  const uint64_t begin = host::MonotonicNanos();
  take_turns(0);
  other.join();
  return static_cast<double>(host::MonotonicNanos() - begin) / kTurns;
}

// A chain of loads over all lines of some memory, in huge pages where there are any.
class Chain {
 public:
  Chain() : words_(static_cast<uint64_t*>(std::aligned_alloc(kHugePageBytes, kBytes))) {
    if (words_ == nullptr) throw std::bad_alloc();
    ::madvise(words_.get(), kBytes, MADV_HUGEPAGE);
    std::vector<uint64_t> order(kLines);
    std::iota(order.begin(), order.end(), uint64_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    for (size_t i = 0; i < kLines; ++i) words_[order[i] * kWords] = order[(i + 1) % kLines] * kWords;
  }

  void WriteAll() {
    for (size_t i = 0; i < kLines; ++i) words_[i * kWords + 1] += 1;
  }
  double NanosPerLine() const {
    uint64_t at = 0;
    const double nanos = NanosOf(kLines, [&](uint64_t) { at = words_[at]; });
    asm volatile("" : : "r"(at));
    return nanos;
  }

 private:
  static constexpr size_t kBytes = 4 << 20, kHugePageBytes = 2 << 20;
  static constexpr size_t kLines = kBytes / kCacheLineBytes, kWords = kCacheLineBytes / sizeof(uint64_t);
  struct Freer {
    void operator()(uint64_t* words) const { std::free(words); }
  };
  std::unique_ptr<uint64_t[], Freer> words_;
};

// Of lines that were written on `processor`.
double ChainNanos(uint32_t processor) {
  Chain chain;
  std::thread([&] {
    RunOn(processor);
    chain.WriteAll();
  }).join();
  RunOn(0);
  return chain.NanosPerLine();
}

double WakeNanos() {
  std::mutex mutex;
  std::condition_variable wake;
  uint64_t served = 0, asked = 0;
  bool stop = false;
  std::thread sleeper([&] {
    RunOn(1);
    std::unique_lock lock(mutex);
    for (; !stop; served = asked) wake.wait(lock, [&] { return stop || asked != served; });
  });
  RunOn(0);
  uint64_t nanos = 0;
  constexpr uint64_t kTimes = 200;
  for (uint64_t i = 0; i < kTimes; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    const uint64_t begin = host::MonotonicNanos();
    {
      const std::lock_guard lock(mutex);
      ++asked;
    }
    wake.notify_one();
    nanos += host::MonotonicNanos() - begin;
  }
  {
    const std::lock_guard lock(mutex);
    stop = true;
  }
  wake.notify_one();
  sleeper.join();
  return static_cast<double>(nanos) / kTimes;
}

// One after the other, into blocks that are allocated and have not been written before.
double WriteNanos(int fd, size_t bytes) {
  constexpr uint64_t kWrites = 100;
  const std::vector<char> data(bytes, 'x');
  if (::ftruncate(fd, 0) != 0 || ::fallocate(fd, 0, 0, static_cast<off_t>(kWrites * bytes)) != 0) std::abort();
  return NanosOf(kWrites, [&](uint64_t i) {
    const auto at = static_cast<off_t>(i * bytes);
    if (::pwrite(fd, data.data(), data.size(), at) != static_cast<ssize_t>(bytes)) std::abort();
  });
}

void PrintTheRest(double transfer, int fd) {
  // Each line costs a turn its transfer and its upgrade.
  const double lines = MedianOf([] { return BlockNanos(32); }) - MedianOf([] { return BlockNanos(16); });
  const double small = MedianOf([fd] { return WriteNanos(fd, 4 << 10); });
  const double large = MedianOf([fd] { return WriteNanos(fd, 256 << 10); });
  const double per_kib = (large - small) / (256 - 4);
  std::printf(", \"following_share\": %.3f, \"pause_nanos\": %.1f, \"yield_nanos\": %.0f, \"wake_nanos\": %.0f",
              std::clamp(lines / 16 / 2 / transfer, 0.0, 1.0),
              MedianOf([] { return NanosOf(100'000, [](uint64_t) { host::Pause(); }); }),
              MedianOf([] { return NanosOf(10'000, [](uint64_t) { host::Yield(); }); }), MedianOf(WakeNanos));
  std::printf(", \"write_nanos\": %.0f, \"write_nanos_per_kib\": %.1f, \"level2_bytes\": %ld",
              std::max(small - 4 * per_kib, 0.0), per_kib, ::sysconf(_SC_LEVEL2_CACHE_SIZE));
}

int Main(int argc, char** argv) {
  std::string directory = "/dev/shm";
  const bool transfers_alone = argc == 2 && std::string_view(argv[1]) == "--transfers";
  const bool has_directory = argc == 3 && std::string_view(argv[1]) == "--dir";
  if (has_directory) directory = argv[2];
  const std::string path = directory + "/line_bench.tmp";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool is_usage = argc == 1 || transfers_alone || has_directory;
  if (!is_usage || fd < 0) {
    const std::string what = is_usage ? "cannot write " + path : "usage: line_bench [--dir DIR | --transfers]";
    std::fprintf(stderr, "error: %s\n", what.c_str());
    return 2;
  }
  ::unlink(path.c_str());
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "error: one processor: no line comes from another core\n");
    return 2;
  }
  const double transfer = MedianOf(TransferNanos);
  std::printf("{\"transfer_nanos\": %.1f, \"far_nanos\": %.1f, \"miss_nanos\": %.1f", transfer,
              MedianOf([] { return ChainNanos(1); }), MedianOf([] { return ChainNanos(0); }));
  if (!transfers_alone) PrintTheRest(transfer, fd);
  std::printf("}\n");
  ::close(fd);
  return 0;
}

}  // namespace
}  // namespace dbx

int main(int argc, char** argv) { return dbx::Main(argc, argv); }
