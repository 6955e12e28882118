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

constexpr std::chrono::milliseconds kFirstPause{50}, kLongestPause{2000};  // after a path that was no good

struct EndingDialers {
  std::mutex mutex;
  std::list<std::unique_ptr<Dialer>> dialers;
};

// Never destroyed: who ends last asks end_all().
EndingDialers& ending_dialers() {
  static EndingDialers& all = *new EndingDialers;
  return all;
}

}  // namespace

Dialer::Dialer(DialerPlan plan) : plan_(std::move(plan)), thread_([this] { run(); }) {}

Dialer::~Dialer() {
  stop();
  thread_.join();
}

void Dialer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void Dialer::leave(std::unique_ptr<Dialer> dialer) {
  if (!dialer) return;
  dialer->stop();
  const std::lock_guard lock(ending_dialers().mutex);
  ending_dialers().dialers.push_back(std::move(dialer));
}

void Dialer::end_all() {
  std::list<std::unique_ptr<Dialer>> dialers;
  const std::lock_guard lock(ending_dialers().mutex);
  dialers.swap(ending_dialers().dialers);
}

std::optional<Path> Dialer::take() {
  const std::lock_guard lock(mutex_);
  if (hopeless_) std::rethrow_exception(hopeless_);
  return std::exchange(path_, std::nullopt);
}

void Dialer::again() {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = again_ = true;
  }
  changed_.notify_all();
}

std::string Dialer::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

void Dialer::run() {
  auto pause = kFirstPause;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || wanted_; });
    if (again_) {
      changed_.wait_for(lock, pause, [&] { return stopping_; });
      pause = std::min(2 * pause, kLongestPause);
    }
    if (stopping_) return;
    again_ = false;
    lock.unlock();
    std::optional<Path> path;
    std::exception_ptr error;
    std::string reason;
    bool may_come = false, closed = false;
    const auto begun = std::chrono::steady_clock::now();
    try {
      path = Path::connect(plan_.peer, plan_.security, plan_.settings, {.name = plan_.name, .within = plan_.attempt});
    } catch (const PathError& failure) {
      // Before its time is over an attempt is ended by a refusal, or by a peer that has just closed its port.
      closed = failure.seconds_down() == 0;
      may_come = closed || seconds_since(begun) >= plan_.attempt;
      error = std::current_exception();
      reason = failure.what();
    } catch (const std::exception& failure) {
      error = std::current_exception();
      reason = failure.what();
    }
    lock.lock();
    last_failure_ = reason;
    wanted_ = !path && may_come && !plan_.once;
    again_ = wanted_ && closed;
    if (!path && !wanted_) hopeless_ = error;
    path_ = std::move(path);
  }
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
