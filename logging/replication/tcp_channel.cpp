#include "logging/replication/tcp_channel.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"

// clang-format off: Boost.Asio 1.74 uses <utility> without including it.
#include <boost/asio.hpp>
// clang-format on

namespace dbx {
namespace {

using boost::asio::ip::tcp;

constexpr int kLookMillis = 100;   // from one look at `stopped` to the next
constexpr int kProbeSeconds = 10;  // of a connection that carries nothing, for a host that is dead

[[noreturn]] void Throw(const std::string& what, const boost::system::error_code& error) {
  throw Error(ExitStatus::kIo, what + ": " + error.message());
}

// A small frame is sent at once, and a host that is dead is found out.
void SetOptions(tcp::socket& socket) {
  socket.set_option(tcp::no_delay(true));
  socket.set_option(boost::asio::socket_base::keep_alive(true));
  const int fd = socket.native_handle(), seconds = kProbeSeconds;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof seconds);
}

bool IsReadable(int fd, int millis) {
  pollfd waited{fd, POLLIN, 0};
  return ::poll(&waited, 1, millis) > 0;
}

class TcpChannel final : public ReplicaChannel {
 public:
  TcpChannel(std::shared_ptr<boost::asio::io_context> context, tcp::socket socket, std::function<bool()> stopped)
      : context_(std::move(context)), socket_(std::move(socket)), stopped_(std::move(stopped)) {
    SetOptions(socket_);
  }

  void Send(std::span<const std::byte> bytes) override {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error) Throw("cannot send", error);
  }

  bool Receive(std::span<std::byte> to) override {
    for (size_t got = 0; got < to.size();) {
      if (begin_ == end_ && !Fill()) {
        if (got == 0) return false;
        throw Error(ExitStatus::kIo, "the connection was closed within a frame");
      }
      const size_t bytes = std::min(to.size() - got, end_ - begin_);
      std::memcpy(to.data() + got, buffer_.data() + begin_, bytes);
      begin_ += bytes, got += bytes;
    }
    return true;
  }

  // The system's call, which threads that are sending or receiving may see at any time.
  void Close() override { ::shutdown(socket_.native_handle(), SHUT_RDWR); }

 private:
  // False: the other side has closed it. Not by the socket object, which another thread may be sending with.
  bool Fill() {
    bool is_readable = !stopped_;
    while (!is_readable) {
      if (stopped_()) throw Error(ExitStatus::kIo, "interrupted");
      is_readable = IsReadable(socket_.native_handle(), kLookMillis);
    }
    ssize_t got = 0;
    do {
      got = ::recv(socket_.native_handle(), buffer_.data(), buffer_.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) Throw("cannot receive", {errno, boost::system::system_category()});
    begin_ = 0, end_ = static_cast<size_t>(got);
    return got > 0;
  }

  const std::shared_ptr<boost::asio::io_context> context_;
  tcp::socket socket_;
  const std::function<bool()> stopped_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(256 << 10);
  size_t begin_ = 0, end_ = 0;  // of the received bytes that no caller has taken
};

}  // namespace

std::unique_ptr<ReplicaChannel> ConnectTcp(const std::string& host, uint16_t port) {
  const std::string place = host + ":" + std::to_string(port);
  auto context = std::make_shared<boost::asio::io_context>();
  boost::system::error_code error;
  const auto found = tcp::resolver(*context).resolve(host, std::to_string(port), error);
  if (error) Throw("cannot find the replica at " + place, error);
  tcp::socket socket(*context);
  boost::asio::connect(socket, found, error);
  if (error) {
    Throw("no replica answers at " + place + "; start it with: ./rundb --replica=" + place + " --log_dir=DIRECTORY",
          error);
  }
  return std::make_unique<TcpChannel>(std::move(context), std::move(socket), nullptr);
}

class TcpListener::Acceptor {
 public:
  std::shared_ptr<boost::asio::io_context> context = std::make_shared<boost::asio::io_context>();
  tcp::acceptor acceptor{*context};
};

TcpListener::TcpListener(const std::string& host, uint16_t port) : acceptor_(std::make_unique<Acceptor>()) {
  const std::string what = "cannot listen at " + host + ":" + std::to_string(port);
  boost::system::error_code error;
  const auto found = tcp::resolver(*acceptor_->context).resolve(host, std::to_string(port), error);
  if (error) Throw(what, error);
  const tcp::endpoint endpoint = *found.begin();
  tcp::acceptor& acceptor = acceptor_->acceptor;
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);
  if (error) Throw(what, error);
}

TcpListener::~TcpListener() = default;

uint16_t TcpListener::port() const { return acceptor_->acceptor.local_endpoint().port(); }

std::unique_ptr<ReplicaChannel> TcpListener::Accept(const std::function<bool()>& stopped,
                                                    std::function<bool()> stopped_receiving) {
  while (!IsReadable(acceptor_->acceptor.native_handle(), kLookMillis)) {
    if (stopped()) return nullptr;
  }
  tcp::socket socket(*acceptor_->context);
  boost::system::error_code error;
  acceptor_->acceptor.accept(socket, error);
  if (error) Throw("cannot accept a connection", error);
  return std::make_unique<TcpChannel>(acceptor_->context, std::move(socket), std::move(stopped_receiving));
}

}  // namespace dbx
