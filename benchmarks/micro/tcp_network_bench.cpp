// How many small messages TcpNetwork carries on the loopback interface: the lock process answers each request of a few
// masters by a message of its size, 40 bytes by default. Counted for one core: by the processor time of the lock
// process's network thread, which receives, handles and answers, and by the clock.
//
// Run by hand: build/micro/tcp_network_bench [MASTERS [MESSAGES_UNDER_WAY [BODY_BYTES]]].
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/host.h"
#include "multi_master/tcp_network.h"

namespace dbx::mm {
namespace {

constexpr MessageType kRequest{100};
constexpr uint64_t kMessagesMax = 2'000'000, kBytesMax = uint64_t{2} << 30;
constexpr size_t kBodyBytes = 40;

// Answers each request.
class Server final : public Network::Receiver {
 public:
  explicit Server(TcpNetwork& network) : network_(network) {}

  bool OnMessage(NodeId from, MessageType type, std::span<const std::byte> body) override {
    if (count++ % 1024 == 0) cpu_nanos = host::ThreadCpuNanos();
    network_.Send(from, type, body);
    return true;
  }
  void OnLinkDown(NodeId) override {}

  uint64_t count = 0;
  Atomic<uint64_t> cpu_nanos{0};  // of the network's thread

 private:
  TcpNetwork& network_;
};

// Keeps some requests under way until its share is done.
class Client final : public Network::Receiver {
 public:
  Client(TcpNetwork& network, uint64_t share, size_t body_bytes) : network_(network), left_(share), body_(body_bytes) {}

  void Send(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) network_.Send({Role::kLocks, 0}, kRequest, body_);
  }
  bool OnMessage(NodeId, MessageType, std::span<const std::byte>) override {
    if (left_.fetch_sub(1) > 1) Send(1);
    return true;
  }
  void OnLinkDown(NodeId) override { std::puts("a link broke"); }
  bool done() const { return static_cast<int64_t>(left_.load()) <= 0; }

 private:
  TcpNetwork& network_;
  Atomic<uint64_t> left_;
  const std::vector<std::byte> body_;
};

TcpOptions OptionsOf(NodeId self) {
  TcpOptions options;
  options.terms = {ClusterId(1), ClusterEpoch(1), self};
  return options;
}

void Measure(uint8_t masters, uint64_t under_way, size_t body_bytes = kBodyBytes) {
  TcpNetwork locks(OptionsOf({Role::kLocks, 0}));
  Server server(locks);
  locks.Start(server);
  std::vector<std::unique_ptr<TcpNetwork>> networks;
  std::vector<std::unique_ptr<Client>> clients;
  const uint64_t messages = std::min({kMessagesMax, 50'000 * under_way, kBytesMax / body_bytes});
  const uint64_t begin = host::MonotonicNanos();
  for (uint8_t i = 0; i < masters; ++i) {
    networks.push_back(std::make_unique<TcpNetwork>(OptionsOf({Role::kMaster, i})));
    networks[i]->SetAddress({Role::kLocks, 0}, "127.0.0.1", locks.port());
    clients.push_back(std::make_unique<Client>(*networks[i], messages / masters, body_bytes));
    networks[i]->Start(*clients[i]);
    clients[i]->Send(under_way);
  }
  for (const auto& client : clients) {
    while (!client->done()) host::SleepFor(std::chrono::milliseconds(1));
  }
  const double seconds = static_cast<double>(host::MonotonicNanos() - begin) / 1e9;
  for (const auto& network : networks) network->Stop();
  locks.Stop();
  const double count = static_cast<double>(server.count), cpu = static_cast<double>(server.cpu_nanos.load()) / 1e9;
  std::printf(
      "%u masters, %llu messages of %zu bytes under way each: %.0f k/s by the clock, %.0f k/s a core of the lock "
      "process\n",
      unsigned{masters}, static_cast<unsigned long long>(under_way), body_bytes, count / seconds / 1e3,
      count / cpu / 1e3);
}

}  // namespace
}  // namespace dbx::mm

int main(int argc, char** argv) {
  if (argc > 1) {
    dbx::mm::Measure(static_cast<uint8_t>(std::atoi(argv[1])), argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 64,
                     argc > 3 ? std::strtoull(argv[3], nullptr, 10) : dbx::mm::kBodyBytes);
    return 0;
  }
  for (const uint8_t masters : {1, 4}) {
    for (const uint64_t under_way : {1, 16, 256}) dbx::mm::Measure(masters, under_way);
  }
}
