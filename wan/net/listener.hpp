// Accepts paths on one TCP port. A session id, issued inside the encrypted channel and bound to the peer's identity,
// lets further streams and reconnections find their path.
#pragma once

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "wan/net/error.hpp"
#include "wan/net/path.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

class Acceptor;
class Channel;
class Greeter;
class HiddenListener;
class SecurityContext;
class SessionTable;
struct Hello;
struct Welcome;

struct ListenerLimits {
  // Limit on connections that are not authenticated yet, and also on authenticated ones that are being greeted. Above
  // it the network (an IPv4 address, a /64 of IPv6) with the most of them loses its oldest; among authenticated ones,
  // the identity with the most.
  int half_open = 256;
  int sessions = 1024;
  // Limit for one key or certificate (insecure: one address), so that others find room. Above it a caller is told to
  // come later. The memory that a peer may make us hold is bounded too: path/held_memory.hpp.
  int sessions_per_peer = 128;
  int streams_per_peer = 0;  // of all its sessions; 0: a quarter of the process's limit of open files, at least 256
};

struct Accepted {
  Path path;
  std::string name;      // the peer's name for itself
  std::string identity;  // as authenticated; empty when insecure
  std::string host;      // the address that it came from, without the port; behind a relay the relay's
};

class Listener {
 public:
  // Binds to `local` only (an empty host: every address, IPv6 and IPv4; port 0: any free one). `settings` are for the
  // accepted paths (streams: as the peer asks, bounded by `limits`). With a relay it does not bind, but registers
  // `relay.target` there and accepts what the relay passes on. Throws Error if the port is unavailable, SecurityError
  // for bad keys.
  Listener(const Endpoint& local, const Security& security, const PathSettings& settings,
           const ListenerLimits& limits = {}, const RelayRoute& relay = {}, Context& context = Context::shared());
  ~Listener();  // its accepted paths live on, but their lost streams cannot reconnect
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Endpoint address() const { return address_; }  // with the port that was bound
  Accepted accept() { return *next({}); }        // waits for the next path
  std::optional<Accepted> accept_for(double seconds) { return next(seconds); }

 private:
  struct Waiting {
    Accepted accepted;
    EventLoop* loop;
  };

  std::optional<Accepted> next(std::optional<double> seconds);
  void greet(Socket socket, const Address& peer);
  void welcomed(Greeter& greeter, std::unique_ptr<Channel> channel);
  void make_path(const Greeter& greeter, std::unique_ptr<Channel> channel);
  void drop(Greeter& greeter, const std::string& reason);
  void drop_surplus();
  void known(Greeter& greeter, const std::string& identity);
  Welcome decide(const Hello& hello, const Channel& channel, const std::string& host);
  void remove(Greeter& greeter);
  bool queue_full();

  // All members but the queue of accepted paths belong to the loop's thread.
  Context& context_;
  EventLoop& loop_;
  std::shared_ptr<const SecurityContext> security_;
  PathSettings settings_;
  ListenerLimits limits_;
  Endpoint address_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<HiddenListener> hidden_;
  std::unique_ptr<SessionTable> sessions_;
  PeerLog refusals_{[](const std::string& line) { log(LogLevel::kWarning, line); }};
  std::list<std::unique_ptr<Greeter>> half_open_;
  Crowd<Greeter> strangers_, known_;  // connections by network, then by identity

  std::mutex mutex_;  // guards the members below
  std::condition_variable arrived_;
  std::deque<Waiting> accepted_;
};

}  // namespace maki::wan
