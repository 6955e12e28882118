// Programs written for MPWide (tests/wan/mpw), each in processes of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>

#include "tests/commands.hpp"
#include "tests/places.hpp"
#include "tests/testbed/testbed.hpp"
#include "tests/wan/helpers.hpp"
#include "tests/wan/ports.hpp"

namespace maki::wan {
namespace {

using maki::test::StartedCommand;

constexpr double kPatience = 120;  // seconds that a program may take here

// Starts shell commands, and ends those that are left.
class Programs : public testing::Test {
 protected:
  Programs() {
    for (const char* name : {"key", "other"}) write_key(Key::make(), folder_ / name);
  }

  std::string key(const std::string& name = "key") const { return "MAKI_WAN_KEY=" + (folder_ / name) + " "; }
  static std::string program(const std::string& name) {
    return (maki::test::directory_of_this_program() / ("wan_" + name)).string();
  }

  StartedCommand& start(const std::string& command, const testbed::Namespace* space = nullptr) {
    const std::string file = folder_ / ("out" + std::to_string(started_.size()));
    std::optional<testbed::InsideNamespace> inside;
    if (space) inside.emplace(space->name());
    return started_.emplace_back(command, file);
  }

  static void expect_end(StartedCommand& command, int code, const std::vector<std::string>& words = {}) {
    EXPECT_EQ(command.wait(kPatience).code, code) << command.said();
    test::expect_contains(command.said(), words);
  }
  using Sides = std::pair<StartedCommand&, StartedCommand&>;
  static void expect_success(const Sides& sides, const std::string& last) {
    for (StartedCommand* side : {&sides.first, &sides.second}) expect_end(*side, 0, {last});
  }
  // Both sides of a program here, each with the host that it names.
  Sides start_pair(const std::string& environment, const std::string& name, const std::string& hosts_of_0,
                   const std::string& hosts_of_1, int port) {
    const auto side = [&](int number, const std::string& host) -> StartedCommand& {
      return start(fmt::format("{}{} {} {} {}", environment, program(name), number, host, port));
    };
    StartedCommand& first = side(0, hosts_of_0);
    return {first, side(1, hosts_of_1)};
  }

  test::TemporaryFolder folder_;

