// A process that this one has forked, and the channel between them.
//
// The child has its parent's memory as it was: a database that was loaded before is shared until one of them writes to
// it. It ends when its body returns, when the parent is gone, or when the parent kills it; Ctrl-C goes to the parent
// alone, which then ends its children in order.
//
// Threads: the parent forks before it starts any. A channel belongs to one thread at each end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace dbx {

class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(Channel&& other) noexcept;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Throws Error (kIo) once the other side is gone.
  void Send(std::span<const std::byte> bytes);
  void Send(const std::string& text) { Send(std::as_bytes(std::span(text))); }
  // The other side's next message. Nothing: none came in time. Throws Error (kIo) once the other side is gone.
  std::optional<std::vector<std::byte>> Receive(std::chrono::milliseconds time);
  std::optional<std::string> ReceiveText(std::chrono::milliseconds time);

  template <class T>
  requires(std::is_trivially_copyable_v<T>) void SendValue(const T& value) {
    Send(std::as_bytes(std::span(&value, 1)));
  }
  // Throws Error (kInternal) where the message is no T.
  template <class T>
  requires(std::is_trivially_copyable_v<T>) std::optional<T> ReceiveValue(std::chrono::milliseconds time) {
    const auto bytes = Receive(time);
    if (!bytes) return std::nullopt;
    T value;
    CheckSize(bytes->size(), sizeof value);
    std::memcpy(&value, bytes->data(), sizeof value);
    return value;
  }

 private:
  static void CheckSize(size_t bytes, size_t expected);
  void ReadFully(std::byte* to, size_t bytes);

  int fd_;
};

class Child {
 public:
  // Forks. An exception that leaves `body` is what Failure gives.
  Child(std::string name, const std::function<void(Channel& parent)>& body);
  // Kills it, unless it has ended.
  ~Child();
  Child(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const std::string& name() const { return name_; }
  Channel& channel() { return channel_; }
  // Whether it has ended in time.
  bool Wait(std::chrono::milliseconds time);
  // By SIGKILL, if it has not ended.
  void Kill();
  // Of one that has ended: by a signal from outside. One of a fault of its own, such as SIGSEGV, is none of these.
  bool WasKilled() const;
  // Of one that has ended: why, with the name, and the status that this is for the whole. Nothing: its body returned.
  std::optional<Error> Failure() const;

 private:
  // A page that both share: what the child leaves behind.
  struct LastWord {
    int status;
    char text[2048];
  };
  struct Forked {
    pid_t pid;
    int fd;
    LastWord* last_word;
  };
  Child(std::string name, Forked forked)
      : name_(std::move(name)), pid_(forked.pid), last_word_(forked.last_word), channel_(forked.fd) {}
  [[noreturn]] static void Run(int fd, pid_t parent, LastWord& last_word, const std::function<void(Channel&)>& body);
  static Forked Fork(const std::string& name, const std::function<void(Channel& parent)>& body);

  std::string name_;
  pid_t pid_;    // 0: it has ended
  int how_ = 0;  // as waitpid says
  LastWord* last_word_;
  Channel channel_;
};

}  // namespace dbx
