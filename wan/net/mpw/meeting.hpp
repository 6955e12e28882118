// How two programs with MPWide's calls come to one path: what the environment says, the ways to a peer, and who is kept.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wan/net/listener.hpp"
#include "wan/net/path.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan::mpw {

// What a program written for MPWide cannot say in its calls: keys and settings, from the environment.
struct Environment {
  Security security;
  PathSettings settings;
  bool streams_given = false;  // by the settings; else the program's channels count
  std::string listen;          // the address to listen on; empty: every one
  double wait = 600;           // seconds until a peer that does not come is an error
};

// Looks a variable up; nullptr where it is not set.
using Lookup = std::function<const char*(const char*)>;

// MAKI_WAN_KEY, MAKI_WAN_INSECURE and MAKI_WAN_SETTINGS (mpw.h says what they hold). Throws SecurityError where there
// is neither key nor certificate nor leave to go without, Error for settings that do not fit.
Environment read_environment(const Lookup& lookup);

// "streams = 32, window = 4 MB": into `environment`. Throws Error, naming `source`.
void read_settings(const std::string& text, const std::string& source, Environment& environment);

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
  explicit Dialer(DialerPlan plan) : plan_(std::move(plan)) { call(); }
  ~Dialer();  // does not wait: the attempt under way ends by itself, before end_all() returns
  Dialer(const Dialer&) = delete;
  static void end_all();

  // The path, once; to be asked again and again. Throws where there is no hope: the peer refuses us, or the one attempt
  // is over.
  std::optional<Path> take();
  void again();  // what take() gave was no good
  const std::string& last_failure() const { return last_failure_; }

 private:
  using Clock = std::chrono::steady_clock;
  void call();
  void failed(const std::exception& error, bool may_come);

  const DialerPlan plan_;
  std::future<Path> attempt_;
  Clock::time_point begun_, next_{};  // the attempt; not before that time another one
  std::chrono::milliseconds pause_{50};
  bool wanted_ = true;
  std::exception_ptr hopeless_;
  std::string last_failure_;
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

inline constexpr Tag kGreetingTag = 0;
inline constexpr Tag kFirstLane = 1;  // the tag of a path's first channel
inline constexpr std::size_t kMaxChannels = 8192;
inline constexpr std::size_t kMaxGreeting = 32 + 4 * kMaxChannels;

// The first message on a path of mpw.h, both ways: who is there, and which ports its channels have.
struct Greeting {
  std::uint64_t ticket = 0;  // random: the side with the lower one decides
  std::vector<int> ports;    // of the channels that look for a partner, in order
};

std::vector<std::byte> encode(const Greeting& greeting);
// Throws ProtocolError for anything that encode() cannot have made.
Greeting decode_greeting(std::span<const std::byte> bytes);

// Those of `mine` whose channels have a partner, in the order that makes them a path's channels 0, 1, ...: equal ports
// are partners; where no port is on both sides (one was forwarded under another number), the first is the first's and
// so on. Throws Error where that leaves channels alone.
std::vector<int> partners(const std::vector<int>& mine, const std::vector<int>& theirs);

// How two programs with MPWide's calls come to one path, whoever calls and whoever listens.
//
// Each side greets on every path to the other that stands. The side with the lower ticket takes the first of them and
// says so on it; the other side follows, and all other paths are closed. So two sides that call each other at the same
// time end with one path, and a side that cannot be called (or whose port is taken on this host) is no worse off.

enum class Manner {
  kWait,  // listens only (where the port is taken on this host, calls whoever has it)
  kCall,  // calls only, and does not wait for a peer that is not there
  kBoth,
};

struct MeetingPlan {
  std::string host;
  Manner manner = Manner::kBoth;
  std::vector<int> ports;  // of the channels that look for partners, in order; the first is called and listened on
  PathSettings settings;   // of the path
  Environment environment;
};

struct Met {
  Path path;
  std::vector<int> ports;  // of `plan.ports` those with a partner, in the order of the path's channels
  std::shared_ptr<SharedListener> listener;  // where the path came in; open as long as lost streams are to come back
};

// Throws Error where no path came about within the environment's `wait` (kCall: connect_timeout), SecurityError.
Met meet(const MeetingPlan& plan);

}  // namespace maki::wan::mpw
