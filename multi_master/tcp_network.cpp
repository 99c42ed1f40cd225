#include "multi_master/tcp_network.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/host.h"

// clang-format off: Boost.Asio 1.74 uses <utility> without including it.
#include <boost/asio.hpp>
// clang-format on

namespace dbx::mm {
namespace {

using boost::asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr size_t kReadBytes = 256 << 10;
constexpr int kProbeSeconds = 10;  // of a link that carries nothing, for a host that is dead

struct Peer;

// A connection, from its first byte on.
struct Connection {
  enum class Phase : uint8_t { kHelloDue, kConfirmDue, kWelcomeDue, kUp, kClosed };

  Connection(boost::asio::io_context& context, ClusterId cluster, Phase first)
      : socket(context), stream(cluster), phase(first) {}

  tcp::socket socket;
  MessageStream stream;
  Phase phase;
  Peer* peer = nullptr;            // once it is known
  std::vector<std::byte> writing;  // of the write under way
};
using ConnectionPtr = std::shared_ptr<Connection>;
using Phase = Connection::Phase;

// All but the queue belongs to the network's thread.
struct Peer {
  enum class State : uint8_t { kIdle, kDialing, kAwaiting, kUp };  // transitions: tcp_network.h

  Peer(boost::asio::io_context& context, NodeId which) : node(which), timer(context) {}

  const NodeId node;
  std::optional<tcp::endpoint> address;
  State state = State::kIdle;
  ConnectionPtr connection;  // kDialing, kUp: that one; kAwaiting: the one that should confirm, if it is there yet
  boost::asio::steady_timer timer;
  boost::asio::steady_timer::time_point next_dial{};

  Mutex mutex;
  std::vector<std::byte> queue;  // the rest is guarded by mutex, too
  size_t writing_bytes = 0;
  bool is_woken = false;  // the network's thread will look at the queue
  bool is_full = false;   // what is sent is dropped until the link is closed
};
using State = Peer::State;

std::span<const std::byte> BytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

void SetOptions(tcp::socket& socket) {
  ErrorCode ignored;  // of a connection that is broken already, which its first read finds
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  const int fd = socket.native_handle(), seconds = kProbeSeconds;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
}

tcp::endpoint EndpointOf(boost::asio::io_context& context, const std::string& what, const std::string& host,
                         uint16_t port) {
  ErrorCode error;
  const auto found = tcp::resolver(context).resolve(host, std::to_string(port), error);
  if (error) throw Error(ExitStatus::kIo, what + ": " + error.message());
  return *found.begin();
}

std::string TextOf(const tcp::endpoint& endpoint) {
  return endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

}  // namespace

class TcpNetwork::Impl {
 public:
  explicit Impl(TcpOptions options)
      : options_(std::move(options)), epoch_(options_.terms.epoch.value()), acceptor_(context_) {
    const std::string what = "cannot listen at " + options_.host + ":" + std::to_string(options_.port);
    const tcp::endpoint endpoint = EndpointOf(context_, what, options_.host, options_.port);
    ErrorCode error;
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
    if (error) throw Error(ExitStatus::kIo, what + ": " + error.message());
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }
  NodeId self() const { return options_.terms.self; }

  void SetAddress(NodeId node, const std::string& host, uint16_t port) {
    const std::string what = "cannot find " + NameOf(node) + " at " + host + ":" + std::to_string(port);
    PeerOf(node).address = EndpointOf(context_, what, host, port);
  }
  void SetEpoch(ClusterEpoch epoch) { epoch_.store(epoch.value()); }

  void Start(Receiver& receiver) {
    receiver_ = &receiver;
    Accept();
    thread_ = Thread([this] {
      const auto work = boost::asio::make_work_guard(context_);
      context_.run();
    });
  }

  void Send(NodeId to, MessageType type, std::span<const std::byte> body) {
    CHECK(to != self() && type >= kFirstOfReceivers);
    Peer& peer = PeerOf(to);
    bool wakes = false;
    {
      const std::lock_guard lock(peer.mutex);
      const size_t bytes = peer.queue.size() + peer.writing_bytes + sizeof(MessageHeader) + body.size();
      peer.is_full |= bytes > options_.queue_bytes_max;
      if (!peer.is_full) EncodeMessage(Terms(), type, body, peer.queue);
      wakes = !std::exchange(peer.is_woken, true);
    }
    if (wakes) boost::asio::post(context_, [this, &peer] { Wake(peer); });
  }

