// Programs written for MPWide (tests/wan/mpw), each in processes of its own.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/places.hpp"
#include "tests/testbed/testbed.hpp"
#include "tests/wan/net/mpw/ports.hpp"
#include "tests/wan/net/path/pair.hpp"

namespace maki::wan {
namespace {

constexpr double kPatience = 120;  // seconds that a program may take here

// Starts shell commands, keeps what they print, and ends those that are left.
class Programs : public testing::Test {
 protected:
  void SetUp() override {
    write_key(Key::make(), folder_ / "key");
    write_key(Key::make(), folder_ / "other");
  }
  ~Programs() override {
    for (const Started& one : started_) {
      if (one.process > 0) kill(-one.process, SIGKILL), waitpid(one.process, nullptr, 0);
    }
  }

  std::string key(const std::string& name = "key") const { return "MAKI_WAN_KEY=" + (folder_ / name) + " "; }
  static std::string program(const std::string& name) { return (test_directory() / ("wan_" + name)).string(); }
  static std::filesystem::path test_directory() { return maki::test::directory_of_this_program(); }

  // Its number for the calls below.
  std::size_t start(const std::string& command, const testbed::Namespace* space = nullptr) {
    const std::string file = folder_ / ("out" + std::to_string(started_.size()));
    const std::vector<std::string> shell{"/bin/sh", "-c", "exec >" + file + " 2>&1; " + command};
    started_.push_back({space ? space->spawn(shell) : spawn_here(shell), file});
    return started_.size() - 1;
  }
  // Exit status; -1 where it took too long.
  int status(std::size_t number) {
    Started& one = started_[number];
    for (const auto begun = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - begun < std::chrono::duration<double>(kPatience);) {
      int status = 0;
      if (waitpid(one.process, &status, WNOHANG) == one.process) {
        one.process = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return -1;
  }
  std::string output(std::size_t number) const {
    std::ifstream file(started_[number].file);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void end(std::size_t number) {
    kill(-started_[number].process, SIGKILL);
    status(number);
  }
  bool says(std::size_t number, const std::string& text) const {
    return output(number).find(text) != std::string::npos;
  }

  void expect_success(std::size_t a, std::size_t b, const std::string& last) {
    EXPECT_EQ(status(a), 0) << output(a);
    EXPECT_EQ(status(b), 0) << output(b);
    EXPECT_TRUE(says(a, last)) << output(a);
    EXPECT_TRUE(says(b, last)) << output(b);
  }

  test::TemporaryFolder folder_;

 private:
  struct Started {
    pid_t process;
    std::string file;
  };
  static pid_t spawn_here(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawnattr_t own_group;
    posix_spawnattr_init(&own_group);
    posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
    pid_t process = -1;
    posix_spawn(&process, arguments[0], nullptr, &own_group, arguments.data(), environ);
    posix_spawnattr_destroy(&own_group);
    return process;
  }
  std::vector<Started> started_;
};

int ports_of_every_call() { return test::free_ports({0, 10, 20, 30, 40, 50, 51, 55}); }

TEST_F(Programs, EveryCallWhereOneSideWaits) {
  const std::string port = std::to_string(ports_of_every_call());
  const auto a = start(key() + program("every_call") + " 0 0 " + port);
  const auto b = start(key() + program("every_call") + " 1 127.0.0.1 " + port);
  expect_success(a, b, "every call, ");
}

TEST_F(Programs, EveryCallWhereBothNameEachOther) {
  const std::string port = std::to_string(ports_of_every_call());
  const auto a = start(key() + program("every_call") + " 0 localhost " + port);
  const auto b = start(key() + program("every_call") + " 1 localhost " + port);
  expect_success(a, b, "every call, ");
}

TEST_F(Programs, EveryCallWithoutEncryptionAndSettingsOfItsOwn) {
  const std::string port = std::to_string(ports_of_every_call());
  const std::string environment = "MAKI_WAN_INSECURE=1 MAKI_WAN_SETTINGS=streams=3,send_chunk=1kB ";
  const auto a = start(environment + program("every_call") + " 0 0 " + port);
  const auto b = start(environment + program("every_call") + " 1 127.0.0.1 " + port);
  expect_success(a, b, "every call, ");
  EXPECT_TRUE(says(a, "insecure")) << output(a);
}

// Two sites with a round trip of 10 ms between them; MPW_Init's own port too, as nobody else has it there.
class ProgramsAtSites : public Programs {
 protected:
  void SetUp() override {
    if (const std::string reason = testbed::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    Programs::SetUp();
    testbed::TestbedSettings settings;
    settings.link.delay = 0.005;
    testbed_ = std::make_unique<testbed::Testbed>(settings);
  }
  std::size_t start_at(int site, const std::string& name, const std::string& host) {
    return start(key() + program(name) + " " + std::to_string(site) + " " + host + " 6100 default-port",
                 &testbed_->site(site));
  }
  std::unique_ptr<testbed::Testbed> testbed_;
};

TEST_F(ProgramsAtSites, EveryCallWhereOneSideWaits) {
  const auto a = start_at(0, "every_call", "0"), b = start_at(1, "every_call", testbed_->address(0));
  expect_success(a, b, "every call, ");
  if (std::getenv("MAKI_TEST_SHOW")) std::printf("%s%s", output(a).c_str(), output(b).c_str());
}

TEST_F(ProgramsAtSites, EveryCallWhereBothNameEachOther) {
  const auto a = start_at(0, "every_call", testbed_->address(1)), b = start_at(1, "every_call", testbed_->address(0));
  expect_success(a, b, "every call, ");
}

TEST_F(ProgramsAtSites, InC) {
  const auto a = start_at(0, "plain_c", testbed_->address6(1)), b = start_at(1, "plain_c", testbed_->address6(0));
  expect_success(a, b, "C, ");
}

TEST_F(Programs, InC) {
  const std::string port = std::to_string(test::free_ports({0, 10, 20}));
  const auto a = start(key() + program("plain_c") + " 0 0 " + port);
  const auto b = start(key() + program("plain_c") + " 1 127.0.0.1 " + port);
  expect_success(a, b, "C, ");
}

TEST_F(Programs, TheFigureOfThePapers) {
  const int port = test::free_ports({0, 1, 10});
  const std::string first = std::to_string(port), second = std::to_string(port + 1), wide = std::to_string(port + 10);
  const auto node = start(key() + program("figure") + " node 0 " + first + " 127.0.0.1 " + wide);
  const auto other_node = start(key() + program("figure") + " node 0 " + second + " 127.0.0.1 " + wide);
  const auto a = start(key() + program("figure") + " process 127.0.0.1 " + first + " A");
  const auto b = start(key() + program("figure") + " process 127.0.0.1 " + second + " B");
  EXPECT_EQ(status(a), 0) << output(a);
  EXPECT_EQ(status(b), 0) << output(b);
  EXPECT_TRUE(says(a, "A got B")) << output(a);
  EXPECT_TRUE(says(b, "B got A")) << output(b);
  EXPECT_EQ(status(node), 0) << output(node);
  EXPECT_EQ(status(other_node), 0) << output(other_node);
}

TEST_F(Programs, TheForwarderJoinsTwoSidesAndEndsWithThem) {
  const int port = test::free_ports({0, 10});
  const std::string one = std::to_string(port), other = std::to_string(port + 10);
  const auto forwarder = start(key() + program("forwarder") + " 0 " + one + " 0 " + other + " 1");
  const auto a = start(key() + program("figure") + " process 127.0.0.1 " + one + " A");
  const auto b = start(key() + program("figure") + " process 127.0.0.1 " + other + " B");
  expect_success(a, b, " got ");
  EXPECT_TRUE(says(a, "A got B")) << output(a);
  EXPECT_EQ(status(forwarder), 0) << output(forwarder);
}

TEST_F(Programs, WithoutAKeyTheErrorSaysHowToMakeOne) {
  const auto a = start("env -u MAKI_WAN_KEY -u MAKI_WAN_INSECURE " + program("every_call") + " 0 0 12000");
  EXPECT_EQ(status(a), 1) << output(a);
  EXPECT_TRUE(says(a, "MAKI_WAN_KEY")) << output(a);
  EXPECT_TRUE(says(a, "maki wan keygen")) << output(a);
}

TEST_F(Programs, TheWrongKeyIsRefused) {
  const std::string port = std::to_string(test::free_ports({0}));
  const std::string settings = "MAKI_WAN_SETTINGS=wait=2 ";
  const auto a = start(settings + key() + program("plain_c") + " 0 0 " + port);
  const auto b = start(settings + key("other") + program("plain_c") + " 1 127.0.0.1 " + port);
  EXPECT_EQ(status(a), 1) << output(a);
  EXPECT_EQ(status(b), 1) << output(b);
  // Whoever could not have the port called the other; the one says so, the other that nobody came.
  EXPECT_TRUE(says(a, "refuses the path") || says(b, "refuses the path")) << output(a) << output(b);
  EXPECT_TRUE(says(a, "Nobody came to port") || says(b, "No path to 127.0.0.1")) << output(a) << output(b);
}

TEST_F(Programs, ALostPathEndsTheProgramAndTheErrorSaysWhy) {
  const int port = test::free_ports({0, 1});
  const std::string first = std::to_string(port), second = std::to_string(port + 1);
  const std::string settings = "MAKI_WAN_SETTINGS=patience=2,stream_timeout=1,heartbeat=0.2 ";
  const auto waiting = start(settings + key() + program("forwarder") + " 0 " + first + " 0 " + second + " 1");
  const auto idle =
      start(settings + key() + program("forwarder") + " 127.0.0.1 " + first + " 127.0.0.1 " + second + " 1");
  for (int i = 0; i < 60000 && !(says(waiting, "forwarding") && says(idle, "forwarding")); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  end(idle);
  EXPECT_EQ(status(waiting), 1) << output(waiting);
  EXPECT_TRUE(says(waiting, "is lost: nothing was heard")) << output(waiting);
}

}  // namespace
}  // namespace maki::wan
