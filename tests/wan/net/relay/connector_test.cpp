// Connections being made: what they hold meanwhile.
#include "wan/net/relay/connector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <optional>

#include "tests/wan/net/relay/rig.hpp"

namespace maki::wan {
namespace {

using namespace test;

struct Outcome {
  std::string peer, reason;  // of the one that answered; why none did
  std::size_t sockets = 0;   // most at once
};

Outcome connect(const std::vector<Address>& addresses, const PathSettings& settings) {
  EventLoop loop("test-connect");
  std::promise<Outcome> promise;
  auto future = promise.get_future();
  std::optional<Connector> connector;
  const std::size_t before = open_descriptors();
  loop.call([&] {
    connector.emplace(
        loop, addresses, settings, nullptr,
        [&](Socket, const Address& peer) {
          promise.set_value({peer.text(), "", 0});
        },
        [&](Connector::Failure, const std::string& reason) {
          promise.set_value({"", reason, 0});
        });
  });
  std::size_t most = 0;
  while (future.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
    loop.call([&] { most = std::max(most, open_descriptors() - before); });
  loop.call([&] { connector.reset(); });
  Outcome outcome = future.get();
  outcome.sockets = most;
  return outcome;
}

TEST(Connector, HoldsFewSocketsHoweverManyAddressesAreSilent) {
  const SilentListener silent;
  const RawListener server;
  std::vector<Address> addresses(6, silent.address());
  addresses.push_back(server.address());
  const Outcome outcome = connect(addresses, {});
  EXPECT_EQ(outcome.peer, addresses.back().text()) << outcome.reason;
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

TEST(Connector, NamesTheAddressesThatMadeRoom) {
  const SilentListener silent[5];
  std::vector<Address> addresses;
  for (const SilentListener& one : silent) addresses.push_back(one.address());
  PathSettings settings;
  settings.connect_timeout = 1.5;
  const Outcome outcome = connect(addresses, settings);
  EXPECT_EQ(outcome.peer, "");
  for (const Address& one : addresses) EXPECT_TRUE(says(outcome.reason, one.text() + ": no answer"));
}

TEST(FullConnector, HoldsFewSocketsHoweverLongItAsks) {
  const SilentListener silent;
  PathSettings settings;
  settings.connect_timeout = 10;
  const Outcome outcome = connect({silent.address()}, settings);
  EXPECT_EQ(outcome.reason, silent.address().text() + ": no answer in 10 s");
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

}  // namespace
}  // namespace maki::wan
