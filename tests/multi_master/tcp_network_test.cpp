// Links over real sockets: order, breaks, both sides connecting at once, peers that send anything or read nothing.
#include "multi_master/tcp_network.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

// clang-format off: Boost.Asio 1.74 uses <utility> without including it.
#include <boost/asio.hpp>
// clang-format on

#include "base/error.h"
#include "base/host.h"
#include "tests/multi_master/recorder.h"

namespace dbx::mm {
namespace {

using boost::asio::ip::tcp;

constexpr NodeId kMaster0{Role::kMaster, 0};
constexpr NodeId kMaster1{Role::kMaster, 1};
constexpr NodeId kLockProcess{Role::kLocks, 0};
constexpr ClusterId kCluster{77};

struct Node {
  explicit Node(NodeId self, ClusterEpoch epoch = ClusterEpoch(1), ClusterId cluster = kCluster, uint16_t port = 0,
                size_t queue_bytes_max = 64 << 20) {
    TcpOptions options;
    options.terms = {cluster, epoch, self};
    options.port = port;
    options.queue_bytes_max = queue_bytes_max;
    options.report = [this](const std::string& line) { reports.Add(line); };
    network = std::make_unique<TcpNetwork>(options);
  }
  Node& Knows(const Node& other) {
    network->SetAddress(other.network->self(), "127.0.0.1", other.network->port());
    return *this;
  }
  Node& Start() {
    network->Start(recorder);
    return *this;
  }
  void Send(const Node& to, const std::string& text) { SendText(*network, to.network->self(), text); }
  // The reason of the only report so far.
  std::string Reported() {
    EXPECT_TRUE(reports.AwaitCount(1));
    const std::string line = reports.heard()[0];
    return line.substr(line.rfind("0.0.1:") == std::string::npos ? 0 : line.find(' ', line.rfind("0.0.1:")) + 1);
  }

  Recorder recorder, reports;
  std::unique_ptr<TcpNetwork> network;
};

// A peer without manners.
struct RawPeer {
  explicit RawPeer(const Node& node) {
    socket.connect(tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), node.network->port()));
  }
  void Send(const std::vector<std::byte>& bytes) {
    boost::system::error_code ignored;
    boost::asio::write(socket, boost::asio::buffer(bytes), ignored);
  }
  void Send(MessageType type, std::span<const std::byte> body) {
    std::vector<std::byte> bytes;
    EncodeMessage({kCluster, ClusterEpoch(1), kMaster1}, type, body, bytes);
    Send(bytes);
  }
  void MakeLink() {
    Send(kHello, HelloBody(kMaster1));
    std::vector<std::byte> welcome(sizeof(MessageHeader) + 2);
    boost::asio::read(socket, boost::asio::buffer(welcome));
    Send(kConfirm, {});
  }
  bool IsClosed() {
    std::vector<std::byte> bytes(4096);
    boost::system::error_code error;
    while (!error) socket.read_some(boost::asio::buffer(bytes), error);
    return true;
  }

  boost::asio::io_context context;
  tcp::socket socket{context};
};

TEST(TcpNetworkTest, MessagesArriveInOrderBothWays) {
  Node a(kMaster0), b(kMaster1);
  a.Knows(b).Start();
  b.Start();
  b.recorder.on_message = [&](NodeId, MessageType, std::span<const std::byte> body) {
    b.network->Send(kMaster0, Recorder::kText, body);
  };
  for (int i = 0; i < 1000; ++i) a.Send(b, std::to_string(i));
  ASSERT_TRUE(a.recorder.AwaitCount(1000));
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.recorder.heard()[i], "master 1: " + std::to_string(i));
    EXPECT_EQ(b.recorder.heard()[i], "master 0: " + std::to_string(i));
  }
}

TEST(TcpNetworkTest, BothSidesMayConnectAtOnceAndLoseNothing) {
  for (int round = 0; round < 30; ++round) {
    Node a(kMaster0), b(kMaster1);
    a.Knows(b);
    b.Knows(a);
    a.Start();
    b.Start();
    a.Send(b, "from a");
    b.Send(a, "from b");
    ASSERT_TRUE(a.recorder.AwaitCount(1) && b.recorder.AwaitCount(1)) << round;
    ASSERT_EQ(a.recorder.heard(), std::vector<std::string>{"master 1: from b"});
    ASSERT_EQ(b.recorder.heard(), std::vector<std::string>{"master 0: from a"});
  }
}

