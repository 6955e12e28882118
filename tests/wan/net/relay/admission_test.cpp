#include <gtest/gtest.h>

#include <tuple>

#include "tests/wan/net/relay/rig.hpp"
#include "wan/net/relay/admission.hpp"
#include "wan/net/relay/connector.hpp"

namespace maki::wan {
namespace {

using namespace admission;
using namespace test;

struct SocketPair {
  Socket relay, peer;
  SocketPair() { std::tie(relay, peer) = local_pair(); }
};

Nonce nonce_of(unsigned char fill) {
  Nonce nonce;
  nonce.fill(static_cast<std::byte>(fill));
  return nonce;
}

// Both sides by turns until the gate has a request.
void ask(SocketPair& sockets, AdmissionCheck& gate, RelayAdmission& admission) {
  for (int i = 0; i < 10; ++i) {
    const IoStatus status = gate.receive(sockets.relay.descriptor());
    if (status == IoStatus::kDone) return;
    admission.progress(sockets.peer.descriptor());
  }
  FAIL() << "no request";
}

// A whole conversation, in which the gate admits whoever holds a key.
IoStatus converse(const KeyRing& keys, RelayAdmission& admission, const Verdict& verdict = {}) {
  SocketPair sockets;
  AdmissionCheck gate(keys);
  ask(sockets, gate, admission);
  gate.decide(gate.admitted() ? verdict : Verdict{Code::kKey, "no"});
  EXPECT_EQ(gate.send_verdict(sockets.relay.descriptor()), IoStatus::kDone);
  return admission.progress(sockets.peer.descriptor());
}

KeyRing ring(const Key& key) {
  KeyRing keys;
  keys.add(key);
  return keys;
}

TEST(RelayAdmission, RequestAndVerdictSurviveTheWire) {
  const Key key = Key::make();
  const admission::Request request{Want::kListen, "amsterdam", key.id, nonce_of(7)};
  const auto bytes = encode(request, nonce_of(1), key);
  const admission::Request read = decode_request(bytes);
  EXPECT_EQ(read.want, Want::kListen);
  EXPECT_EQ(read.name, "amsterdam");
  EXPECT_EQ(read.key_id, key.id);
  EXPECT_EQ(read.nonce, nonce_of(7));
  EXPECT_TRUE(signed_with(key, bytes, nonce_of(1)));
  EXPECT_FALSE(signed_with(key, bytes, nonce_of(2)));
  EXPECT_FALSE(signed_with(Key::make(), bytes, nonce_of(1)));

  const auto verdict = encode(Verdict{Code::kBusy, "too many\nof them"}, bytes, nonce_of(1), &key);
  EXPECT_EQ(decode_verdict(verdict).code, Code::kBusy);
  EXPECT_EQ(decode_verdict(verdict).reason, "too many\\x0aof them");
  EXPECT_TRUE(signed_with(key, verdict, bytes, nonce_of(1)));
  auto other = bytes;
  other[20] ^= std::byte{1};
  EXPECT_FALSE(signed_with(key, verdict, other, nonce_of(1)));
}

TEST(RelayAdmission, WrongAndUnknownKeysAreRefused) {
  const Key key = Key::make();
  Key wrong = Key::make();
  RelayAdmission unknown(wrong, Want::kConnect, "amsterdam");
  EXPECT_THROW(converse(ring(key), unknown), SecurityError);
  wrong.id = key.id;
  RelayAdmission admission(wrong, Want::kConnect, "amsterdam");
  EXPECT_THROW(converse(ring(key), admission), SecurityError);
  EXPECT_FALSE(admission.try_again());
}

TEST(RelayAdmission, RefusalsTellWhetherToTryAgain) {
  const Key key = Key::make();
  RelayAdmission later(key, Want::kConnect, "amsterdam");
  EXPECT_THROW(converse(ring(key), later, {Code::kNobody, "not there"}), Error);
  EXPECT_TRUE(later.try_again());
  RelayAdmission never(key, Want::kListen, "amsterdam");
  EXPECT_TRUE(says(error_of([&] {
                     converse(ring(key), never, {Code::kRefused, "the name is taken"});
                   }),
                   "the name is taken"));
  EXPECT_FALSE(never.try_again());
}

// An answer that was heard on another connection serves nobody: its nonce is not this one's.
TEST(RelayAdmission, ReplayedAnswerIsRefused) {
  const Key key = Key::make();
  const KeyRing keys = ring(key);
  SocketPair first, second;
  AdmissionCheck gate(keys), next(keys);
  RelayAdmission admission(key, Want::kConnect, "amsterdam");
  EXPECT_EQ(gate.receive(first.relay.descriptor()), IoStatus::kWantRead);
  admission.progress(first.peer.descriptor());
  RequestBytes heard;
  ASSERT_EQ(recv(first.relay.descriptor(), heard.data(), heard.size(), 0), static_cast<ssize_t>(heard.size()));
  EXPECT_EQ(next.receive(second.relay.descriptor()), IoStatus::kWantRead);
  ASSERT_EQ(send(second.peer.descriptor(), heard.data(), heard.size(), 0), static_cast<ssize_t>(heard.size()));
  EXPECT_EQ(next.receive(second.relay.descriptor()), IoStatus::kDone);
  EXPECT_FALSE(next.admitted());
}

// Whoever plays the relay with recorded messages cannot sign a verdict for the peer's new nonce.
TEST(RelayAdmission, RelayWithoutTheKeyIsFoundOut) {
  const Key key = Key::make();
  SocketPair sockets;
  RelayAdmission admission(key, Want::kConnect, "amsterdam");
  const auto challenge = encode(Challenge{kVersion, nonce_of(3)});
  ASSERT_GT(send(sockets.relay.descriptor(), challenge.data(), challenge.size(), 0), 0);
  EXPECT_EQ(admission.progress(sockets.peer.descriptor()), IoStatus::kWantRead);
  const auto old = encode(admission::Request{Want::kConnect, "amsterdam", key.id, nonce_of(9)}, nonce_of(3), key);
  const auto verdict = encode(Verdict{}, old, nonce_of(3), &key);
  ASSERT_GT(send(sockets.relay.descriptor(), verdict.data(), verdict.size(), 0), 0);
  EXPECT_THROW(admission.progress(sockets.peer.descriptor()), SecurityError);
}

TEST(RelayAdmission, ReadsNothingBeyondTheVerdictAndTakesBytesOneByOne) {
  const Key key = Key::make();
  const KeyRing keys = ring(key);
  SocketPair sockets;
  AdmissionCheck gate(keys);
  RelayAdmission admission(key, Want::kConnect, "amsterdam");
  ask(sockets, gate, admission);
  gate.decide({});
  SocketPair drops;
  gate.send_verdict(drops.relay.descriptor());
  VerdictBytes verdict;
  ASSERT_EQ(recv(drops.peer.descriptor(), verdict.data(), verdict.size(), 0), static_cast<ssize_t>(verdict.size()));
  for (std::size_t i = 0; i < verdict.size(); ++i) {
    EXPECT_EQ(admission.progress(sockets.peer.descriptor()), IoStatus::kWantRead);
    ASSERT_EQ(send(sockets.relay.descriptor(), &verdict[i], 1, 0), 1);
  }
  ASSERT_EQ(send(sockets.relay.descriptor(), "mine", 4, 0), 4);
  EXPECT_EQ(admission.progress(sockets.peer.descriptor()), IoStatus::kDone);
  EXPECT_EQ(get(sockets.peer, 4).size(), 4u);
}

TEST(RelayAdmission, AnotherVersionAndOtherServersAreNamed) {
  const Key key = Key::make();
  SocketPair sockets, other;
  const auto challenge = encode(Challenge{kVersion + 1, {}});
  ASSERT_GT(send(sockets.relay.descriptor(), challenge.data(), challenge.size(), 0), 0);
  EXPECT_THROW(RelayAdmission(key, Want::kConnect, "a").progress(sockets.peer.descriptor()), Error);
  const std::string greeting = "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3; and some more bytes";
  ASSERT_GT(send(other.relay.descriptor(), greeting.data(), greeting.size(), 0), 0);
  EXPECT_THROW(RelayAdmission(key, Want::kConnect, "a").progress(other.peer.descriptor()), ProtocolError);
}

TEST(RelayAdmission, BadNamesAreFoundBeforeAnythingIsSent) {
  const Key key = Key::make();
  for (const std::string& name : {std::string(), std::string("two words"), std::string(64, 'x'), std::string("a\nb")})
    EXPECT_THROW(RelayAdmission(key, Want::kConnect, name), Error) << name;
  EXPECT_NO_THROW(RelayAdmission(key, Want::kConnect, std::string(63, 'x')));
}

TEST(RelayKeys, DirectoriesFilesAndFaults) {
  TemporaryFolder folder;
  EXPECT_THROW(KeyRing::read({}), SecurityError);
  EXPECT_THROW(KeyRing::read({folder / ""}), SecurityError);  // no *.key in it
  const Key one = Key::make(), two = Key::make();
  write_key(one, folder / "one.key");
  write_key(two, folder / "two.key");
  const KeyRing keys = KeyRing::read({folder / "", folder / "one.key"});
  EXPECT_EQ(keys.size(), 2u);
  EXPECT_NE(keys.find(two.id), nullptr);
  EXPECT_EQ(keys.find("0000000000000000"), nullptr);
  Key twin = Key::make();
  twin.id = one.id;
  write_key(twin, folder / "twin.key");
  EXPECT_THROW(KeyRing::read({folder / ""}), SecurityError);
}

}  // namespace
}  // namespace maki::wan
