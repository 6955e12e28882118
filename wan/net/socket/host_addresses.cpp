#include "wan/net/socket/host_addresses.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace maki::wan {
namespace {

constexpr auto kInterval = std::chrono::seconds(1);  // between lookups

}  // namespace

struct HostAddresses::Shared {
  const Endpoint endpoint;
  const LookUp look_up;
  std::mutex mutex;  // of what follows
  std::vector<Address> addresses;
  bool busy = false;
  std::chrono::steady_clock::time_point next{};

  Shared(const Endpoint& of, LookUp by) : endpoint(of), look_up(std::move(by)), addresses(look_up(endpoint)) {}

  void renew() {
    std::vector<Address> found;
    try {
      found = look_up(endpoint);
    } catch (const std::exception&) {  // the name server is away, as the host may be
    }
    const std::lock_guard lock(mutex);
    if (!found.empty()) addresses = std::move(found);
    busy = false;
    next = std::chrono::steady_clock::now() + kInterval;
  }
};

HostAddresses::HostAddresses(const Endpoint& endpoint, LookUp look_up)
    : shared_(std::make_shared<Shared>(endpoint, std::move(look_up))) {}

std::vector<Address> HostAddresses::now() const {
  if (!shared_) return {};
  const std::lock_guard lock(shared_->mutex);
  return shared_->addresses;
}

void HostAddresses::look_up_again() const {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->busy || std::chrono::steady_clock::now() < shared_->next) return;
  try {
    std::thread([shared = shared_] { shared->renew(); }).detach();
    shared_->busy = true;
  } catch (const std::system_error&) {  // no thread now: a later failure asks again
  }
}

}  // namespace maki::wan