 private:
  std::deque<StartedCommand> started_;
};

int ports_of_every_call() { return test::free_base({0, 10, 20, 30, 40}); }

TEST_F(Programs, EveryCallWhereOneSideWaits) {
  expect_success(start_pair(key(), "every_call", "0", "127.0.0.1", ports_of_every_call()), "every call, ");
}

TEST_F(Programs, EveryCallWhereBothNameEachOther) {
  expect_success(start_pair(key(), "every_call", "localhost", "localhost", ports_of_every_call()), "every call, ");
}

TEST_F(Programs, EveryCallWithoutEncryptionAndSettingsOfItsOwn) {
  const std::string environment = "MAKI_WAN_INSECURE=1 MAKI_WAN_SETTINGS=streams=3,send_chunk=1kB ";
  const Sides sides = start_pair(environment, "every_call", "0", "127.0.0.1", ports_of_every_call());
  expect_success(sides, "every call, ");
  EXPECT_TRUE(test::says(sides.first.said(), "insecure"));
}

// Two sites with a round trip of 10 ms between them; MPW_Init's own port too, as nobody else has it there.
class ProgramsAtSites : public Programs {
 protected:
  void SetUp() override {
    if (const std::string reason = testbed::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    testbed::TestbedSettings settings;
    settings.link.delay = 0.005;
    testbed_ = std::make_unique<testbed::Testbed>(settings);
  }
  StartedCommand& start_at(int site, const std::string& name, const std::string& host) {
    return start(key() + program(name) + " " + std::to_string(site) + " " + host + " 6100 default-port",
                 &testbed_->site(site));
  }
  std::unique_ptr<testbed::Testbed> testbed_;
};

TEST_F(ProgramsAtSites, EveryCallWhereOneSideWaits) {
  const Sides sides{start_at(0, "every_call", "0"), start_at(1, "every_call", testbed_->address(0))};
  expect_success(sides, "every call, ");
}

TEST_F(ProgramsAtSites, EveryCallWhereBothNameEachOther) {
  expect_success({start_at(0, "every_call", testbed_->address(1)), start_at(1, "every_call", testbed_->address(0))},
                 "every call, ");
}

TEST_F(ProgramsAtSites, InC) {
  expect_success({start_at(0, "plain_c", testbed_->address6(1)), start_at(1, "plain_c", testbed_->address6(0))}, "C, ");
}

TEST_F(Programs, InC) {
  expect_success(start_pair(key(), "plain_c", "0", "127.0.0.1", test::free_base({0, 10, 20})), "C, ");
}

TEST_F(Programs, TheFigureOfThePapers) {
  const int port = test::free_base({0, 1, 10});
  const std::string first = std::to_string(port), second = std::to_string(port + 1), wide = std::to_string(port + 10);
  auto& node = start(key() + program("figure") + " node 0 " + first + " 127.0.0.1 " + wide);
  auto& other_node = start(key() + program("figure") + " node 0 " + second + " 127.0.0.1 " + wide);
  auto& a = start(key() + program("figure") + " process 127.0.0.1 " + first + " A");
  auto& b = start(key() + program("figure") + " process 127.0.0.1 " + second + " B");
  expect_end(a, 0, {"A got B"});
  expect_end(b, 0, {"B got A"});
  expect_end(node, 0);
  expect_end(other_node, 0);
}

TEST_F(Programs, TheForwarderJoinsTwoSidesAndEndsWithThem) {
  const int port = test::free_base({0, 10});
  const std::string one = std::to_string(port), other = std::to_string(port + 10);
  auto& forwarder = start(key() + program("forwarder") + " 0 " + one + " 0 " + other + " 1");
  auto& a = start(key() + program("figure") + " process 127.0.0.1 " + one + " A");
  auto& b = start(key() + program("figure") + " process 127.0.0.1 " + other + " B");
  expect_end(a, 0, {"A got B"});
  expect_end(b, 0, {"B got A"});
  expect_end(forwarder, 0);
}

TEST_F(Programs, WithoutAKeyTheErrorSaysHowToMakeOne) {
  auto& a = start("env -u MAKI_WAN_KEY -u MAKI_WAN_INSECURE " + program("every_call") + " 0 0 12000");
  expect_end(a, 1, {"MAKI_WAN_KEY", "maki wan keygen"});
}

TEST_F(Programs, TheWrongKeyIsRefused) {
  const std::string port = std::to_string(test::free_base({0}));
  const std::string settings = "MAKI_WAN_SETTINGS=wait=600 ";
  auto& a = start(settings + key() + program("plain_c") + " 0 0 " + port);
  auto& b = start(settings + key("other") + program("plain_c") + " 1 127.0.0.1 " + port);
  // Whoever could not have the port called the other, which waits on.
  EXPECT_TRUE(test::comes_true([&] { return a.ended() || b.ended(); }, kPatience));
  expect_end(a.ended() ? a : b, 1, {"refuses the path"});
  EXPECT_FALSE(a.ended() && b.ended()) << a.said() << b.said();
}

TEST_F(Programs, ALostPathEndsTheProgramAndTheErrorSaysWhy) {
  const int port = test::free_base({0, 1});
  const std::string first = std::to_string(port), second = std::to_string(port + 1);
  const std::string settings = "MAKI_WAN_SETTINGS=patience=5,stream_timeout=3,heartbeat=0.2 ";
  auto& waiting = start(settings + key() + program("forwarder") + " 0 " + first + " 0 " + second + " 1");
  auto& idle = start(settings + key() + program("forwarder") + " 127.0.0.1 " + first + " 127.0.0.1 " + second + " 1");
  const auto forwards = [](const StartedCommand& command) { return test::says(command.said(), "forwarding"); };
  EXPECT_TRUE(test::comes_true([&] { return forwards(waiting) && forwards(idle); }, 60));
  idle.wait(0);
  expect_end(waiting, 1, {"is lost: nothing was heard"});
}

}  // namespace
}  // namespace maki::wan
