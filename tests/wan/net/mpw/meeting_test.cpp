// Keys and settings from the environment; who calls whom: one path comes about, whoever names the other; messages over
// channels: parts of a buffer, and lanes that are passed on.
#include "wan/net/mpw/meeting.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <map>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/secure/service.hpp"
#include "tests/wan/ports.hpp"
#include "wan/net/mpw/table.hpp"
#include "wan/net/path/held_memory.hpp"

namespace maki::wan::mpw {
namespace {

using namespace test;

MeetingPlan plan(const std::string& host, Manner manner, std::vector<int> ports, double wait = 30) {
  MeetingPlan plan;
  plan.host = host;
  plan.manner = manner;
  plan.ports = std::move(ports);
  plan.environment.security.insecure = true;
  plan.environment.wait = wait;
  plan.environment.settings = streams(2);
  return plan;
}

class Meetings : public testing::Test {
 protected:
  ~Meetings() override { end_attempts(); }

  // Both at once; what one end sends the other gets.
  static void expect_one_path(const MeetingPlan& a, const MeetingPlan& b) {
    auto other = std::async(std::launch::async, [&] { return meet(b); });
    Met here = meet(a), there = other.get();
    ASSERT_EQ(here.ports.size(), there.ports.size());
    const auto sent = pattern(100000, 1);
    Request out = here.path.start_send(kFirstLane, sent);
    const Bytes came = there.path.receive_any(kFirstLane, sent.size());
    EXPECT_TRUE(same(sent, came.view()));
    there.path.send(kFirstLane, std::span(sent).first(10));
    EXPECT_EQ(here.path.receive_any(kFirstLane, 10).size, 10u);
    out.wait();
    close_both(here.path, there.path);
  }
};

TEST_F(Meetings, OneSideWaitsTheOtherNamesIt) {
  const int port = free_base({0});
  expect_one_path(plan("0", Manner::kWait, {port}), plan("127.0.0.1", Manner::kBoth, {port}));
  expect_one_path(plan("localhost", Manner::kCall, {port}), plan("0.0.0.0", Manner::kWait, {port}));
}

// Each listens and each calls, here through one handshakes: two paths stand, one stays.
TEST_F(Meetings, BothNameEachOther) {
  const int port = free_base({0});
  for (int i = 0; i < 10; ++i)
    expect_one_path(plan("127.0.0.1", Manner::kBoth, {port, port + 1}),
                    plan("127.0.0.1", Manner::kBoth, {port, port + 1}));
}

TEST_F(Meetings, BothWaitAndTheErrorSaysSo) {
  const int port = free_base({0});
  expect_contains(error_of([&] { meet(plan("0", Manner::kWait, {port}, 0.3)); }),
                  {"Nobody came to port " + std::to_string(port), "if the other side only listens too"});
}

TEST_F(Meetings, NobodyThere) {
  const int port = free_base({0});
  MeetingPlan both = plan("127.0.0.1", Manner::kBoth, {port}, 1);
  both.environment.settings.patience = 0.2;  // of a path, not of waiting for one
  EXPECT_TRUE(says(error_of([&] { meet(both); }), "came about within 1 s"));
  MeetingPlan once = plan("127.0.0.1", Manner::kCall, {port});
  once.environment.settings.connect_timeout = 0.3;
  EXPECT_THROW(meet(once), PathError);
}

TEST_F(Meetings, ChannelsThatDoNotMatchAreAnErrorOnBothSides) {
  const int port = free_base({0});
  auto other = std::async(std::launch::async, [&] {
    EXPECT_THROW(meet(plan("0", Manner::kWait, {port, port + 5})), Error);
  });
  // Forwarded from other ports, and more of them.
  const MeetingPlan caller = plan("127.0.0.1", Manner::kCall, {port});
  Path path = Path::connect({"127.0.0.1", static_cast<std::uint16_t>(port)}, caller.environment.security,
                            caller.environment.settings);
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

Environment read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, AKeyOrLeaveToGoWithout) {
  EXPECT_EQ(read({{"MAKI_WAN_KEY", "/a/key:/b/key"}}).security.key_files,
            (std::vector<std::string>{"/a/key", "/b/key"}));
  EXPECT_TRUE(read({{"MAKI_WAN_INSECURE", "1"}}).security.insecure);
  expect_contains(error_of([] { read({}); }), {"MAKI_WAN_KEY is not set", "maki wan keygen FILE"});
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "0"}}), Error);
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "yes"}}), Error);
  EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "1"}, {"MAKI_WAN_KEY", "k"}}), Error);
}

TEST(Environment, SettingsInLine) {
  const Environment e =
      read({{"MAKI_WAN_INSECURE", "1"},
            {"MAKI_WAN_SETTINGS",
             "streams=32, window = 4 MB; pacing=800 Mbit/s,patience=10 min,wait=2.5,listen=127.0.0.1"}});
  EXPECT_EQ(e.settings.streams, 32);
  EXPECT_TRUE(e.streams_given);
  EXPECT_EQ(e.settings.window, 4000000u);
  EXPECT_EQ(e.settings.pacing_rate, 1e8);
  EXPECT_EQ(e.settings.patience, 600);
  EXPECT_EQ(e.wait, 2.5);
  EXPECT_EQ(e.listen, "127.0.0.1");
  for (const char* wrong : {"streams=0", "streams=257", "streams=many", "window=4 parsecs", "pacing=5", "colour=blue",
                            "streams 5=", "window=-1", "send_chunk=3", "local_ports=70000"}) {
    EXPECT_THROW(read({{"MAKI_WAN_INSECURE", "1"}, {"MAKI_WAN_SETTINGS", wrong}}), Error) << wrong;
  }
}