  void Stop() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    acceptor_.close();
    // Other threads may still send, and make peers.
    const std::lock_guard lock(peers_mutex_);
    for (const auto& peer : all_peers_) {
      if (peer->connection != nullptr) Close(*peer->connection);
      peer->connection.reset();
    }
  }

 private:
  LinkTerms Terms() const {
    return {options_.terms.cluster, ClusterEpoch(epoch_.load(std::memory_order_relaxed)), self()};
  }

  Peer& PeerOf(NodeId node) {
    Atomic<Peer*>& place = peers_[static_cast<size_t>(node.role)][node.index];
    if (Peer* const known = place.load(std::memory_order_acquire)) return *known;
    const std::lock_guard lock(peers_mutex_);
    if (Peer* const known = place.load(std::memory_order_acquire)) return *known;
    all_peers_.push_back(std::make_unique<Peer>(context_, node));
    place.store(all_peers_.back().get(), std::memory_order_release);
    return *all_peers_.back();
  }

  void Report(const std::string& line) const {
    if (options_.report) options_.report(line);
  }

  // --- queues ---

  void Wake(Peer& peer) {
    bool is_full = false;
    {
      const std::lock_guard lock(peer.mutex);
      peer.is_woken = false;
      is_full = peer.is_full;
    }
    if (is_full) {
      Report("closed the link to " + NameOf(peer.node) + ": it does not read what is sent");
      return Lose(peer);
    }
    if (peer.state == State::kUp) return Write(peer);
    if (peer.state == State::kIdle) Dial(peer);
  }

  // What has gathered, in one write.
  void Write(Peer& peer) {
    const ConnectionPtr connection = peer.connection;
    if (!connection->writing.empty()) return;
    {
      const std::lock_guard lock(peer.mutex);
      connection->writing.swap(peer.queue);
      peer.writing_bytes = connection->writing.size();
    }
    if (connection->writing.empty()) return;
    boost::asio::async_write(connection->socket, boost::asio::buffer(connection->writing),
                             [this, &peer, connection](const ErrorCode& error, size_t) {
                               if (connection->phase != Phase::kUp) return;
                               if (error) return Lose(peer);
                               connection->writing.clear();
                               Write(peer);
                             });
  }

  // The link, or the attempt to make one, has failed: what was sent is lost.
  void Lose(Peer& peer) {
    if (peer.connection != nullptr) Close(*std::exchange(peer.connection, nullptr));
    peer.state = State::kIdle;
    peer.timer.cancel();
    peer.next_dial = boost::asio::steady_timer::clock_type::now() + options_.redial_interval;
    {
      const std::lock_guard lock(peer.mutex);
      peer.queue.clear();
      peer.writing_bytes = 0;
      peer.is_full = false;
    }
    receiver_->OnLinkDown(peer.node);
  }

  static void Close(Connection& connection) {
    ErrorCode ignored;
    connection.phase = Phase::kClosed;
    connection.socket.close(ignored);
  }

  // --- making links ---

  void Dial(Peer& peer) {
    if (!peer.address) return DialNone(peer);
    peer.state = State::kDialing;
    const auto connection = std::make_shared<Connection>(context_, options_.terms.cluster, Phase::kWelcomeDue);
    connection->peer = &peer;
    peer.connection = connection;
    const auto now = boost::asio::steady_timer::clock_type::now();
    if (peer.next_dial <= now) return Connect(peer, connection);
    peer.timer.expires_at(peer.next_dial);
    peer.timer.async_wait([this, &peer, connection](const ErrorCode& error) {
      if (!error && connection->phase == Phase::kWelcomeDue) Connect(peer, connection);
    });
  }

  // An attempt without an address, which fails when one would be made: a receiver may send again at once.
  void DialNone(Peer& peer) {
    peer.state = State::kAwaiting;
    peer.timer.expires_at(peer.next_dial);
    peer.timer.async_wait([this, &peer](const ErrorCode& error) {
      if (!error && peer.state == State::kAwaiting && peer.connection == nullptr) Lose(peer);
    });
  }

