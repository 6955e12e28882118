// The addresses of a host, which may change while connections to it are made for weeks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "wan/net/settings.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

// Copies share the addresses. For any thread.
class HostAddresses {
 public:
  using LookUp = std::function<std::vector<Address>(const Endpoint&)>;

  HostAddresses() = default;  // of no host: none
  // Looks the name up, which blocks; throws Error as resolve().
  explicit HostAddresses(const Endpoint& endpoint, LookUp look_up = resolve);

  std::vector<Address> now() const;
  // After a connection failed: looks the name up again, on a thread of its own, at most once a second. Where that fails
  // the addresses stay.
  void look_up_again() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace maki::wan
