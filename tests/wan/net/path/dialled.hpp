// Dialling in a loop of its own, for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/path/dial.hpp"

namespace maki::wan::test {

struct Dialled {
  std::unique_ptr<Channel> channel;
  Welcome welcome;
  Address peer;
  DialFailure failure = DialFailure::kAgain;
  std::string reason;
};

inline DialPlan plan_to(std::vector<Address> addresses, const Hello& hello = hello_of(0, 1)) {
  DialPlan plan;
  plan.addresses = std::move(addresses);
  plan.host = "127.0.0.1";
  plan.security = SecurityContext::make(insecure());
  plan.hello = hello;
  return plan;
}

// The Dial is deleted inside the callback, as its user may do.
class Caller {
 public:
  // `meanwhile` runs in the loop when the first address has been called, and has not been heard yet.
  explicit Caller(
      const DialPlan& plan, const std::function<void()>& meanwhile = [] {}) {
    loop_.call([&] {
      loop_.post(meanwhile);
      dial_ = std::make_unique<Dial>(
          loop_, plan,
          [this](std::unique_ptr<Channel> channel, const Welcome& welcome, const Address& peer) {
            dial_.reset();
            done_.set_value({std::move(channel), welcome, peer, {}, ""});
          },
          [this](DialFailure failure, const std::string& reason) {
            dial_.reset();
            done_.set_value({nullptr, {}, {}, failure, reason});
          });
    });
  }
  ~Caller() { give_up(); }
  Dialled wait() {
    auto done = done_.get_future();
    if (done.wait_for(std::chrono::seconds(60)) == std::future_status::ready) return done.get();
    ADD_FAILURE() << "it has neither connected nor failed";
    return {};
  }
  void give_up() {
    loop_.call([&] { dial_.reset(); });
  }

 private:
  EventLoop loop_{"test-dial"};
  std::unique_ptr<Dial> dial_;
  std::promise<Dialled> done_;
};

}  // namespace maki::wan::test
