#include "system/cluster/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/host.h"

namespace dbx {
namespace {

[[noreturn]] void Gone() { throw Error(ExitStatus::kIo, "the process at the other end has ended"); }

[[noreturn]] void RunChild(const std::string& name, int fd, const std::function<void(Channel&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  int status = static_cast<int>(ExitStatus::kOk);
  try {
    Channel parent(fd);
    body(parent);
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s: %s\n", name.c_str(), e.what());
    status = static_cast<int>(e.status());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s: %s\n", name.c_str(), e.what());
    status = static_cast<int>(ExitStatus::kInternal);
  }
  // The parent's destructors and its buffered output are the parent's.
  std::fflush(stderr);
  _exit(status);
}

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

Child::Forked Child::Fork(const std::string& name, const std::function<void(Channel& parent)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ExitStatus::kIo, "no channel to " + name + ": " + std::strerror(errno));
  }
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    close(ends[0]);
    close(ends[1]);
    throw Error(ExitStatus::kNoSpace, "no process for " + name + ": " + std::strerror(error));
  }
  if (pid == 0) {
    close(ends[0]);
    RunChild(name, ends[1], body);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

Child::Child(Child&& other) noexcept
    : name_(std::move(other.name_)), pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}

Child::~Child() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<std::string> Child::Wait(std::chrono::milliseconds time) {
  CHECK(pid_ != 0);
  const uint64_t begin = host::MonotonicNanos();
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) != pid_) {
    const std::chrono::nanoseconds waited(host::MonotonicNanos() - begin);
    if (waited >= time) return std::nullopt;
    host::SleepFor(std::chrono::milliseconds(2));
  }
  pid_ = 0;
  if (WIFSIGNALED(status)) return name_ + " was ended by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) return name_ + " ended with status " + std::to_string(WEXITSTATUS(status));
  return "";
}

}  // namespace dbx
