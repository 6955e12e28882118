#include "wan/sites/link_caller.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"
#include "wan/sites/hello.hpp"
#include "wan/sites/link_plan.hpp"
#include "wan/sites/ring_wire.hpp"

namespace maki::sites {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kFirst = 1.5, kLongest = 5;  // seconds of an attempt, longer from one to the next; several round trips
constexpr double kPause = 1;                  // between attempts that fail by themselves
constexpr double kSilence = 30;               // of one that was connected and says nothing

double since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

// What a message has in its parentheses: the rest is known.
std::string reason_in(const std::string& message) {
  const auto open = message.find(" ("), close = message.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return "";
  return message.substr(open + 2, close - open - 2);
}

}  // namespace

LinkCaller::LinkCaller(const RingPlan& plan, int site, const Message& hello, wan::Context& context)
    : plan_(plan), site_(site), hello_(hello), context_(context), there_(plan.sites[static_cast<std::size_t>(site)]),
      within_(kFirst), reason_((there_.relay.used() ? there_.relay.relay : there_.address).text() + " is called"),
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

void LinkCaller::call() {
  const std::lock_guard lock(mutex_);
  calling_ = true;
  changed_.notify_all();
}

LinkCaller::Reached LinkCaller::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reached_, {});
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
  reached_.problem = problem;
}

void LinkCaller::wait_a_little(const std::string& reason) {
  std::unique_lock lock(mutex_);
  reason_ = reason;
  changed_.wait_for(lock, std::chrono::duration<double>(kPause), [&] { return stopping_; });
}

// False: to be tried again.
bool LinkCaller::attempt() {
  const wan::Endpoint& end = there_.relay.used() ? there_.relay.relay : there_.address;
  try {
    wan::resolve(end);
  } catch (const wan::Error& error) {  // a name server may be away for a while
    wait_a_little(error.what());
    return false;
  }
  const auto begun = Clock::now();
  const double within = within_;
  within_ = std::min(1.4 * within_, kLongest);
  const std::string here = plan_.sites[static_cast<std::size_t>(plan_.me)].name;
  const LinkPlan link = link_to(plan_, site_);
  wan::Path path;
  try {
    path = wan::Path::connect(there_.address, link.security, link.path, {here, there_.relay, within}, context_);
  } catch (const wan::PathError& error) {
    // One that was there and went (it said good-bye) may come again; one that does not want us will not.
    const std::string text = error.what(), reason = reason_in(text);
    if (text.find(" refuses the path") != std::string::npos) {
      fail("site " + there_.name + " at " + end.text() + " refuses the path (" +
           (reason.empty() ? error.what() : reason) + ")");
      return true;
    }
    if (since(begun) < within) {
      wait_a_little(text);
    } else {
      const std::lock_guard lock(mutex_);
      reason_ = reason.empty() ? end.text() + " does not answer" : reason;
    }
    return false;
  } catch (const wan::Error& error) {
    fail("site " + there_.name + " at " + end.text() + " cannot be called (" + error.what() + ")");
    return true;
  }
  try {
    path.start_send(kHelloTag, hello_);
    wan::Request answer = path.start_receive_any(kHelloTag, kLongestHello);
    {
      const std::lock_guard lock(mutex_);
      reason_ = end.text() + " was reached, and has not said yet who it is";
    }
    for (const auto from = Clock::now(); !answer.wait_for(0.1);) {
      const std::lock_guard lock(mutex_);
      if (stopping_) return true;
      if (since(from) > kSilence) throw wan::Error(end.text() + " was reached and says nothing");
    }
    const std::lock_guard lock(mutex_);
    reached_.path = std::move(path);
    reached_.hello = answer.take();
    return true;
  } catch (const wan::Error& error) {
    wait_a_little(error.what());
    return false;
  }
}

}  // namespace maki::sites
