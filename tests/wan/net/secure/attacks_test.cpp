// A listener under attack goes on serving: what strangers do at the port, and what peers with a key do that they should not.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "tests/wan/net/secure/certificates.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "wan/net/secure/key.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::expect_echo, test::HandMadeStream;

class Attacks : public testing::Test {
 protected:
  Attacks() : key_(test::new_key(folder_, "a.key")) {}

  // The message with which connecting fails.
  static std::string failure(const test::Service& service, const Security& security, double patience = 1) {
    PathSettings settings = test::streams(1);
    settings.patience = patience;
    return test::error_of([&] { Path::connect(service.address(), security, settings, {"stranger"}); });
  }
  void strangers(int connections);

  test::TemporaryFolder folder_;
  test::Log log_;
  Security key_;
};

// ---- strangers ------------------------------------------------------------------------------------------------------

void shout(const Socket& socket, std::span<const std::byte> bytes) {
  ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// The first words of a good TLS client.
std::vector<std::byte> client_hello(const Security& security) {
  auto [a, b] = test::socket_pair();
  const auto channel = make_channel(SecurityContext::make(security), std::move(a), Side::kConnecting);
  channel->handshake();
  test::ready(b.descriptor(), POLLIN);
  std::vector<std::byte> bytes(4096);
  bytes.resize(static_cast<std::size_t>(::recv(b.descriptor(), bytes.data(), bytes.size(), 0)));
  return bytes;
}

// Random bytes, good beginnings cut short or damaged, and connections that end at once.
void Attacks::strangers(int connections) {
  PathSettings settings;
  settings.handshake_timeout = 5;
  test::Service service(key_, {}, settings);
  Path path = test::connect(service, key_);
  expect_echo(path);
  const std::size_t before = test::open_descriptors();
  const auto good = client_hello(key_);
  std::mt19937_64 random(4);
  for (int i = 0; i < connections; ++i) {
    const Socket socket = test::connect_now(service.address());
    auto bytes = good;
    switch (random() % 5) {
      case 0: bytes = test::pattern(random() % 3000, static_cast<unsigned>(i)); break;
      case 1: bytes.resize(random() % bytes.size()); break;
      case 2:
        for (int n = 0; n < 3; ++n) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        break;
      case 3: {  // a record of TLS with anything in it
        const auto more = test::pattern(random() % 600, static_cast<unsigned>(i));
        bytes.resize(5);
        bytes[3] = static_cast<std::byte>(more.size() >> 8);
        bytes[4] = static_cast<std::byte>(more.size());
        bytes.insert(bytes.end(), more.begin(), more.end());
        break;
      }
      default: bytes.clear(); break;
    }
    shout(socket, bytes);
    if (i % 100 == 0) expect_echo(path);
  }
  expect_echo(path);
  Path late = test::connect(service, key_);
  expect_echo(late);
  late.close(5);
  EXPECT_EQ(path.status().reconnections, 0u);
  // The listening end of `late` and of its streams goes with a moment's delay.
  EXPECT_TRUE(comes_true([&] { return test::open_descriptors() <= before; }, 60)) << test::open_descriptors();
}

TEST_F(Attacks, HundredsOfStrangers) { strangers(300); }

class FullAttacks : public Attacks {};
TEST_F(FullAttacks, TenThousandStrangers) { strangers(10000); }

TEST_F(Attacks, ThousandHalfOpenConnections) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, 8192));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2500) GTEST_SKIP() << "needs 2500 file descriptors (ulimit -n)";
  test::Service service(key_);
  Path path = test::connect(service, key_);
  expect_echo(path);
  const std::size_t before = test::open_descriptors();
  {
    const auto good = client_hello(key_);
    std::vector<Socket> silent;
    for (int i = 0; i < 1000; ++i) {
      silent.push_back(test::connect_now(service.address()));
      if (i % 3 == 1) shout(silent.back(), std::span(good).first(good.size() / 2));
      if (i % 3 == 2) shout(silent.back(), good);  // gets an answer, and gives none
    }
    expect_echo(path);
    Path another = test::connect(service, key_);
    expect_echo(another);
    another.close(5);
  }
  expect_echo(path);
  EXPECT_TRUE(comes_true([&] { return test::open_descriptors() <= before; }, 60)) << test::open_descriptors();
}