TEST(TcpNetworkTest, AMessageToAProcessThatIsNotThereIsLostAndTheLinkIsDown) {
  Node a(kMaster0);
  {
    const Node b(kMaster1);
    a.Knows(b);
  }
  a.Start();
  a.network->Send(kMaster1, Recorder::kText, {});
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
}

TEST(TcpNetworkTest, ALinkIsMadeAnewAfterTheOtherSideCameBack) {
  Node a(kMaster0);
  uint16_t port = 0;
  a.Start();
  {
    Node b(kMaster1);
    port = b.network->port();
    a.network->SetAddress(kMaster1, "127.0.0.1", port);
    b.Start();
    a.Send(b, "first");
    ASSERT_TRUE(b.recorder.AwaitCount(1));
  }
  ASSERT_TRUE(a.recorder.AwaitLast("master 1 down"));
  Node b(kMaster1, ClusterEpoch(1), kCluster, port);
  b.Start();
  a.Send(b, "second");
  ASSERT_TRUE(b.recorder.AwaitLast("master 0: second"));
  EXPECT_EQ(b.recorder.heard().size(), 1u);
}

TEST(TcpNetworkTest, APeerThatConnectsAgainHasLostItsLink) {
  Node a(kMaster0);
  a.Start();
  RawPeer first(a), second(a);
  first.MakeLink();
  first.Send(Recorder::kText, {});
  ASSERT_TRUE(a.recorder.AwaitCount(1));
  second.MakeLink();
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
  EXPECT_TRUE(first.IsClosed());
}

TEST(TcpNetworkTest, ALinkThatIsWelcomedButNotConfirmedReplacesNone) {
  Node a(kMaster0);
  a.Start();
  RawPeer first(a);
  first.MakeLink();
  {
    RawPeer second(a);
    second.Send(kHello, HelloBody(kMaster1));
    std::vector<std::byte> welcome(sizeof(MessageHeader) + 2);
    boost::asio::read(second.socket, boost::asio::buffer(welcome));
  }
  first.Send(Recorder::kText, {});
  ASSERT_TRUE(a.recorder.AwaitLast("master 1: "));
  EXPECT_EQ(a.recorder.heard().size(), 1u);
}

TEST(TcpNetworkTest, AForeignClusterIsRefusedOnBothSidesInOneLine) {
  Node a(kMaster0, ClusterEpoch(1), ClusterId(5)), b(kMaster1);
  a.Knows(b).Start();
  b.Start();
  a.Send(b, "x");
  EXPECT_EQ(b.Reported(), "a message of cluster 5, not 77");
  EXPECT_EQ(a.Reported(), "refused a link with master 1: a message of cluster 77, not 5");
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
  EXPECT_TRUE(b.recorder.heard().empty());
}

TEST(TcpNetworkTest, OlderAndNewerEpochsAreRefused) {
  Node a(kMaster0, ClusterEpoch(1)), b(kMaster1, ClusterEpoch(2));
  a.Knows(b).Start();
  b.Knows(a).Start();
  a.Send(b, "x");
  EXPECT_EQ(b.Reported(), "a message of epoch 1, older than this process's, 2");
  EXPECT_EQ(a.Reported(),
            "refused a link with master 1: it refuses: a message of epoch 1, older than this process's, 2");
  a.network->SetEpoch(ClusterEpoch(3));
  ASSERT_TRUE(a.recorder.AwaitLast("master 1 down"));
  a.Send(b, "x");
  ASSERT_TRUE(b.reports.AwaitCount(2));
  EXPECT_TRUE(b.reports.heard()[1].ends_with("a message of epoch 3, newer than this process's, 2"));
  EXPECT_TRUE(b.recorder.heard().empty());
}

TEST(TcpNetworkTest, AMessageOfAnOlderEpochClosesALinkThatIsUp) {
  Node a(kMaster0), b(kMaster1);
  a.Knows(b).Start();
  b.Start();
  a.Send(b, "x");
  ASSERT_TRUE(b.recorder.AwaitCount(1));
  b.network->SetEpoch(ClusterEpoch(2));
  a.Send(b, "y");
  EXPECT_EQ(b.Reported(), "closed the link to master 0: a message of epoch 1, older than this process's, 2");
  EXPECT_TRUE(b.recorder.AwaitLast("master 0 down"));
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
}

