// Kills the process that it is loaded into (LD_PRELOAD) with SIGKILL at a named call on a file, or lets that call fail;
// tests/scripts/kill_points.py and cli_check.py load it into ./rundb-all, which has no hook for it.
//
//   DBX_KILL_UNDER=DIR                   only files under this directory count; absolute, without links
//   DBX_KILL_TRACE=FILE                  a line "CALL PATH" for every call, PATH relative to DIR, which is .
//   DBX_KILL_AT=WHEN:CALL:PATH:N         the N-th such call; PATH as in the trace, or its last part
//
// WHEN is before, after, or for a write or a punch middle: half of it is done. With fail the call returns EIO, and the
// process goes on; not through io_uring. A sync that fails takes with it what was written to the file since the last
// one, as far as that went by pwritev2. CALL is create, write, sync, allocate, punch, truncate, rename (PATH is the new
// name), unlink, mkdir or rmdir. A sync may be of a file's memory, by msync. A write through io_uring is over once the
// kernel has it. A write that is to be durable when it returns has a second line in the trace, "dsync PATH".
//
// Threads: any. The call dies in the thread that made it; the others run on until the kernel has stopped them.
#include <dlfcn.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

enum class Moment { kNone, kBefore, kMiddle, kAfter, kFail };

// The function of this name that would be called without this library.
template <class Function>
Function* Next(Function&, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

// What the environment asks for, and how often the wanted call was made.
class Plan {
 public:
  Plan() : under_(Variable("DBX_KILL_UNDER")) {
    std::istringstream point(Variable("DBX_KILL_AT"));
    std::string when, number;
    std::getline(point, when, ':');
    std::getline(point, call_, ':');
    std::getline(point, path_, ':');
    std::getline(point, number);
    number_ = std::atol(number.c_str());
    moment_ = when == "before"   ? Moment::kBefore
              : when == "middle" ? Moment::kMiddle
              : when == "after"  ? Moment::kAfter
              : when == "fail"   ? Moment::kFail
                                 : Moment::kNone;
    const std::string trace = Variable("DBX_KILL_TRACE");
    const auto next_open = Next(::open, "open");
    if (!trace.empty()) trace_fd_ = next_open(trace.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }

  // Notes a call and says whether it is the one to die at.
  Moment Note(const std::string& call, const std::string& path) {
    const bool is_under = path == under_ || path.starts_with(under_ + "/");
    // No process can find a file without a name again.
    if (!is_under || path.ends_with(" (deleted)")) return Moment::kNone;
    const std::string name = path == under_ ? "." : path.substr(under_.size() + 1);
    if (trace_fd_ >= 0) {
      const std::string line = call + " " + name + "\n";
      // One append, so that lines of several threads do not mix.
      if (::write(trace_fd_, line.data(), line.size()) < 0) std::perror("DBX_KILL_TRACE");
    }
    const bool wanted = call == call_ && (name == path_ || name.ends_with("/" + path_));
    return wanted && seen_.fetch_add(1) + 1 == number_ ? moment_ : Moment::kNone;
  }

 private:
  const std::string under_;
  Moment moment_ = Moment::kNone;
  std::string call_, path_;
  long number_ = 0;
  std::atomic<long> seen_{0};
  int trace_fd_ = -1;
};

// Never destroyed: threads may still write while the process ends.
Plan& ThePlan() {
  static Plan& plan = *new Plan;
  return plan;
}

std::string PathOf(int fd) {
  char path[4096];
  const ssize_t bytes = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return bytes < 0 ? "" : std::string(path, static_cast<size_t>(bytes));
}

// Of the file that is mapped there; its stores are in the page cache, and outlive this process.
std::string PathMappedAt(const void* at) {
  const auto place = reinterpret_cast<uintptr_t>(at);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2 || place < begin || place >= end) continue;
    const size_t path = line.find('/');
    return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

// Makes the call, which dies before, in or after it if the plan says so. `half` does half of it.
template <class Act, class Half>
auto Make(const char* call, const std::string& path, Act&& act, Half&& half) {
  const Moment moment = ThePlan().Note(call, path);
  if (moment == Moment::kBefore) Die();
  if (moment == Moment::kMiddle) {
    half();
    Die();
  }
  if (moment == Moment::kFail) {
    errno = EIO;
    return decltype(act())(-1);
  }
  const auto result = act();
  if (moment == Moment::kAfter) Die();
  return result;
}

template <class Act>
auto Make(const char* call, const std::string& path, Act&& act) {
  return Make(call, path, act, [] {});
}

// In whole sectors, which O_DIRECT asks for.
void WriteHalf(int fd, const void* data, size_t bytes, uint64_t offset) {
  constexpr size_t kSectorBytes = 512;
  const size_t half = bytes / 2 / kSectorBytes * kSectorBytes;
  if (::pwrite(fd, data, half, static_cast<off_t>(offset)) < 0) std::perror("half a write");
}

// What was written to a file since its last sync.
struct Span {
  uint64_t begin = 0, end = 0;
};
// A file's writer is one thread, which syncs it too.
Span& WrittenSinceSync(int fd) {
  constexpr size_t kFdsMax = 1024;
  static std::array<Span, kFdsMax> spans{};
  return spans[static_cast<size_t>(fd) % kFdsMax];
}
void NoteWritten(int fd, uint64_t offset, uint64_t bytes) {
  Span& span = WrittenSinceSync(fd);
  span.begin = span.end == 0 ? offset : std::min(span.begin, offset);
  span.end = std::max(span.end, offset + bytes);
}
void ZeroOut(int fd, const Span& span) {
  const std::vector<std::byte> zeros(span.end - span.begin);
  if (::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(span.begin)) < 0) std::perror("a lost write");
}

void NoteIfDurable(int fd, int write_flags) {
  if ((write_flags & RWF_DSYNC) != 0) ThePlan().Note("dsync", PathOf(fd));
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  static const auto next = Next(::open, "open");
  va_list arguments;
  va_start(arguments, flags);
  const bool with_mode = (flags & (O_CREAT | O_TMPFILE)) != 0;
  const mode_t mode = with_mode ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if ((flags & O_CREAT) == 0) return next(path, flags, mode);
  return Make("create", path, [&] { return next(path, flags, mode); });
}

ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  static const auto next = Next(::pwritev2, "pwritev2");
  const ssize_t bytes = Make(
      "write", PathOf(fd), [&] { return next(fd, parts, count, offset, flags); },
      [&] { WriteHalf(fd, parts->iov_base, parts->iov_len, static_cast<uint64_t>(offset)); });
  NoteIfDurable(fd, flags);
  if (bytes > 0) NoteWritten(fd, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes));
  return bytes;
}