TEST_F(Attacks, WrongUnknownAndMissingKeys) {
  test::Service service(key_);
  Key forged = Key::make();
  forged.id = read_key(key_.key_files[0]).id;
  write_key(forged, folder_.path("forged.key"));
  Security wrong;
  wrong.key_files = {folder_.path("forged.key")};
  test::Authority authority(folder_, "authority");
  const Security certificate = authority.issue("site", {.common_name = "127.0.0.1", .alternative = "IP:127.0.0.1"});
  EXPECT_TRUE(test::says(failure(service, wrong), "wrong key"));
  EXPECT_TRUE(comes_true([&] { return log_.has("wrong key"); }));
  EXPECT_TRUE(test::says(failure(service, test::new_key(folder_, "other.key")), "does not know our key"));
  EXPECT_TRUE(test::says(failure(service, certificate), "both sides have to use keys"));
  EXPECT_NE(failure(service, test::insecure()), "");
  Path path = test::connect(service, key_);
  expect_echo(path);
}

TEST_F(Attacks, WrongCertificates) {
  test::Authority ours(folder_, "ours"), theirs(folder_, "theirs");
  const test::CertificateFields here{.common_name = "site", .alternative = "IP:127.0.0.1"};
  const Security site = ours.issue("site", here);
  test::Service service(site);
  Security stranger = theirs.issue("stranger", here);
  EXPECT_TRUE(test::says(failure(service, stranger), "authority that we do not know"));
  stranger.authority = ours.file();
  EXPECT_TRUE(test::says(failure(service, stranger), "does not know the authority of our certificate"));
  Path path = test::connect(service, site);
  expect_echo(path);
}

TEST_F(Attacks, EncryptedCallsAtAnInsecurePort) {
  test::Service service(test::insecure());
  EXPECT_NE(failure(service, key_), "");
  EXPECT_TRUE(comes_true([&] { return log_.has("TLS"); }));
  Path path = test::connect(service, test::insecure());
  expect_echo(path);
}

// ---- peers with a key -----------------------------------------------------------------------------------------------

TEST_F(Attacks, StolenSessionsAndOldEpochs) {
  const Security other = test::new_key(folder_, "other.key");
  test::Service service(test::both_of(key_, other));
  HandMadeStream first(service.address(), key_);
  const Welcome welcome = first.greet(test::hello_of(0, 3));
  ASSERT_EQ(welcome.answer, Answer::kWelcome);
  EXPECT_EQ(HandMadeStream(service.address(), other).greet(test::hello_of(1, 1, welcome.session)).answer,
            Answer::kUnknownSession);
  EXPECT_EQ(HandMadeStream(service.address(), key_).greet(test::hello_of(0, 3, welcome.session)).answer,
            Answer::kStale);
  EXPECT_EQ(HandMadeStream(service.address(), key_).greet(test::hello_of(0, 2, welcome.session)).answer,
            Answer::kStale);
  EXPECT_EQ(HandMadeStream(service.address(), key_).greet(test::hello_of(1, 1, welcome.session)).answer,
            Answer::kWelcome);
}

TEST_F(Attacks, NonsenseInPlaceOfAHello) {
  test::Service service(key_);
  for (int i = 0; i < 20; ++i) {
    HandMadeStream stream(service.address(), key_);
    stream.send(test::pattern(kHelloBytes, static_cast<unsigned>(i)));
    EXPECT_TRUE(stream.closed_by_peer());
  }
  Path path = test::connect(service, key_);
  expect_echo(path);
}

