// The protocol's states under peers who hold the key and send what they like: nothing may crash, read what was not sent,
// or keep others from being served. make sanitize-wan runs these under sanitizers.
#include <gtest/gtest.h>

#include <future>

#include "tests/wan/fuzz/attack.hpp"
#include "tests/wan/net/path/pair.hpp"

namespace maki::wan::fuzz {
namespace {

constexpr std::uint64_t kFew = 3000, kMany = 250'000;  // frames of a test; four of them are a million
constexpr std::uint64_t kOfARound = 300;

PathSettings small() {
  PathSettings settings = test::streams(3);
  settings.unmatched_limit = settings.message_limit = kMessageLimit;
  settings.connect_timeout = settings.handshake_timeout = 5;
  settings.patience = 20;
  return settings;
}

// Encrypted or plain.
class PathStates : public testing::TestWithParam<bool> {
 protected:
  Security security() { return GetParam() ? test::new_key(folder_) : test::insecure(); }
  static const char* mode() { return GetParam() ? "encrypted" : "plain"; }
  void callers(std::uint64_t frames);
  void listeners(std::uint64_t frames);
  test::TemporaryFolder folder_;
  test::Log log_;
};

void expect_served(Listener& listener, const Security& security) {
  auto called = std::async(std::launch::async,
                           [&] { return Path::connect(listener.address(), security, test::streams(1), {"honest"}); });
  for (;;) {
    auto accepted = listener.accept_for(20);
    ASSERT_TRUE(accepted) << "nobody else is served";
    if (accepted->name != "honest") continue;
    Path here = called.get();
    here.send(1, std::vector<std::byte>(1000, kFilling));
    EXPECT_EQ(accepted->path.receive_any(1, 1000).size, 1000u);
    return;
  }
}

void PathStates::callers(std::uint64_t frames) {
  const Security security = this->security();
  run_rounds(std::string("hostile caller, ") + mode(), frames, [&](std::uint64_t seed) {
    Random random(seed);
    Listener listener({"127.0.0.1", 0}, security, small());
    HostileCaller attack(random, security, listener.address());
    std::list<User> users;
    for (int turns = 0; attack.frames() < kOfARound && turns < 3000; ++turns) {
      if (!attack.anything() || one_in(random, 30)) attack.open();
      while (auto accepted = listener.accept_for(0)) users.emplace_back(random, std::move(accepted->path));
      attack.act();
      for (User& user : users) user.act();
      users.remove_if([](const User& user) { return user.over(); });
    }
    attack.end();
    users.clear();
    expect_served(listener, security);
    return kOfARound;
  });
}

void PathStates::listeners(std::uint64_t frames) {
  const Security security = this->security();
  run_rounds(std::string("hostile listener, ") + mode(), frames, [&](std::uint64_t seed) {
    Random random(seed);
    HostileListener attack(random, security);
    auto called = std::async(std::launch::async, [&] {
      return Path::connect(attack.address(), security, small(), {.name = "victim", .within = 5});
    });
    while (called.wait_for(std::chrono::seconds(0)) != std::future_status::ready) attack.open();
    std::list<User> users;
    try {
      users.emplace_back(random, called.get());
    } catch (const Error&) {  // refused, or greeted with nonsense
    }
    for (int turns = 0; !users.empty() && turns < 3 * static_cast<int>(kOfARound) && attack.frames() < kOfARound;
         ++turns) {
      if (!attack.anything() || one_in(random, 10)) attack.open();
      attack.act();
      users.front().act();
      users.remove_if([](const User& user) { return user.over(); });
    }
    const std::uint64_t sent = attack.frames();
    attack.end();
    users.clear();
    return sent + 1;
  });
}

TEST_P(PathStates, HostileCallers) { callers(kFew); }
TEST_P(PathStates, HostileListeners) { listeners(kFew); }
class FullPathStates : public PathStates {};
TEST_P(FullPathStates, HostileCallers) { callers(kMany); }
TEST_P(FullPathStates, HostileListeners) { listeners(kMany); }

const auto name = [](const auto& info) { return std::string(info.param ? "Encrypted" : "Plain"); };
INSTANTIATE_TEST_SUITE_P(Fuzz, PathStates, testing::Bool(), name);
INSTANTIATE_TEST_SUITE_P(Full, FullPathStates, testing::Bool(), name);

}  // namespace
}  // namespace maki::wan::fuzz
