// A relay under peers who say what they like, with its key or without: those who keep to the rules are passed on.
#include <gtest/gtest.h>

#include <list>

#include "tests/wan/fuzz/rounds.hpp"
#include "tests/wan/net/relay/rig.hpp"
#include "wan/net/relay/admission.hpp"

namespace maki::wan::fuzz {
namespace {

using test::Rig;

constexpr std::uint64_t kFew = 600, kMany = 50'000;  // admissions
constexpr std::uint64_t kOfARound = 100;
constexpr std::size_t kOpen = 30;

// One admission, right or not, and what comes after it.
class HostileRelayClient {
 public:
  HostileRelayClient(Random& random, const Rig& rig)
      : random_(random), rig_(rig), socket_(test::connect_now(rig.at())) {}

  void ask() {
    const auto heard = test::get(socket_, admission::kChallengeBytes);
    if (heard.size() != admission::kChallengeBytes) return;
    admission::ChallengeBytes challenge;
    std::copy(heard.begin(), heard.end(), challenge.begin());
    const auto right = admission::encode(question(), admission::decode_challenge(challenge).nonce,
                                         one_in(random_, 8) ? Key::make() : rig_.key);
    std::vector<std::byte> request(right.begin(), right.end());
    if (one_in(random_, 4)) damage(request, random_);
    if (one_in(random_, 10)) request.resize(below(random_, request.size() + 1));
    test::put(socket_, request);
  }
  // False where the relay has ended it.
  bool go_on() {
    std::vector<std::byte> words(below(random_, 2000));
    for (std::byte& byte : words) byte = static_cast<std::byte>(random_());
    if (!test::put(socket_, words)) return false;
    std::byte heard[4096];
    const auto got = recv(socket_.descriptor(), heard, sizeof heard, MSG_DONTWAIT);
    return got > 0 || (got < 0 && errno == EAGAIN);
  }

 private:
  admission::Request question() {
    using admission::Want;
    const char* const names[] = {"server", "nobody", "h1", "h2", "h3", "0123456789abcdef0123456789abcdef"};
    admission::Request request{.want = any_of(random_, {Want::kConnect, Want::kListen, Want::kAnswer}),
                               .name = any_of(random_, names),
                               .key_id = one_in(random_, 10) ? "0123456789abcdef" : rig_.key.id};
    for (std::byte& byte : request.nonce) byte = static_cast<std::byte>(random_());
    return request;
  }
  Random& random_;
  const Rig& rig_;
  Socket socket_;
};

void expect_passed_on(Rig& rig, std::list<Socket>& arrived) {
  auto reached = std::async(std::launch::async, [&] { return test::reach(rig.at(), rig.key, "server"); });
  const auto take_in = [&] {
    while (test::ready(rig.server.descriptor(), POLLIN, 1)) arrived.push_back(rig.server.accept());
  };
  while (reached.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) take_in();
  const Socket here = reached.get();
  const std::vector<std::byte> words(100, std::byte{7});
  test::put(here, words);
  EXPECT_TRUE(test::comes_true([&] {
    take_in();
    for (const Socket& one : arrived) {
      std::byte heard[100];
      if (recv(one.descriptor(), heard, sizeof heard, MSG_PEEK | MSG_DONTWAIT) == std::ssize(heard) &&
          std::equal(words.begin(), words.end(), heard))
        return true;
    }
    return false;
  })) << "an honest client is not passed on";
}

void clients(std::uint64_t count) {
  run_rounds("hostile clients of a relay", count, [&](std::uint64_t seed) {
    Random random(seed);
    Rig rig;
    rig.start();
    const test::Joined kept = test::join(rig);
    std::list<HostileRelayClient> clients;
    std::list<Socket> arrived;
    for (std::uint64_t i = 0; i < kOfARound; ++i) {
      try {
        clients.emplace_back(random, rig).ask();
      } catch (const Error&) {  // the relay dropped it, or had no time
      }
      clients.remove_if([&](HostileRelayClient& client) { return one_in(random, 3) && !client.go_on(); });
      if (clients.size() > kOpen)
        clients.erase(std::next(clients.begin(), static_cast<long>(below(random, clients.size()))));
      while (test::ready(rig.server.descriptor(), POLLIN, 0)) arrived.push_back(rig.server.accept());
      while (arrived.size() > kOpen) arrived.pop_front();
    }
    expect_passed_on(rig, arrived);
    EXPECT_TRUE(test::put(kept.here, test::pattern(10, 1)));
    EXPECT_EQ(test::get(kept.there, 10), test::pattern(10, 1));
    return kOfARound;
  });
}

TEST(RelayStates, HostileRelayClients) { clients(kFew); }
TEST(FullRelayStates, HostileRelayClients) { clients(kMany); }

}  // namespace
}  // namespace maki::wan::fuzz
