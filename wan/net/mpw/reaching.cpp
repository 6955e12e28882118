#include "wan/net/mpw/meeting.hpp"

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <utility>

#include "wan/net/quantity.hpp"

namespace maki::wan::mpw {

// ---- calling -------------------------------------------------------------------------------------------------------

namespace {

constexpr std::chrono::milliseconds kLongestPause{2000};  // after a path that was no good

struct EndingAttempts {
  std::mutex mutex;
  std::list<std::future<Path>> attempts;
};

// Never destroyed: who ends last asks end_all().
EndingAttempts& ending() {
  static EndingAttempts& all = *new EndingAttempts;
  return all;
}

}  // namespace

Dialer::~Dialer() {
  if (!attempt_.valid()) return;
  const std::lock_guard lock(ending().mutex);
  ending().attempts.push_back(std::move(attempt_));
}

void Dialer::end_all() {
  std::list<std::future<Path>> attempts;  // each is waited for as it goes
  const std::lock_guard lock(ending().mutex);
  attempts.swap(ending().attempts);
}

void Dialer::call() {
  begun_ = Clock::now();
  attempt_ = std::async(std::launch::async, [plan = plan_] {
    return Path::connect(plan.peer, plan.security, plan.settings, {.name = plan.name, .within = plan.attempt});
  });
}

std::optional<Path> Dialer::take() {
  if (hopeless_) std::rethrow_exception(hopeless_);
  if (!attempt_.valid() && wanted_ && Clock::now() >= next_) call();
  if (!attempt_.valid() || attempt_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  try {
    wanted_ = false;
    return attempt_.get();
  } catch (const PathError& error) {
    // Before its time is over an attempt is ended by a refusal, or by a peer that has just closed its port.
    const bool closed = error.seconds_down() == 0;
    failed(error, !plan_.once && (closed || seconds_since(begun_) >= plan_.attempt));
    if (closed) again();
  } catch (const std::exception& error) {
    failed(error, false);
  }
  return {};
}

// Within a handler: throws on where no other attempt is to be made.
void Dialer::failed(const std::exception& error, bool may_come) {
  last_failure_ = error.what();
  wanted_ = may_come;
  if (wanted_) return;
  hopeless_ = std::current_exception();
  throw;
}

void Dialer::again() {
  wanted_ = true;
  next_ = Clock::now() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

// ---- being called --------------------------------------------------------------------------------------------------

namespace {

// Of "name at 1.2.3.4:6000": 1.2.3.4.
std::string address_of(const Path& path) {
  const std::string peer = path.status().peer;
  const std::size_t space = peer.rfind(' ');
  try {
    return Endpoint::parse(space == std::string::npos ? peer : peer.substr(space + 1)).host;
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::shared_ptr<SharedListener> SharedListener::open(int port, const Environment& environment) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<SharedListener>> listeners;
  const std::lock_guard lock(mutex);
  std::shared_ptr<SharedListener> listener = listeners[port].lock();
  if (!listener) {
    listener = std::make_shared<SharedListener>(port, environment);
    listeners[port] = listener;
  }
  return listener;
}

SharedListener::SharedListener(int port, const Environment& environment)
    : listener_(Endpoint{environment.listen, static_cast<std::uint16_t>(port)}, environment.security,
                environment.settings) {}

void SharedListener::expect(const Expected& who) {
  const std::lock_guard lock(mutex_);
  expected_.push_back(&who);
}

void SharedListener::forget(const Expected& who) {
  const std::lock_guard lock(mutex_);
  std::erase(expected_, &who);
}

const Expected* SharedListener::owner(const Arrival& arrival) const {
  std::vector<const Expected*> others = expected_;
  std::erase_if(others, [&](const Expected* one) { return one->caller == arrival.accepted.name; });
  const auto named = [&](const Expected* one) {
    return std::find(one->addresses.begin(), one->addresses.end(), arrival.address) != one->addresses.end();
  };
  const auto anyone = [](const Expected* one) { return one->addresses.empty(); };
  if (const auto at = std::find_if(others.begin(), others.end(), named); at != others.end()) return *at;
  if (const auto at = std::find_if(others.begin(), others.end(), anyone); at != others.end()) return *at;
  return others.empty() ? nullptr : others.front();
}

std::optional<Accepted> SharedListener::take(const Expected& who) {
  const std::lock_guard lock(mutex_);
  while (auto accepted = listener_.accept_for(0)) {
    const std::string address = address_of(accepted->path);
    arrivals_.push_back({std::move(*accepted), address});
  }
  // Nobody but its caller is here: it is sent away, and calls again.
  arrivals_.remove_if([&](const Arrival& one) { return one.accepted.name == who.caller && owner(one) == nullptr; });
  const auto mine =
      std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& one) { return owner(one) == &who; });
  if (mine == arrivals_.end()) return std::nullopt;
  std::optional<Accepted> accepted = std::move(mine->accepted);
  arrivals_.erase(mine);
  return accepted;
}

}  // namespace maki::wan::mpw