TEST(TcpNetworkTest, TheLockProcessIsHeardAtAnyEpoch) {
  Node locks(kLockProcess, ClusterEpoch(9)), a(kMaster0, ClusterEpoch(1));
  a.Knows(locks).Start();
  locks.Start();
  a.Send(locks, "hello");
  ASSERT_TRUE(locks.recorder.AwaitLast("master 0: hello"));
  locks.Send(a, "epoch 9");
  EXPECT_TRUE(a.recorder.AwaitLast("lock process: epoch 9"));
}

TEST(TcpNetworkTest, AMalformedMessageClosesItsLinkAndNothingElseHappens) {
  Node a(kMaster0);
  a.Start();
  RawPeer peer(a);
  peer.MakeLink();
  peer.Send(Recorder::kMalformed, {});
  peer.Send(Recorder::kText, {});
  EXPECT_EQ(a.Reported(), "closed the link to master 1: a malformed message of type 199");
  EXPECT_TRUE(peer.IsClosed());
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
  EXPECT_EQ(a.recorder.heard().size(), 1u);
}

TEST(TcpNetworkTest, ALinkWithoutAHelloIsRefused) {
  Node a(kMaster0);
  a.Start();
  RawPeer peer(a);
  peer.Send(Recorder::kText, {});
  EXPECT_EQ(a.Reported(), "a link that does not begin with a hello");
  EXPECT_TRUE(peer.IsClosed());
}

TEST(TcpNetworkTest, RandomBytesCloseTheirLinkAndHarmNoOther) {
  Node a(kMaster0), b(kMaster1);
  a.Start();
  b.Knows(a).Start();
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    RawPeer peer(a);
    if (round % 2 == 0) peer.Send(kHello, HelloBody({Role::kMaster, 2}));
    std::vector<std::byte> bytes(64 + random() % 1000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    peer.Send(bytes);
    EXPECT_TRUE(peer.IsClosed());
  }
  b.Send(a, "still here");
  EXPECT_TRUE(a.recorder.AwaitLast("master 1: still here"));
}

TEST(TcpNetworkTest, APeerThatDoesNotReadLosesItsLinkNotOurMemory) {
  Node a(kMaster0, ClusterEpoch(1), kCluster, 0, 1 << 20);
  a.Start();
  RawPeer peer(a);
  peer.MakeLink();
  peer.Send(Recorder::kText, {});
  ASSERT_TRUE(a.recorder.AwaitCount(1));
  const std::vector<std::byte> body(64 << 10);
  for (int i = 0; i < 1000 && a.reports.heard().empty(); ++i) a.network->Send(kMaster1, Recorder::kText, body);
  EXPECT_EQ(a.Reported(), "closed the link to master 1: it does not read what is sent");
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
}

TEST(TcpNetworkTest, APortInUseIsOneLine) {
  const Node a(kMaster0);
  try {
    const Node b(kMaster1, ClusterEpoch(1), kCluster, a.network->port());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::kIo);
    EXPECT_EQ(error.what(),
              "cannot listen at 127.0.0.1:" + std::to_string(a.network->port()) + ": Address already in use");
  }
}

TEST(TcpNetworkTest, AfterStopNothingIsHeard) {
  Node a(kMaster0), b(kMaster1);
  a.Knows(b).Start();
  b.Start();
  a.Send(b, "x");
  ASSERT_TRUE(b.recorder.AwaitCount(1));
  b.network->Stop();
  const size_t heard = b.recorder.heard().size();
  a.Send(b, "y");
  EXPECT_TRUE(a.recorder.AwaitLast("master 1 down"));
  EXPECT_EQ(b.recorder.heard().size(), heard);
}

// A receiver that sends again at once, as it may, must not keep the network's thread busy.
TEST(TcpNetworkTest, APeerWithoutAnAddressIsTriedNowAndThen) {
  struct Sender final : Network::Receiver {
    bool OnMessage(NodeId, MessageType, std::span<const std::byte>) override { return true; }
    void OnLinkDown(NodeId peer) override {
      ++broken;
      SendText(*network, peer, "again");
    }
    Network* network = nullptr;
    std::atomic<int> broken{0};
  } sender;
  Node a(kMaster0);
  sender.network = a.network.get();
  a.network->Start(sender);
  SendText(*a.network, kMaster1, "first");
  host::SleepFor(std::chrono::milliseconds(300));
  EXPECT_GE(sender.broken, 2);
  EXPECT_LE(sender.broken, 20);
  a.network->Stop();
}

}  // namespace
}  // namespace dbx::mm
