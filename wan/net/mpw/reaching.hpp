// The ways to a peer: calling it until it answers, and the ports at which it may call.
#pragma once

#include <condition_variable>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/mpw/environment.hpp"
#include "wan/net/path.hpp"

namespace maki::wan::mpw {

struct DialerPlan {
  Endpoint peer;
  Security security;
  PathSettings settings;
  std::string name;    // what we call ourselves
  double attempt = 5;  // seconds
  bool once = false;   // a single attempt
};

// Calls a peer until it answers, in the background: a side that both calls and listens may be called meanwhile.
class Dialer {
 public:
  explicit Dialer(DialerPlan plan);
  ~Dialer();  // waits for the attempt under way
  // Ends without waiting: the attempt under way ends by itself, before end_all() returns.
  static void leave(std::unique_ptr<Dialer> dialer);
  static void end_all();

  // The path, once. Throws where there is no hope: the peer refuses us, or the one attempt is over.
  std::optional<Path> take();
  void again();  // what take() gave was no good
  std::string last_failure() const;

 private:
  void run();
  void stop();

  const DialerPlan plan_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, wanted_ = true, again_ = false;
  std::optional<Path> path_;
  std::exception_ptr hopeless_;
  std::string last_failure_;
  std::thread thread_;
};

// Whom a meeting waits for at a port. No addresses: anyone. `caller` is what it calls itself: where its host is this
// machine it may come to its own port.
struct Expected {
  std::vector<std::string> addresses;
  std::string caller;
};

// The ports that a program listens on: one listener for each, however many paths come through it.
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
