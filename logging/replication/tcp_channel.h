// A replica's connection over TCP (models ReplicaChannel), over Boost.Asio.
//
// There is neither encryption nor a password: it is for hosts that trust their network. Errors are one line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "logging/replication/channel.h"

namespace dbx {

// Throws Error (kIo) where none listens at "HOST:PORT".
std::unique_ptr<ReplicaChannel> ConnectTcp(const std::string& host, uint16_t port);

class TcpListener {
 public:
  // Port 0: any that is free. Throws Error (kIo) where the address cannot be had.
  TcpListener(const std::string& host, uint16_t port);
  ~TcpListener();

  uint16_t port() const;
  // The next connection. Null soon after `stopped` is true; a receive of the channel fails soon after
  // `stopped_receiving` is.
  std::unique_ptr<ReplicaChannel> Accept(const std::function<bool()>& stopped, std::function<bool()> stopped_receiving);

 private:
  class Acceptor;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace dbx
