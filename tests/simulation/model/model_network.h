// The network of a modelled cluster (models Network): like TcpNetwork, one thread of each process does all input and
// output, in batches. What that costs is charged to it: for each batch that is written to or read from a peer, for
// each message, and for each KiB. Then a message passes the sender's and the receiver's line, each with a bandwidth,
// and takes a latency between them. Nothing is lost, but to a process that has stopped.
//
// Threads: fibres of one simulation (virtual_cores.h).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/host.h"
#include "multi_master/message.h"
#include "multi_master/network.h"

namespace dbx::sim {

struct NetworkShape {
  uint64_t latency_nanos = 50'000;  // one way
  double gigabits = 25;             // a second, of each process's line, either way
  // Processor time of each side.
  uint64_t batch_nanos = 0;
  uint64_t message_nanos = 0;
  uint64_t kib_nanos = 0;
};

class ModelNetwork {
 public:
  static constexpr size_t kRoles = 5;  // Role has values from 1 on

  explicit ModelNetwork(const NetworkShape& shape);
  ~ModelNetwork();
  ModelNetwork(const ModelNetwork&) = delete;
  ModelNetwork& operator=(const ModelNetwork&) = delete;

  // Its Start is called by a fibre of the process's group. Owned by this.
  mm::Network& Join(mm::NodeId node);

  uint64_t messages() const { return messages_; }
  uint64_t bytes() const { return bytes_; }
  // Between masters and the lock process, either way; and so on.
  uint64_t messages_with(mm::Role role) const { return by_role_[static_cast<size_t>(role)]; }
  // That the processes of a role have sent.
  uint64_t bytes_of(mm::Role role) const { return bytes_of_[static_cast<size_t>(role)]; }

 private:
  class Endpoint;
  struct Message {
    mm::NodeId peer;  // the receiver's, and on arrival the sender's
    mm::MessageType type;
    bool is_down = false;
    std::vector<std::byte> body;
    uint64_t due = 0;

    uint64_t wire_bytes() const { return sizeof(mm::MessageHeader) + body.size(); }
  };

  Endpoint* Find(mm::NodeId node) const;
  void Count(const Message& message, mm::NodeId from);
  uint64_t NanosOfLine(uint64_t bytes) const {
    return static_cast<uint64_t>(static_cast<double>(bytes) * 8 / shape_.gigabits);
  }

  const NetworkShape shape_;
  std::map<mm::NodeId, std::unique_ptr<Endpoint>> endpoints_;
  uint64_t messages_ = 0, bytes_ = 0;
  std::array<uint64_t, kRoles> by_role_{}, bytes_of_{};
};

}  // namespace dbx::sim
