#include "wan/sites/link_start.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/quantity.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/hello.hpp"
#include "wan/sites/ring_plan.hpp"
#include "wan/sites/ring_wire.hpp"

namespace maki::sites {
namespace {

using wan::seconds_since;
using wan::WallClock;

constexpr double kFirstAttempt = 1.5,
                 kLongestAttempt = 5;  // time limits of attempts (seconds), which grow; several round trips
constexpr double kPause = 1;           // seconds between attempts that fail at once
constexpr double kSilence = 30;        // seconds until a connected peer without a hello is given up

// The part of an error message in parentheses; the user knows the rest.
std::string reason_in(const std::string& message) {
  const auto open = message.find(" ("), close = message.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return message.substr(open + 2, close - open - 2);
}

}  // namespace

LinkCaller::LinkCaller(const RingPlan& plan, int site, const Message& hello, wan::Context& context)
    : plan_(plan), site_(site), hello_(hello), context_(context), peer_(plan.sites[static_cast<std::size_t>(site)]),
      attempt_limit_(kFirstAttempt),
      reason_((peer_.relay.used() ? peer_.relay.relay : peer_.address).text() + " is called"),
      thread_([this] { run(); }) {}

LinkCaller::~LinkCaller() {
  stop();
  thread_.join();
}

void LinkCaller::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void LinkCaller::retry() {
  const std::lock_guard lock(mutex_);
  calling_ = true;
  changed_.notify_all();
}

LinkCaller::Result LinkCaller::take_result() {
  const std::lock_guard lock(mutex_);
  return std::exchange(result_, {});
}

std::string LinkCaller::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

void LinkCaller::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return calling_ || stopping_; });
    if (stopping_) return;
    lock.unlock();
    const bool done = attempt();
    lock.lock();
    if (done) calling_ = false;
  }
}

void LinkCaller::fail(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  result_.problem = problem;
}

void LinkCaller::pause(const std::string& reason) {
  std::unique_lock lock(mutex_);
  reason_ = reason;
  changed_.wait_for(lock, std::chrono::duration<double>(kPause), [&] { return stopping_; });
}

// False: a further attempt is needed.
bool LinkCaller::attempt() {
  const wan::Endpoint& end = peer_.relay.used() ? peer_.relay.relay : peer_.address;
  try {
    wan::resolve(end);
  } catch (const wan::Error& error) {  // a name server may be away for a while
    pause(error.what());
    return false;
  }
  const auto begun = WallClock::now();
  const double within = attempt_limit_;
  attempt_limit_ = std::min(1.4 * attempt_limit_, kLongestAttempt);
  const std::string here = plan_.sites[static_cast<std::size_t>(plan_.me)].name;
  const LinkPlan link = link_to(plan_, site_);
  wan::Path path;
  try {
    path = wan::Path::connect(peer_.address, link.security, link.path, {here, peer_.relay, within}, context_);
  } catch (const wan::PathError& error) {
    // A peer that has closed the path may come back; one that refuses it will not change its mind.
    const std::string text = error.what(), reason = reason_in(text);
    if (text.find(" refuses the path") != std::string::npos) {
      fail("site " + peer_.name + " at " + end.text() + " refuses the path (" +
           (reason.empty() ? error.what() : reason) + ")");
      return true;
    }
    if (seconds_since(begun) < within) {
      pause(text);
    } else {
      const std::lock_guard lock(mutex_);
      reason_ = reason.empty() ? end.text() + " does not answer" : reason;
    }
    return false;
  } catch (const wan::Error& error) {
    fail("site " + peer_.name + " at " + end.text() + " cannot be called (" + error.what() + ")");
    return true;
  }
  try {
    path.start_send(kHelloTag, hello_);
    wan::Request answer = path.start_receive_any(kHelloTag, kLongestHello);
    {
      const std::lock_guard lock(mutex_);
      reason_ = end.text() + " was reached, and has not said yet who it is";
    }
    for (const auto from = WallClock::now(); !answer.wait_for(0.1);) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return true;
      if (seconds_since(from) > kSilence) throw wan::Error(end.text() + " was reached and says nothing");
    }
    const std::lock_guard lock(mutex_);
    result_.path = std::move(path);
    result_.hello = answer.take();
    return true;
  } catch (const wan::Error& error) {
    pause(error.what());
    return false;
  }
}

}  // namespace maki::sites