  void Connect(Peer& peer, const ConnectionPtr& connection) {
    AwaitLink(peer);
    connection->socket.async_connect(*peer.address, [this, &peer, connection](const ErrorCode& error) {
      if (connection->phase == Phase::kClosed) return;
      if (error) return Lose(peer);
      SetOptions(connection->socket);
      WriteOwn(connection, kHello, HelloBody(self()));
      Read(connection);
    });
  }

  // If the link is not made in time, it is lost.
  void AwaitLink(Peer& peer) {
    peer.timer.expires_after(options_.dial_timeout);
    peer.timer.async_wait([this, &peer](const ErrorCode& error) {
      if (!error && (peer.state == State::kDialing || peer.state == State::kAwaiting)) Lose(peer);
    });
  }

  void Accept() {
    const auto connection = std::make_shared<Connection>(context_, options_.terms.cluster, Phase::kHelloDue);
    acceptor_.async_accept(connection->socket, [this, connection](const ErrorCode& error) {
      if (!error) {
        SetOptions(connection->socket);
        Read(connection);
      }
      if (acceptor_.is_open()) Accept();
    });
  }

  // A message of the network itself, before the link is made. Few bytes: they are written at once.
  void WriteOwn(const ConnectionPtr& connection, MessageType type, std::span<const std::byte> body) {
    std::vector<std::byte> bytes;
    EncodeMessage(Terms(), type, body, bytes);
    ErrorCode ignored;  // a broken connection is found by its next read
    boost::asio::write(connection->socket, boost::asio::buffer(bytes), ignored);
  }

  void TakeUp(Peer& peer, const ConnectionPtr& connection) {
    connection->phase = Phase::kUp;
    peer.connection = connection;
    peer.state = State::kUp;
    peer.timer.cancel();
    Write(peer);
  }

  // --- what peers send ---

  void Read(const ConnectionPtr& connection) {
    const std::span<std::byte> room = connection->stream.Room(kReadBytes);
    connection->socket.async_read_some(boost::asio::buffer(room.data(), room.size()),
                                       [this, connection](const ErrorCode& error, size_t bytes) {
                                         if (connection->phase == Phase::kClosed) return;
                                         if (error) return HangUp(connection);
                                         connection->stream.Taken(bytes);
                                         TakeAll(connection);
                                       });
  }

  void TakeAll(const ConnectionPtr& connection) {
    Message message;
    for (;;) {
      const MessageStream::Next next = connection->stream.Take(message);
      if (next == MessageStream::Next::kIncomplete) break;
      const std::string fault =
          next == MessageStream::Next::kRefused ? connection->stream.refusal() : Handle(connection, message);
      if (!fault.empty()) return Refuse(connection, fault);
      if (connection->phase == Phase::kClosed) return;
    }
    Read(connection);
  }

  // The other side has closed it, or it is broken.
  void HangUp(const ConnectionPtr& connection) {
    Peer* const peer = connection->peer;
    const bool is_current = peer != nullptr && peer->connection == connection;
    Close(*connection);
    if (is_current) Lose(*peer);
  }

  void Refuse(const ConnectionPtr& connection, const std::string& why) {
    ErrorCode ignored;
    const std::string who = connection->peer != nullptr ? NameOf(connection->peer->node)
                                                        : TextOf(connection->socket.remote_endpoint(ignored));
    Report((connection->phase == Phase::kUp ? "closed the link to " : "refused a link with ") + who + ": " + why);
    if (connection->phase == Phase::kHelloDue) WriteOwn(connection, kRefused, BytesOf(why));
    HangUp(connection);
  }

  // Why the message is refused; empty: it is not.
  std::string Handle(const ConnectionPtr& connection, const Message& message) {
    switch (connection->phase) {
      case Phase::kHelloDue:
        return OnHello(connection, message);
      case Phase::kWelcomeDue:
        return OnAnswer(connection, message);
      case Phase::kConfirmDue:
        return OnConfirm(connection, message);
      case Phase::kUp:
        return Deliver(*connection->peer, message);
      case Phase::kClosed:
        return "";
    }
    CHECK(false);
  }