// The engine submits one write at a time.
int io_uring_submit(io_uring* ring) {
  static const auto next = Next(::io_uring_submit, "io_uring_submit");
  const io_uring_sqe write = ring->sq.sqes[ring->sq.sqe_head & ring->sq.ring_mask];
  const int submitted = Make(
      "write", PathOf(write.fd), [&] { return next(ring); },
      [&] { WriteHalf(write.fd, reinterpret_cast<const void*>(write.addr), write.len, write.off); });
  NoteIfDurable(write.fd, write.rw_flags);
  return submitted;
}

int fsync(int fd) {
  static const auto next = Next(::fsync, "fsync");
  return Make("sync", PathOf(fd), [&] { return next(fd); });
}

int fdatasync(int fd) {
  static const auto next = Next(::fdatasync, "fdatasync");
  const int result = Make("sync", PathOf(fd), [&] { return next(fd); });
  const Span written = std::exchange(WrittenSinceSync(fd), {});
  if (result != 0 && written.end > 0) ZeroOut(fd, written);
  return result;
}

int msync(void* at, size_t bytes, int flags) {
  static const auto next = Next(::msync, "msync");
  return Make("sync", PathMappedAt(at), [&] { return next(at, bytes, flags); });
}

int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  static const auto next = Next(::fallocate, "fallocate");
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) {
    return Make(
        "punch", PathOf(fd), [&] { return next(fd, mode, offset, bytes); },
        [&] { next(fd, mode, offset, bytes / 2 / 4096 * 4096); });
  }
  return Make("allocate", PathOf(fd), [&] { return next(fd, mode, offset, bytes); });
}

int ftruncate(int fd, off_t bytes) noexcept {
  static const auto next = Next(::ftruncate, "ftruncate");
  return Make("truncate", PathOf(fd), [&] { return next(fd, bytes); });
}

int rename(const char* from, const char* to) noexcept {
  static const auto next = Next(::rename, "rename");
  return Make("rename", to, [&] { return next(from, to); });
}

int unlink(const char* path) noexcept {
  static const auto next = Next(::unlink, "unlink");
  return Make("unlink", path, [&] { return next(path); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = Next(::mkdir, "mkdir");
  return Make("mkdir", path, [&] { return next(path, mode); });
}

int rmdir(const char* path) noexcept {
  static const auto next = Next(::rmdir, "rmdir");
  return Make("rmdir", path, [&] { return next(path); });
}

}  // extern "C"
