#include "system/cluster/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/host.h"

namespace dbx {
namespace {

// Of the process itself, as by a bad address or an exception that nothing has caught.
bool IsOfAFault(int signal) {
  constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGTRAP};
  return std::ranges::find(kFaults, signal) != kFaults.end();
}

[[noreturn]] void Gone() { throw Error(ExitStatus::kIo, "the process at the other end has ended"); }

}  // namespace

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

Channel::Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

void Channel::Send(std::span<const std::byte> bytes) {
  const uint64_t length = bytes.size();
  const std::span<const std::byte> head = std::as_bytes(std::span(&length, 1));
  std::vector<std::byte> message(head.begin(), head.end());
  message.insert(message.end(), bytes.begin(), bytes.end());
  for (size_t sent = 0; sent < message.size();) {
    const ssize_t count = send(fd_, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) Gone();
    sent += static_cast<size_t>(count);
  }
}

void Channel::ReadFully(std::byte* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = read(fd_, to, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) Gone();
    to += count;
    bytes -= static_cast<size_t>(count);
  }
}

std::optional<std::vector<std::byte>> Channel::Receive(std::chrono::milliseconds time) {
  pollfd waits{fd_, POLLIN, 0};
  const int ready = poll(&waits, 1, static_cast<int>(time.count()));
  // A signal: the caller looks at its flag, and calls again.
  if (ready == 0 || (ready < 0 && errno == EINTR)) return std::nullopt;
  uint64_t length = 0;
  ReadFully(reinterpret_cast<std::byte*>(&length), sizeof length);
  std::vector<std::byte> bytes(length);
  ReadFully(bytes.data(), bytes.size());
  return bytes;
}

std::optional<std::string> Channel::ReceiveText(std::chrono::milliseconds time) {
  const auto bytes = Receive(time);
  if (!bytes) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

void Channel::CheckSize(size_t bytes, size_t expected) {
  if (bytes == expected) return;
  throw Error(ExitStatus::kInternal, "a process of the cluster sent " + std::to_string(bytes) + " bytes instead of " +
                                         std::to_string(expected));
}

Child::Child(std::string name, const std::function<void(Channel& parent)>& body) : Child(name, Fork(name, body)) {}

void Child::Run(int fd, pid_t parent, LastWord& last_word, const std::function<void(Channel&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(static_cast<int>(ExitStatus::kIo));
  // A signal to the whole group is the parent's matter, which lets its children end in order.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const auto leave = [&](ExitStatus status, const char* text) {
    std::strncpy(last_word.text, text, sizeof last_word.text - 1);
    last_word.status = static_cast<int>(status);
  };
  try {
    Channel channel(fd);
    body(channel);
  } catch (const Error& e) {
    leave(e.status(), e.what());
  } catch (const std::bad_alloc&) {
    leave(ExitStatus::kNoSpace, "out of memory");
  } catch (const std::exception& e) {
    leave(ExitStatus::kInternal, e.what());
  }
  // The parent's destructors and its buffered output are the parent's.
  _exit(last_word.status);
}

Child::Forked Child::Fork(const std::string& name, const std::function<void(Channel& parent)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ExitStatus::kIo, "no channel to " + name + ": " + std::strerror(errno));
  }
  void* shared = mmap(nullptr, sizeof(LastWord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw Error(ExitStatus::kNoSpace, "no memory for " + name + ": " + std::strerror(errno));
  auto* last_word = static_cast<LastWord*>(shared);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw Error(ExitStatus::kNoSpace, "no process for " + name + ": " + std::strerror(error));
  }
  if (pid == 0) {
    close(ends[0]);
    Run(ends[1], parent, *last_word, body);
  }
  close(ends[1]);
  return {pid, ends[0], last_word};
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, 0)),
      how_(other.how_),
      last_word_(std::exchange(other.last_word_, nullptr)),
      channel_(std::move(other.channel_)) {}

Child::~Child() {
  if (pid_ != 0) {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (last_word_ != nullptr) munmap(last_word_, sizeof(LastWord));
}

bool Child::Wait(std::chrono::milliseconds time) {
  const uint64_t begin = host::MonotonicNanos();
  while (pid_ != 0 && waitpid(pid_, &how_, WNOHANG) != pid_) {
    const std::chrono::nanoseconds waited(host::MonotonicNanos() - begin);
    if (waited >= time) return false;
    host::SleepFor(std::chrono::milliseconds(2));
  }
  pid_ = 0;
  return true;
}

void Child::Kill() {
  if (pid_ != 0) kill(pid_, SIGKILL);
}

bool Child::WasKilled() const {
  CHECK(pid_ == 0);
  return WIFSIGNALED(how_) && !IsOfAFault(WTERMSIG(how_));
}

std::optional<Error> Child::Failure() const {
  if (WIFSIGNALED(how_)) {
    const int number = WTERMSIG(how_);
    return Error(WasKilled() ? ExitStatus::kIo : ExitStatus::kInternal,
                 name_ + (WasKilled() ? " was ended by signal " : " crashed, by signal ") + std::to_string(number));
  }
  if (WEXITSTATUS(how_) == 0) return std::nullopt;
  // A failed check has printed its own line.
  const std::string why = last_word_->status == 0 ? " has ended by itself" : std::string(": ") + last_word_->text;
  return Error(static_cast<ExitStatus>(WEXITSTATUS(how_)), name_ + why);
}

}  // namespace dbx
