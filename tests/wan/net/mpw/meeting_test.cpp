// Who calls whom: one path comes about, whoever names the other.
#include "wan/net/mpw/meeting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "tests/wan/net/mpw/ports.hpp"
#include "tests/wan/net/path/pair.hpp"

namespace maki::wan::mpw {
namespace {

MeetingPlan plan(const std::string& host, Manner manner, std::vector<int> ports, double wait = 30) {
  MeetingPlan plan;
  plan.host = host;
  plan.manner = manner;
  plan.ports = std::move(ports);
  plan.environment.security.insecure = true;
  plan.environment.wait = wait;
  plan.settings = plan.environment.settings = test::streams(2);
  return plan;
}

class Meetings : public testing::Test {
 protected:
  ~Meetings() override { Dialer::end_all(); }

  // Both at once; what one end sends the other gets.
  static void expect_one_path(const MeetingPlan& a, const MeetingPlan& b) {
    auto other = std::async(std::launch::async, [&] { return meet(b); });
    Met here = meet(a), there = other.get();
    ASSERT_EQ(here.ports.size(), there.ports.size());
    const auto sent = test::pattern(100000, 1);
    Request out = here.path.start_send(kFirstLane, sent);
    const Bytes came = there.path.receive_any(kFirstLane, sent.size());
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), came.view().begin(), came.view().end()));
    there.path.send(kFirstLane, std::span(sent).first(10));
    EXPECT_EQ(here.path.receive_any(kFirstLane, 10).size, 10u);
    out.wait();
    test::close_both(here.path, there.path);
  }
};

TEST_F(Meetings, OneSideWaitsTheOtherNamesIt) {
  const int port = test::free_ports({0});
  expect_one_path(plan("0", Manner::kWait, {port}), plan("127.0.0.1", Manner::kBoth, {port}));
  expect_one_path(plan("localhost", Manner::kCall, {port}), plan("0.0.0.0", Manner::kWait, {port}));
}

// Each listens and each calls, here through one handshakes: two paths stand, one stays.
TEST_F(Meetings, BothNameEachOther) {
  const int port = test::free_ports({0});
  for (int i = 0; i < 10; ++i)
    expect_one_path(plan("127.0.0.1", Manner::kBoth, {port, port + 1}),
                    plan("127.0.0.1", Manner::kBoth, {port, port + 1}));
}

TEST_F(Meetings, BothWaitAndTheErrorSaysSo) {
  const int port = test::free_ports({0});
  const std::string text = test::error_of([&] { meet(plan("0", Manner::kWait, {port}, 0.3)); });
  EXPECT_TRUE(test::says(text, "Nobody came to port " + std::to_string(port)));
  EXPECT_TRUE(test::says(text, "if the other side only listens too"));
}

TEST_F(Meetings, NobodyThere) {
  const int port = test::free_ports({0});
  EXPECT_THROW(meet(plan("127.0.0.1", Manner::kBoth, {port}, 0.5)), Error);
  MeetingPlan once = plan("127.0.0.1", Manner::kCall, {port});
  once.settings.connect_timeout = 0.3;
  EXPECT_THROW(meet(once), PathError);
}

TEST_F(Meetings, ChannelsThatDoNotMatchAreAnErrorOnBothSides) {
  const int port = test::free_ports({0});
  auto other = std::async(std::launch::async, [&] {
    EXPECT_THROW(meet(plan("0", Manner::kWait, {port, port + 5})), Error);
  });
  // Forwarded from another port, and fewer.
  MeetingPlan caller = plan("127.0.0.1", Manner::kCall, {port});
  caller.ports = {port};
  Path path =
      Path::connect({"127.0.0.1", static_cast<std::uint16_t>(port)}, caller.environment.security, caller.settings);
  path.send(kGreetingTag, encode(Greeting{1, {port + 1, port + 2, port + 3}}));
  other.get();
}

TEST(Greeting, PortsFindTheirPartners) {
  using Ports = std::vector<int>;
  EXPECT_EQ(partners({1, 2, 3}, {1, 2, 3}), (Ports{1, 2, 3}));
  EXPECT_EQ(partners({1, 2, 3, 4}, {3, 4, 5}), (Ports{3, 4}));           // the rest ends elsewhere
  EXPECT_EQ(partners({6000, 6001}, {7000, 7001}), (Ports{6000, 6001}));  // forwarded
  EXPECT_THROW(partners({1, 2}, {3}), Error);
}

TEST(Greeting, IsReadAsWrittenAndNothingElse) {
  const Greeting greeting{0x123456789abcdef0, {1, 6000, 65535}};
  const auto bytes = encode(greeting);
  const Greeting read = decode_greeting(bytes);
  EXPECT_EQ(read.ticket, greeting.ticket);
  EXPECT_EQ(read.ports, greeting.ports);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(decode_greeting(std::span(bytes).first(size)), ProtocolError);
  auto broken = bytes;
  broken[0] = std::byte{0};
  EXPECT_THROW(decode_greeting(broken), ProtocolError);
  EXPECT_THROW(decode_greeting(encode(Greeting{1, {2, 1}})), ProtocolError);
  EXPECT_THROW(decode_greeting(encode(Greeting{1, {70000}})), ProtocolError);
  EXPECT_THROW(decode_greeting(encode(Greeting{1, {}})), ProtocolError);
}

}  // namespace
}  // namespace maki::wan::mpw