TEST(Environment, SettingsFromTheTableThatToolsPrint) {
  TemporaryFolder folder;
  const std::string file = folder / "path.toml";
  std::ofstream(file)
      << "# chosen for a long link\n[path]\nstreams = 48   # many\nwindow = \"16 MiB\"\nkey = [\"/a#1\", \"/b\"]\n"
      << "local_ports = \"6000-6100\"\n\n[other]\nthing = 5\n";
  const Environment e = read({{"MAKI_WAN_SETTINGS", file}});
  EXPECT_EQ(e.settings.streams, 48);
  EXPECT_EQ(e.settings.window, std::size_t{16} << 20);
  EXPECT_EQ(e.security.key_files, (std::vector<std::string>{"/a#1", "/b"}));
  EXPECT_EQ(e.settings.local_port_last, 6100);
  EXPECT_TRUE(says(error_of([] { read({{"MAKI_WAN_SETTINGS", "no_such_file"}}); }), "no_such_file"));
}

TEST(Split, PartsDifferByOneByteAtMost) {
  char bytes[20];
  const auto parts = split(bytes, 20, 6);
  const std::size_t sizes[] = {4, 4, 3, 3, 3, 3};
  char* at = bytes;
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(parts[i].size, sizes[i]);
    EXPECT_EQ(parts[i].data, at);
    at += sizes[i];
  }
  EXPECT_EQ(split(nullptr, 0, 3).size(), 3u);
  EXPECT_THROW(split(nullptr, 1, 1), Error);
  EXPECT_THROW(split(bytes, -1, 1), Error);
  EXPECT_THROW(split(bytes, 1, 0), Error);
}

// What came and was not read goes with the last channel, though a closed channel keeps its link.
TEST(Link, AClosedOneHoldsNothing) {
  ASSERT_TRUE(comes_true([] { return HeldMemory::peers() == 0; }));
  Pair pair(streams(1));
  const auto memory = HeldMemory::of("127.0.0.1");
  Link link(std::move(pair.there), nullptr, 2);
  pair.here.send(5, pattern(100000, 1));  // too long to be copied: returns when it has come
  link.leave();
  EXPECT_TRUE(link.live());
  EXPECT_GT(memory->bytes(), 100000u);
  link.leave();
  EXPECT_FALSE(link.live());
  EXPECT_TRUE(comes_true([&] { return memory->bytes() == 0; }));
  EXPECT_THROW(link.path(), PathError);
}

// Another thread that is in a call has the path until the call ends.
TEST(Link, ClosedUnderACallItEndsTheCall) {
  Pair pair(streams(1));
  Link link(std::move(pair.there), nullptr, 1);
  const auto path = link.path();
  Request coming = path->start_receive_any(5, 100);
  link.leave();
  EXPECT_THROW(coming.wait(), PathError);
  EXPECT_THROW(path->receive_any(5, 100), PathError);
}

TEST(RelayOfLanes, PassesOnBothWaysInOrderUntilOneSideCloses) {
  Pair left(streams(2)), right(streams(2));
  const auto left_link = std::make_shared<Link>(std::move(left.there), nullptr, 2);
  const auto right_link = std::make_shared<Link>(std::move(right.there), nullptr, 2);
  const std::vector<Lane> one{{left_link, 5, 0}, {left_link, 6, 1}}, other{{right_link, 5, 0}, {right_link, 7, 1}};
  auto relaying = std::async(std::launch::async, [&] { relay(one, other, 1 << 20); });
  const auto send_all = [](Path& path, Tag tag, unsigned seed) {
    for (unsigned i = 0; i < 40; ++i) path.send(tag, pattern(i % 3 == 0 ? 200000 : i, seed + i));
  };
  const auto all_came = [](Path& path, Tag tag, unsigned seed) {
    for (unsigned i = 0; i < 40; ++i) {
      if (!same(path.receive_any(tag, 1 << 20).view(), pattern(i % 3 == 0 ? 200000 : i, seed + i))) return false;
    }
    return true;
  };
  std::vector<std::future<void>> senders;
  for (std::size_t i = 0; i < 2; ++i) {
    senders.push_back(std::async(std::launch::async, [&, i] { send_all(left.here, one[i].tag, 500); }));
    senders.push_back(std::async(std::launch::async, [&, i] { send_all(right.here, other[i].tag, 5000); }));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(all_came(right.here, other[i].tag, 500));
    EXPECT_TRUE(all_came(left.here, one[i].tag, 5000));
  }
  for (auto& one : senders) one.get();
  // What was sent before the end is still passed on.
  left.here.send(5, pattern(77, 1));
  left.here.close(60);
  EXPECT_NO_THROW(relaying.get());
  EXPECT_TRUE(same(right.here.receive_any(5, 100).view(), pattern(77, 1)));
}

}  // namespace
}  // namespace maki::wan::mpw
