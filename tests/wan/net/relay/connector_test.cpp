// Connections being made: what they hold meanwhile.
#include "wan/net/relay/connector.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>

#include "tests/wan/net/relay/rig.hpp"

namespace maki::wan {
namespace {

using namespace test;

// A listener whose queue is full answers no one: a stand-in for an address into the void.
class Silent {
 public:
  Silent() : socket_(listen_on({"127.0.0.1", 0}, {}, 0)) {
    for (int i = 0; i < 4; ++i) fill_.push_back(start_connect(address(), {}));
  }
  Address address() const { return local_address(socket_.descriptor()); }

 private:
  Socket socket_;
  std::vector<Socket> fill_;
};

std::size_t open_files() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

struct Outcome {
  std::string peer, reason;  // of the one that answered; why none did
  std::size_t sockets = 0;   // most at once
};

Outcome connect(const std::vector<Address>& addresses, const PathSettings& settings) {
  EventLoop loop("test-connect");
  std::promise<Outcome> promise;
  auto future = promise.get_future();
  std::optional<Connector> connector;
  const std::size_t before = open_files();
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
    loop.call([&] { most = std::max(most, open_files() - before); });
  loop.call([&] { connector.reset(); });
  Outcome outcome = future.get();
  outcome.sockets = most;
  return outcome;
}

TEST(Connector, HoldsFewSocketsHoweverManyAddressesAreSilent) {
  const Silent silent;
  const Server server;
  std::vector<Address> addresses(6, silent.address());
  addresses.push_back(resolve(server.endpoint()).front());
  const Outcome outcome = connect(addresses, {});
  EXPECT_EQ(outcome.peer, addresses.back().text()) << outcome.reason;
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

TEST(Connector, NamesTheAddressesThatMadeRoom) {
  const Silent silent[5];
  std::vector<Address> addresses;
  for (const Silent& one : silent) addresses.push_back(one.address());
  PathSettings settings;
  settings.connect_timeout = 1.5;
  const Outcome outcome = connect(addresses, settings);
  EXPECT_EQ(outcome.peer, "");
  for (const Address& one : addresses)
    EXPECT_NE(outcome.reason.find(one.text() + ": no answer"), std::string::npos) << outcome.reason;
}

TEST(FullConnector, HoldsFewSocketsHoweverLongItAsks) {
  const Silent silent;
  PathSettings settings;
  settings.connect_timeout = 10;
  const Outcome outcome = connect({silent.address()}, settings);
  EXPECT_EQ(outcome.reason, silent.address().text() + ": no answer in 10 s");
  EXPECT_EQ(outcome.sockets, Connector::kAtOnce);
}

}  // namespace
}  // namespace maki::wan
