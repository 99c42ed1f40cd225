// A Network over TCP (Boost.Asio).
//
// One thread does all input and output. A Send appends the message to its peer's queue and wakes that thread once per
// batch: while a write is under way, or the messages of one read are handled, others gather, and go out in one write.
// That is what carries small messages at some hundred thousand a second; TCP_NODELAY is set, so a single one does not
// wait. A queue is bounded: the link to a peer that does not read is closed.
//
// Making a link. Either side may connect, at the same time too:
//
//   connecting side   kHello -->                    --> kConfirm, then its messages
//   accepting side              --> kWelcome             the link is made: its messages
//                               --> kBusy           it is connecting itself, and its NodeId is smaller: it goes on
//                               --> kRefused        with the reason
//
//   kIdle -> kDialing -> kUp         by a Send;  kDialing -> kIdle if that fails: the queue is dropped, OnLinkDown
//   kIdle, kDialing -> kAwaiting     kWelcome was sent, or kBusy came;  kAwaiting -> kUp by kConfirm, else as above
//   kUp -> kIdle                     broken, or a bad message: as above
//   kUp -> kUp                       kConfirm of a new link: the peer has lost the old one; OnLinkDown between them
//
// There is neither encryption nor a password: it is for hosts that trust their network, and by default for one host.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "multi_master/message.h"
#include "multi_master/network.h"

namespace dbx::mm {

struct TcpOptions {
  LinkTerms terms;
  std::string host = "127.0.0.1";             // where to listen
  uint16_t port = 0;                          // 0: any that is free
  size_t queue_bytes_max = size_t{64} << 20;  // of a peer
  std::chrono::milliseconds dial_timeout{1000};
  std::chrono::milliseconds redial_interval{20};  // from a failed attempt to the next one
  // One line for each link that was refused, or closed because of what its peer did. By the network's thread.
  std::function<void(const std::string&)> report;
};

class TcpNetwork final : public Network {
 public:
  // Listens; connections wait until Start. Throws Error (kIo) where the address cannot be had.
  explicit TcpNetwork(TcpOptions options);
  ~TcpNetwork() override;

  uint16_t port() const;
  // Before Start. Throws Error (kIo) where the host is unknown. Without an address a process can only connect by
  // itself.
  void SetAddress(NodeId node, const std::string& host, uint16_t port);
  // Any thread. Messages from now on are of this epoch, and have to be.
  void SetEpoch(ClusterEpoch epoch);

  NodeId self() const override;
  void Start(Receiver& receiver) override;
  void Send(NodeId to, MessageType type, std::span<const std::byte> body) override;
  void Stop() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dbx::mm
