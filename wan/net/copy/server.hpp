// Serves folders to any number of clients at once: to each key its own, and nothing outside of it can be named.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "wan/net/copy/leases.hpp"
#include "wan/net/copy/peer_log.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/copy/sessions.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

// What whoever holds a key may have.
struct Share {
  std::string root;
  bool read_only = false;
  std::string holder = {};  // as the log names it: "key site.key"
};

struct ServerOptions {
  std::map<std::string, Share> shares;  // by identity: the id of a key, the name in a certificate
  std::optional<Share> others;          // for everyone else who may call
  bool perms = false;                   // take execute bits, and writing by others, as clients say
  std::size_t batch = kMaxBatch;        // bytes of a message, at most so many
  SessionLimits limits;
  std::function<void(const std::string& line)> log;  // who comes, what is copied, and what fails; any thread
};

class Server {
 public:
  // Throws Error where a root is not a folder.
  explicit Server(const ServerOptions& options);

  void run(Listener& listener);  // until stop()
  void stop();                   // any thread; copies under way are given up

  // One client, until it leaves: for run(), and for tests.
  void serve(MessageChannel& channel, ClientState& client);

 private:
  struct Opened {
    explicit Opened(const Share& given) : share(given), root(given.root) {}
    Share share;
    Root root;
  };
  bool serve_one(MessageChannel& channel, ClientState& client);
  void wait_for_turn(MessageChannel& channel, const ClientState& client);
  const Opened* opened(const ClientState& client) const;
  Reply check(const Order& order, const ClientState& client) const;
  void take_push(MessageChannel& channel, const ClientState& client, const Order& order);
  void give_pull(MessageChannel& channel, const ClientState& client, const Order& order);
  OnNote failures_of(const ClientState& client, const char* what);

  ServerOptions options_;
  std::map<std::string, Opened> shares_;
  std::optional<Opened> others_;
  Leases leases_;
  PeerLog log_;
  std::atomic<bool> stopped_{false};
  Sessions sessions_;  // last: its threads use the others
};

}  // namespace maki::wan::copy
