// A connection that carries bytes in order, both ways, between the process of a run and that of its replica.
//
// Models: TCP (tcp_channel.h), and a pipe between threads that a test can break (tests/logging/replication/pipe.h).
//
// Threads: one sends, another one receives; Close by any, after which both fail.
#pragma once

#include <cstddef>
#include <span>

namespace dbx {

class ReplicaChannel {
 public:
  virtual ~ReplicaChannel() = default;

  // Throws Error (kIo) once the connection is broken, with the reason alone.
  virtual void Send(std::span<const std::byte> bytes) = 0;
  // All of `to`. False: the other side has closed the connection, before the first byte. Throws as Send, also where it
  // ends within `to`.
  virtual bool Receive(std::span<std::byte> to) = 0;
  virtual void Close() = 0;
};

}  // namespace dbx
