#include "wan/net/mpw/shared_listener.hpp"

#include <algorithm>
#include <map>

namespace maki::wan::mpw {
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
