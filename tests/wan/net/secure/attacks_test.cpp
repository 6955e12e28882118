// A listener under attack goes on serving: what strangers do at the port, who come in another way, what peers with a
// key do that they should not, and calls that somebody leads back to their caller.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <random>

#include "tests/wan/net/proxy.hpp"
#include "tests/wan/net/secure/certificates.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "wan/net/secure/tls.hpp"

namespace maki::wan {
namespace {

using test::comes_true, test::expect_echo, test::HandMadeStream;

class Attacks : public testing::Test {
 protected:
  void strangers(int connections);

  test::TemporaryFolder folder_;
  test::Log log_;
  Security key_ = test::new_key(folder_, "a.key");
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
  EXPECT_TRUE(comes_true([&] { return path.status().streams_up == 2; }));
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

// ---- peers with a key -----------------------------------------------------------------------------------------------

TEST_F(Attacks, StolenSessions) {
  const Security other = test::new_key(folder_, "other.key");
  test::Service service(test::both_of(key_, other));
  HandMadeStream first(service.address(), key_);
  const Welcome welcome = first.greet(test::hello_of(0, 3));
  ASSERT_EQ(welcome.answer, Answer::kWelcome);
  EXPECT_EQ(HandMadeStream(service.address(), other).greet(test::hello_of(1, 1, welcome.session)).answer,
            Answer::kUnknownSession);
}

// Each breaks the stream that it comes on, and nothing else.
TEST_F(Attacks, ImpossibleFramesEndTheirStreamOnly) {
  Listener listener({"127.0.0.1", 0}, key_, test::patient());
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
  EXPECT_TRUE(test::same(message, come.view()));
  path.close(0);
}

// Two chunks for the same place: were the message complete with the second, the first would go on writing to memory
// that its owner has back.
TEST_F(Attacks, OverlappingChunksDoNotReachMemoryGivenBack) {
  Listener listener({"127.0.0.1", 0}, key_, test::patient());
  HandMadeStream slow(listener.address(), key_);
  const Welcome welcome = slow.greet(test::hello_of(0, 1));
  Path path = std::move(listener.accept().path);
  const Frame whole{.type = FrameType::kData, .length = 100000, .sequence = 1, .tag = 4, .total = 100000};
  const auto message = test::pattern(100000, 8);
  auto buffer = std::make_unique<std::vector<std::byte>>(100000);
  Request request = path.start_receive(4, *buffer);
  slow.send(encode(whole));
  slow.send(std::span(message).first(50000));
  Frame heard;
  for (int frames = 0; frames < 1000 && heard.type != FrameType::kMatched; ++frames) {
    heard = decode_frame(slow.read<kFrameBytes>());
    for (std::uint32_t i = 0; i < heard.length; ++i) slow.read<1>();
  }
  ASSERT_EQ(heard.type, FrameType::kMatched);  // the message has begun there
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

// A caller with a key, by OpenSSL alone, that changes its keys as it likes.
class KeyChanger {
 public:
  KeyChanger(const Security& security, Socket socket)
      : context_(std::static_pointer_cast<const TlsContext>(SecurityContext::make(security))),
        socket_(std::move(socket)), ssl_(SSL_new(context_->of(Side::kConnecting).get())) {
    notes_.context = context_.get();
    SSL_set_app_data(ssl_.get(), &notes_);
    SSL_set_fd(ssl_.get(), socket_.descriptor());
    SSL_set_connect_state(ssl_.get());
  }
  bool meets(Channel& listening) {
    test::Outcome outcome;
    for (int i = 0; i < 300 && !outcome.done; ++i) {
      SSL_do_handshake(ssl_.get());
      outcome = test::shake_alone(listening, 100);
    }
    return outcome.done && SSL_is_init_finished(ssl_.get()) == 1;
  }
  void change_keys(int times) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED), 1);
      ASSERT_EQ(SSL_do_handshake(ssl_.get()), 1);
    }
  }
  void say(std::size_t bytes) {
    const auto words = test::pattern(bytes, 1);
    EXPECT_EQ(SSL_write(ssl_.get(), words.data(), static_cast<int>(bytes)), static_cast<int>(bytes));
  }

