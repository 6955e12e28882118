// The ports that a program listens on: one listener for each, however many paths come through it.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/mpw/environment.hpp"

namespace maki::wan::mpw {

// Whom a meeting waits for at a port. No addresses: anyone. `caller` is what it calls itself: where its host is this
// machine it may come to its own port.
struct Expected {
  std::vector<std::string> addresses;
  std::string caller;
};

class SharedListener {
 public:
  // The listener of this port; the same one as long as anyone holds it. Throws Error where the port cannot be had.
  static std::shared_ptr<SharedListener> open(int port, const Environment& environment);
  explicit SharedListener(int port, const Environment& environment);

  void expect(const Expected& who);
  void forget(const Expected& who);
  // The next path for `who`, if one is there. A path goes to the meeting that waits for its address, else to one that
  // waits for anyone, else (an address may be translated on the way) to the first that waits; never to its caller.
  std::optional<Accepted> take(const Expected& who);

 private:
  struct Arrival {
    Accepted accepted;
    std::string address;
  };
  const Expected* owner(const Arrival& arrival) const;

  std::mutex mutex_;
  Listener listener_;
  std::list<Arrival> arrivals_;
  std::vector<const Expected*> expected_;
};

}  // namespace maki::wan::mpw
