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
    PathSettings settings = test::streams(2);
    settings.patience = 60;
    return settings;
  }
  static std::string failure(const Endpoint& to, const Security& security) {
    return test::error_of<PathError>([&] { Path::connect(to, security, patient(), {"caller"}); });
  }
  // `who` calls somebody else; what is between leads the call to who's own listener.
  static void expect_found_out(const Security& who, const Security& other) {
    test::Service own(named(who, "tokyo"));
    const test::Proxy proxy(own.address());
    EXPECT_TRUE(test::says(failure(proxy.address(), named(who, "tokyo")), "came back to its own caller"));
    Path path = Path::connect(proxy.address(), named(other, "amsterdam"), patient(), {"caller"});
    test::expect_echo(path);
  }

  test::TemporaryFolder folder_;
  test::Log log_;
  Security key_ = test::new_key(folder_, "a.key");
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
  Path path = Path::connect(proxy.address(), named(key_, "tokyo"), patient(), {"caller"});
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
