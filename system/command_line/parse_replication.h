// What the command line says of replicas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "system/command_line/options.h"

namespace dbx {

struct HostAndPort {
  std::string host;
  uint16_t port;
};

// "HOST:PORT", or a port alone, of `default_host`. [HOST]:PORT where the host has colons. Throws BadValue.
HostAndPort ParseHostAndPort(std::string_view text, std::string_view default_host);

// What is wrong with the options of replicas, for a usage error; "": nothing.
std::string ReplicationMistake(const Options& options);

}  // namespace dbx