// Each breaks the stream that it comes on, and nothing else.
TEST_F(Attacks, ImpossibleFramesEndTheirStreamOnly) {
  Listener listener({"127.0.0.1", 0}, key_, {});
  const Endpoint address = listener.address();
  HandMadeStream good(address, key_);
  const Welcome welcome = good.greet(test::hello_of(0, 1));
  ASSERT_EQ(welcome.answer, Answer::kWelcome);
  Path path = std::move(listener.accept().path);
  unsigned epoch = 0;
  const auto attack = [&](const auto& send, const char* what) {
    HandMadeStream bad(address, key_);
    ASSERT_EQ(bad.greet(test::hello_of(1, ++epoch, welcome.session)).answer, Answer::kWelcome) << what;
    send(bad);
    EXPECT_TRUE(bad.closed_by_peer()) << what;
  };
  constexpr std::uint32_t kLongest = ~0u;
  constexpr std::uint64_t kMost = ~0ull;
  constexpr auto kData = FrameType::kData, kNoType = static_cast<FrameType>(77);
  const std::vector<std::pair<Frame, const char*>> frames = {
      {{.type = kData, .length = kLongest, .sequence = 1000, .tag = 9, .total = kLongest}, "a chunk of 4 GB"},
      {{.type = kData, .length = 100, .sequence = 1000, .tag = 9, .total = kMost, .offset = kMost - 50},
       "a place beyond the end of numbers"},
      {{.type = kData, .length = 100, .sequence = 1000, .tag = 9, .total = 100, .offset = 50},
       "past the end of the message"},
      {{.type = kData, .length = 100, .sequence = 1000, .tag = 9, .total = kMost}, "a message beyond the limit"},
      {{.type = kData, .length = 100, .sequence = 0, .tag = 9, .total = 100}, "no number"},
      {{.type = kNoType, .length = 100, .sequence = 1000, .tag = 9, .total = 100}, "no type"},
      {{.type = FrameType::kAck, .length = kMaxControl + 1}, "a large acknowledgement"},
      {{.type = FrameType::kMatched, .sequence = 1002, .tag = 5, .index = 5}, "a message that was never sent"}};
  for (const auto& [frame, what] : frames)
    attack([&frame = frame](HandMadeStream& bad) { bad.send_unchecked(frame); }, what);
  attack([](HandMadeStream& s) { s.send({.type = FrameType::kAck, .length = 5}, test::pattern(5, 1)); },
         "5 bytes of acknowledgement");
  attack(
      [](HandMadeStream& s) {
        s.send({.type = FrameType::kAck, .length = 8}, std::vector<std::byte>(8, std::byte{0x7f}));
      },
      "an acknowledgement of what was never sent");
  attack([](HandMadeStream& s) { s.send(test::pattern(500, 3)); }, "random bytes");

  // The path lives, and its good stream carries what it always would have.
  const auto message = test::pattern(3000, 8);
  good.send({.type = FrameType::kData, .length = 3000, .sequence = 1, .tag = 4, .total = 3000}, message);
  const Bytes come = path.receive_any(4, 5000);
  EXPECT_TRUE(std::equal(message.begin(), message.end(), come.view().begin(), come.view().end()));
  path.close(0);
}

// Two chunks for the same place: were the message complete with the second, the first would go on writing to memory that its
// owner has back.
TEST_F(Attacks, OverlappingChunksDoNotReachMemoryGivenBack) {
  Listener listener({"127.0.0.1", 0}, key_, {});
  HandMadeStream slow(listener.address(), key_);
  const Welcome welcome = slow.greet(test::hello_of(0, 1));
  Path path = std::move(listener.accept().path);
  const Frame whole{.type = FrameType::kData, .length = 100000, .sequence = 1, .tag = 4, .total = 100000};
  const auto message = test::pattern(100000, 8);
  auto buffer = std::make_unique<std::vector<std::byte>>(100000);
  Request request = path.start_receive(4, *buffer);
  slow.send(encode(whole));
  slow.send(std::span(message).first(50000));
  ASSERT_FALSE(request.wait_for(0.2));
  HandMadeStream quick(listener.address(), key_);
  ASSERT_EQ(quick.greet(test::hello_of(1, 1, welcome.session)).answer, Answer::kWelcome);
  Frame again = whole;
  again.sequence = 2;
  quick.send(again, message);
  EXPECT_TRUE(quick.closed_by_peer());
  EXPECT_FALSE(request.test());
  slow.send(std::span(message).subspan(50000));
  request.wait();
  EXPECT_EQ(*buffer, message);
  path.close(0);
}

// What nobody asked for is kept up to the limit that was agreed, and no further.
TEST_F(Attacks, FloodOfUnwantedMessages) {
  PathSettings settings;
  settings.unmatched_limit = 1 << 20;
  Listener listener({"127.0.0.1", 0}, key_, settings);
  HandMadeStream bad(listener.address(), key_);
  ASSERT_EQ(bad.greet(test::hello_of(0, 1)).answer, Answer::kWelcome);
  Path path = std::move(listener.accept().path);
  const auto block = test::pattern(1 << 20, 1);
  for (std::uint64_t i = 0; i < 20; ++i)
    bad.send({.type = FrameType::kData, .length = 1 << 20, .sequence = i + 1, .tag = 4, .index = i, .total = 1 << 20},
             block);
  EXPECT_TRUE(bad.closed_by_peer());
  EXPECT_LE(path.status().received, 8u << 20);
  path.close(0);
}

}  // namespace
}  // namespace maki::wan
