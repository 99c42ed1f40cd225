// The bytes of messages: what every network of a cluster sends, and how it judges bytes that a peer has sent.
//
//   link     := hello message*                 each way
//   message  := MessageHeader body             integers little-endian
//
// A peer may send anything. A MessageStream takes its bytes and yields whole messages that pass every check, in order;
// the first that does not ends the stream with one line that says why, and the network closes the link. Nothing of a
// refused message reaches a receiver.
//
// The first message of a link is a Hello: which process it is. Epochs are compared between processes that the lock
// process has told of each other; the lock process itself, which hands out epochs, hears and is heard at any.
//
// Types of messages, by folder: 1-99 here, lock/ 100-199, log/ 200-299, store/ 300-399, master/ 400-499.
//
// Threads: none of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multi_master/names.h"
#include "multi_master/network.h"

namespace dbx::mm {

// Random, the same in all processes of a cluster: messages of another one are refused.
using ClusterId = StrongInt<struct ClusterIdTag>;

inline constexpr uint16_t kMessageVersion = 1;
inline constexpr size_t kMessageBodyBytesMax = size_t{4} << 20;

struct MessageHeader {
  uint32_t crc;         // CRC32C of the rest of the header and of the body
  uint16_t version;     // kMessageVersion
  uint16_t type;        // MessageType
  uint32_t body_bytes;  // at most kMessageBodyBytesMax
  uint32_t epoch;       // ClusterEpoch of the sender
  uint64_t cluster;     // ClusterId
};
static_assert(sizeof(MessageHeader) == 24);

// The messages of the networks themselves. A receiver gets only types from kFirstOfReceivers on.
inline constexpr MessageType kHello{1};    // from the process that connects; body: role, index
inline constexpr MessageType kWelcome{2};  // the answer; body as of kHello
inline constexpr MessageType kBusy{3};     // the answer of a process that is connecting itself, and has precedence
inline constexpr MessageType kRefused{4};  // the answer otherwise; body: text
inline constexpr MessageType kConfirm{5};  // the link is made
inline constexpr MessageType kFirstOfReceivers{10};

// What a process is, and what it takes for messages of its cluster.
struct LinkTerms {
  ClusterId cluster;
  ClusterEpoch epoch;
  NodeId self;
};
// Whether the epochs of messages between the two are compared.
constexpr bool ComparesEpochs(Role a, Role b) { return a != Role::kLocks && b != Role::kLocks; }

// Appends a message.
void EncodeMessage(const LinkTerms& terms, MessageType type, std::span<const std::byte> body,
                   std::vector<std::byte>& to);
std::vector<std::byte> HelloBody(NodeId self);
// Nothing: the body names no process.
std::optional<NodeId> DecodeHello(std::span<const std::byte> body);

struct Message {
  MessageType type;
  ClusterEpoch epoch;
  std::span<const std::byte> body;  // valid until the stream is given more bytes
};

class MessageStream {
 public:
  enum class Next : uint8_t { kMessage, kIncomplete, kRefused };

  explicit MessageStream(ClusterId cluster) : cluster_(cluster) {}

  // Where the next bytes go; at least `bytes`. Taken() says how many there were.
  std::span<std::byte> Room(size_t bytes);
  void Taken(size_t bytes) { end_ += bytes; }
  void Append(std::span<const std::byte> bytes);

  // The next message. After kRefused nothing else is yielded.
  Next Take(Message& message);
  // What is wrong with the refused bytes.
  const std::string& refusal() const { return refusal_; }

 private:
  Next Refuse(std::string why);

  const ClusterId cluster_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;  // of the bytes that no message has taken
  std::string refusal_;
};

// Why a message of this epoch is refused; empty: it is not.
std::string EpochFault(ClusterEpoch theirs, ClusterEpoch ours);

}  // namespace dbx::mm
