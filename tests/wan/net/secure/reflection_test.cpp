// One key serves both ends: a call that somebody without it leads back to its own caller must not be taken for the peer's.
#include <gtest/gtest.h>

#include "tests/wan/net/proxy.hpp"
#include "tests/wan/net/secure/certificates.hpp"
#include "tests/wan/net/secure/service.hpp"

namespace maki::wan {
namespace {

class Reflection : public testing::Test {
 protected:
  static Security named(Security security, const std::string& name) {
    security.own_name = name;
    return security;
  }
  static PathSettings patient() {
    PathSettings settings;
    settings.streams = 2;
    settings.patience = 60;
    return settings;
  }
  static std::string failure(const Endpoint& to, const Security& security) {
    try {
      Path::connect(to, security, patient(), {"caller"});
    } catch (const PathError& error) {
      return error.what();
    }
    return {};
  }
  // `who` calls somebody else; what is between leads the call to who's own listener.
  static void expect_found_out(const Security& who, const Security& other) {
    test::Service own(named(who, "tokyo"));
    const test::Proxy proxy(own.address());
    const std::string said = failure(proxy.address(), named(who, "tokyo"));
    EXPECT_NE(said.find("came back to its own caller"), std::string::npos) << said;
    Path path = Path::connect(proxy.address(), named(other, "amsterdam"), patient(), {"caller"});
    test::expect_echo(path);
  }

  test::TemporaryFolder folder_;
  test::Log log_;
  Security key_ = test::key_in(folder_, "a.key");
};

TEST_F(Reflection, OfACallWithAKeyIsFoundOut) { expect_found_out(key_, key_); }

TEST_F(Reflection, OfAnInsecureCallIsFoundOut) {
  Security insecure;
  insecure.insecure = true;
  expect_found_out(insecure, insecure);
}

TEST_F(Reflection, OfACallWithACertificateForManyIsFoundOut) {
  test::Authority authority(folder_, "authority");
  const Security one = authority.issue("one", {.common_name = "x", .alternative = "IP:127.0.0.1"});
  expect_found_out(one, one);
}

// Without names it is the machine that counts, unless the caller has dialled an address of its own.
TEST_F(Reflection, MachinesKnowThemselves) {
  test::Service service(key_);
  const auto answer = [&](const Party& party, bool own_machine) {
    Hello hello = test::hello(0, 1);
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
  Path path = Path::connect(proxy.address(), named(key_, "tokyo"), patient(), {"caller"});
  test::expect_echo(path);
  proxy.lead_to(own.address());
  const int before = proxy.connections();
  proxy.cut();
  for (int i = 0; i < 3000 && proxy.connections() < before + 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(proxy.connections(), before + 4);
  proxy.lead_to(peer.address());
  test::expect_echo(path);
}

}  // namespace
}  // namespace maki::wan