  std::string Deliver(Peer& peer, const Message& message) {
    std::string fault = EpochFaultOf(peer.node, message);
    if (!fault.empty()) return fault;
    const std::string type = std::to_string(message.type.value());
    if (message.type < kFirstOfReceivers) return "a message of type " + type + " out of place";
    if (!receiver_->OnMessage(peer.node, message.type, message.body)) return "a malformed message of type " + type;
    return "";
  }

  std::string EpochFaultOf(NodeId node, const Message& message) const {
    return ComparesEpochs(self().role, node.role) ? EpochFault(message.epoch, Terms().epoch) : "";
  }

  std::string OnHello(const ConnectionPtr& connection, const Message& message) {
    const std::optional<NodeId> node = message.type == kHello ? DecodeHello(message.body) : std::nullopt;
    if (!node) return "a link that does not begin with a hello";
    if (*node == self()) return "a process that says it is this one, " + NameOf(*node);
    std::string fault = EpochFaultOf(*node, message);
    if (!fault.empty()) return fault;
    Peer& peer = PeerOf(*node);
    if (peer.state == State::kDialing && self() < *node) {
      WriteOwn(connection, kBusy, {});
      Close(*connection);
      return "";
    }
    connection->peer = &peer;
    connection->phase = Phase::kConfirmDue;
    WriteOwn(connection, kWelcome, HelloBody(self()));
    if (peer.state == State::kUp) return "";
    if (peer.connection != nullptr) Close(*peer.connection);
    peer.connection = connection;
    peer.state = State::kAwaiting;
    AwaitLink(peer);
    return "";
  }

  std::string OnConfirm(const ConnectionPtr& connection, const Message& message) {
    if (message.type != kConfirm) return "a link that is not confirmed";
    Peer& peer = *connection->peer;
    if (peer.state == State::kUp) {
      Lose(peer);
    } else if (peer.connection != nullptr && peer.connection != connection) {
      Close(*peer.connection);
    }
    TakeUp(peer, connection);
    return "";
  }

  std::string OnAnswer(const ConnectionPtr& connection, const Message& message) {
    Peer& peer = *connection->peer;
    if (message.type == kBusy) {
      Close(*connection);
      peer.connection.reset();
      peer.state = State::kAwaiting;
      AwaitLink(peer);
      return "";
    }
    if (message.type == kRefused) {
      return "it refuses: " + std::string(reinterpret_cast<const char*>(message.body.data()), message.body.size());
    }
    const std::optional<NodeId> node = message.type == kWelcome ? DecodeHello(message.body) : std::nullopt;
    if (!node) return "it does not answer a hello";
    if (*node != peer.node) return NameOf(*node) + " answers at its address";
    std::string fault = EpochFaultOf(*node, message);
    if (!fault.empty()) return fault;
    WriteOwn(connection, kConfirm, {});
    TakeUp(peer, connection);
    return "";
  }

  const TcpOptions options_;
  Atomic<uint32_t> epoch_;
  boost::asio::io_context context_{1};
  tcp::acceptor acceptor_;
  Receiver* receiver_ = nullptr;
  std::array<std::array<Atomic<Peer*>, 256>, static_cast<size_t>(Role::kLast) + 1> peers_{};
  Mutex peers_mutex_;
  std::vector<std::unique_ptr<Peer>> all_peers_;
  Thread thread_;
};

TcpNetwork::TcpNetwork(TcpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
TcpNetwork::~TcpNetwork() { impl_->Stop(); }

uint16_t TcpNetwork::port() const { return impl_->port(); }
NodeId TcpNetwork::self() const { return impl_->self(); }
void TcpNetwork::SetAddress(NodeId node, const std::string& host, uint16_t port) {
  impl_->SetAddress(node, host, port);
}
void TcpNetwork::SetEpoch(ClusterEpoch epoch) { impl_->SetEpoch(epoch); }
void TcpNetwork::Start(Receiver& receiver) { impl_->Start(receiver); }
void TcpNetwork::Send(NodeId to, MessageType type, std::span<const std::byte> body) { impl_->Send(to, type, body); }
void TcpNetwork::Stop() { impl_->Stop(); }

}  // namespace dbx::mm