 private:
  std::shared_ptr<const TlsContext> context_;
  Socket socket_;
  HandshakeNotes notes_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

class ChangedKeys : public Attacks {
 protected:
  void SetUp() override { ASSERT_TRUE(caller_.meets(*channel_)); }
  std::pair<Socket, Socket> sockets_ = test::socket_pair();
  std::string address_ = peer_address(sockets_.second.descriptor()).text();
  KeyChanger caller_{key_, std::move(sockets_.first)};
  std::unique_ptr<Channel> channel_ =
      make_channel(SecurityContext::make(key_), std::move(sockets_.second), Side::kListening);
};

// One thread reads for all: it must not work through what one peer sends beside its data.
TEST_F(ChangedKeys, WithoutDataEndTheirConnection) {
  caller_.change_keys(16);
  caller_.say(1000);
  EXPECT_EQ(test::read_some(*channel_).bytes.size(), 1000u);
  caller_.change_keys(1000);
  caller_.say(1000);
  test::expect_contains(test::read_some(*channel_).error, {"the encrypted connection with " + address_ + " is broken",
                                                           "changes its keys again and again"});
}

TEST_F(ChangedKeys, BetweenFewDataEndTheirConnectionToo) {
  std::string error;
  for (int i = 0; i < 100 && error.empty(); ++i) {
    caller_.change_keys(1);
    caller_.say(1);
    error = test::read_some(*channel_).error;
  }
  EXPECT_TRUE(test::says(error, "changes its keys again and again"));
}

TEST_F(ChangedKeys, BetweenMuchDataGoOn) {
  for (int i = 0; i < 100; ++i) {
    caller_.change_keys(1);
    for (std::size_t left = kDataBetween; left > 0;) {
      const std::size_t part = std::min<std::size_t>(left, 16384);
      caller_.say(part);
      for (std::size_t come = 0; come < part;) {
        const test::Reading reading = test::read_some(*channel_);
        ASSERT_EQ(reading.error, "");
        come += reading.bytes.size();
      }
      left -= part;
    }
  }
}

class Modes : public testing::Test {
 protected:
  Modes() { certificate_.peer_name = "site.example"; }
  // What the caller is told. The listener's log has to say `logged`.
  std::string refusal(const Security& caller, const Security& listener, const std::string& logged) {
    test::Log log;
    test::Service service(listener);
    PathSettings settings;
    settings.patience = 600;
    std::string said;
    try {
      Path::connect(service.address(), caller, settings, {.name = "caller", .within = 120});
    } catch (const PathError& error) {
      said = error.what();
      EXPECT_LT(error.seconds_down(), 100) << said;
    }
    EXPECT_TRUE(test::says(said, "refuses the path"));
    EXPECT_TRUE(test::comes_true([&] { return log.has(logged); })) << logged;
    if (!listener.certificate.empty()) return said;
    Path path = test::connect(service, listener);  // others are served
    test::expect_echo(path);
    return said;
  }

  test::TemporaryFolder folder_;
  test::Authority authority_{folder_, "authority"};
  Security insecure_ = test::insecure(), key_ = test::new_key(folder_, "a.key");
  Security certificate_ = authority_.issue("site", {.common_name = "site.example"});
};

TEST_F(Modes, InsecureCallersAreTold) {
  for (const Security& secure : {key_, certificate_})
    EXPECT_TRUE(
        test::says(refusal(insecure_, secure, "it comes insecure"), "this side asks for a key or certificates"));
}

TEST_F(Modes, InsecureListenersAreToldOf) {
  for (const Security& secure : {key_, certificate_})
    EXPECT_TRUE(test::says(refusal(secure, insecure_, "this side is insecure"), "speaks no TLS"));
}

TEST_F(Modes, KeysAndCertificatesAreToldApart) {
  EXPECT_TRUE(
      test::says(refusal(key_, certificate_, "this side uses certificates"), "certificate in place of the key"));
  EXPECT_TRUE(
      test::says(refusal(certificate_, key_, "offers no key"), "both sides have to use keys, or both certificates"));
}

class Reflection : public Attacks {
 protected:
  static Security named(Security security, const std::string& name) {
    security.own_name = name;
    return security;
  }
  // `who` calls somebody else; what is between leads the call to who's own listener.
  static void expect_found_out(const Security& who, const Security& other) {
    test::Service own(named(who, "tokyo"));
    const test::Proxy proxy(own.address());
    const auto call = [&] { test::connect(proxy.address(), named(who, "tokyo")); };
    EXPECT_TRUE(test::says(test::error_of<PathError>(call), "came back to its own caller"));
    Path path = test::connect(proxy.address(), named(other, "amsterdam"));
    test::expect_echo(path);
  }
};

TEST_F(Reflection, OfACallWithAKeyIsFoundOut) { expect_found_out(key_, key_); }

TEST_F(Reflection, OfAnInsecureCallIsFoundOut) { expect_found_out(test::insecure(), test::insecure()); }

TEST_F(Reflection, OfACallWithACertificateForManyIsFoundOut) {
  test::Authority authority(folder_, "authority");
  const Security one = authority.issue("one", {.common_name = "x", .alternative = "IP:127.0.0.1"});
  expect_found_out(one, one);
}

// Without names it is the machine that counts, unless the caller has dialled an address of its own.
TEST_F(Reflection, MachinesKnowThemselves) {
  test::Service service(key_);
  const auto answer = [&](const Party& party, bool own_machine) {
    Hello hello = test::hello_of(0, 1);
    hello.party = party;
    hello.own_machine = own_machine;
    return test::HandMadeStream(service.address(), key_).greet(hello).answer;
  };
  EXPECT_EQ(answer(party_of(""), false), Answer::kRefused);
  EXPECT_EQ(answer(party_of(""), true), Answer::kWelcome);
  EXPECT_EQ(answer(party_of("amsterdam"), false), Answer::kWelcome);
  EXPECT_NE(party_of(""), party_of("amsterdam"));
  EXPECT_EQ(party_of(""), party_of(""));
}

// Nobody but the peer can say that a session is not there.
TEST_F(Reflection, DoesNotEndAPathThatStands) {
  test::Service peer(named(key_, "amsterdam")), own(named(key_, "tokyo"));
  test::Proxy proxy(peer.address());
  Path path = test::connect(proxy.address(), named(key_, "tokyo"));
  test::expect_echo(path);
  proxy.lead_to(own.address());
  const int before = proxy.connections();
  proxy.cut();
  EXPECT_TRUE(test::comes_true([&] { return proxy.connections() >= before + 4; }));
  proxy.lead_to(peer.address());
  test::expect_echo(path);
}

}  // namespace
}  // namespace maki::wan
