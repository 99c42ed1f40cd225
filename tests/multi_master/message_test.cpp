// What a peer may send: whole messages come out as they went in, and all else ends the stream with a reason.
#include "multi_master/message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace dbx::mm {
namespace {

using Bytes = std::vector<std::byte>;
using Next = MessageStream::Next;

const LinkTerms kTerms{ClusterId(7), ClusterEpoch(3), {Role::kMaster, 1}};

Bytes BytesOf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes Encoded(const std::string& body, const LinkTerms& terms = kTerms) {
  Bytes bytes;
  EncodeMessage(terms, MessageType(100), BytesOf(body), bytes);
  return bytes;
}

// Why a stream ends that is given these bytes; empty: it does not.
std::string RefusalOf(const Bytes& bytes) {
  MessageStream stream(kTerms.cluster);
  stream.Append(bytes);
  Message message;
  while (stream.Take(message) == Next::kMessage) {
  }
  return stream.refusal();
}

TEST(MessageTest, ComesOutAsItWentInHoweverItIsCut) {
  Bytes bytes = Encoded("first");
  const Bytes second = Encoded("");
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    MessageStream stream(kTerms.cluster);
    std::vector<std::string> got;
    Message message;
    for (const auto part : {std::span(bytes).first(cut), std::span(bytes).subspan(cut)}) {
      stream.Append(part);
      while (stream.Take(message) == Next::kMessage) {
        got.push_back(TextOf(message.body));
        EXPECT_EQ(message.type, MessageType(100));
        EXPECT_EQ(message.epoch, ClusterEpoch(3));
      }
    }
    EXPECT_EQ(got, (std::vector<std::string>{"first", ""})) << cut;
  }
}

TEST(MessageTest, EveryChangedBitIsRefusedOrWaitsForMore) {
  const Bytes sent = Encoded("lock page 77");
  for (size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    Bytes changed = sent;
    changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    MessageStream stream(kTerms.cluster);
    stream.Append(changed);
    Message message;
    EXPECT_NE(stream.Take(message), Next::kMessage) << bit;
  }
}

TEST(MessageTest, AForeignClusterIsRefusedByName) {
  LinkTerms foreign = kTerms;
  foreign.cluster = ClusterId(8);
  EXPECT_EQ(RefusalOf(Encoded("x", foreign)), "a message of cluster 8, not 7");
}

TEST(MessageTest, AnotherVersionIsRefusedBeforeItsLengthCounts) {
  Bytes bytes = Encoded("x");
  bytes[4] = std::byte{9};
  bytes.resize(sizeof(MessageHeader));
  EXPECT_EQ(RefusalOf(bytes), "version 9 of messages, not 1");
}

TEST(MessageTest, AMessageThatIsTooLongIsRefusedByItsHeader) {
  Bytes bytes = Encoded("x");
  const auto length = static_cast<uint32_t>(kMessageBodyBytesMax + 1);
  std::memcpy(bytes.data() + offsetof(MessageHeader, body_bytes), &length, sizeof length);
  EXPECT_EQ(RefusalOf(bytes), "a message of 4194305 bytes, more than 4194304");
}

TEST(MessageTest, AWrongChecksumIsRefused) {
  Bytes bytes = Encoded("x");
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(RefusalOf(bytes), "a message with a wrong checksum");
}

TEST(MessageTest, EpochsThatDifferAreNamed) {
  EXPECT_EQ(EpochFault(ClusterEpoch(3), ClusterEpoch(3)), "");
  EXPECT_EQ(EpochFault(ClusterEpoch(2), ClusterEpoch(3)), "a message of epoch 2, older than this process's, 3");
  EXPECT_EQ(EpochFault(ClusterEpoch(4), ClusterEpoch(3)), "a message of epoch 4, newer than this process's, 3");
}

TEST(MessageTest, RandomBytesAreNoMessage) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    // Most get no further than the version; half are given a header that is right up to the checksum.
    if (round % 2 == 0 && bytes.size() >= sizeof(MessageHeader)) {
      const MessageHeader header{
          static_cast<uint32_t>(random()), kMessageVersion, 100, static_cast<uint32_t>(random() % 200), 3,
          kTerms.cluster.value()};
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    MessageStream stream(kTerms.cluster);
    stream.Append(bytes);
    Message message;
    ASSERT_NE(stream.Take(message), Next::kMessage) << round;
  }
}

TEST(HelloTest, NamesAProcess) {
  const NodeId node{Role::kLogStore, 2};
  EXPECT_EQ(DecodeHello(HelloBody(node)), node);
}

TEST(HelloTest, OfAProcessThatCannotBeIsNone) {
  EXPECT_EQ(DecodeHello({}), std::nullopt);
  EXPECT_EQ(DecodeHello(HelloBody({static_cast<Role>(0), 0})), std::nullopt);
  EXPECT_EQ(DecodeHello(HelloBody({static_cast<Role>(5), 0})), std::nullopt);
  EXPECT_EQ(DecodeHello(HelloBody({Role::kMaster, kMastersMax})), std::nullopt);
  Bytes longer = HelloBody({Role::kMaster, 1});
  longer.push_back({});
  EXPECT_EQ(DecodeHello(longer), std::nullopt);
}

}  // namespace
}  // namespace dbx::mm
