// A server of folders: its clients, and their rights.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "wan/net/copy/incoming_file.hpp"
#include "wan/net/copy/message_channel.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/error.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

// Limits the rate of each identity's orders, each of which is a line of the log. Thread-safe.
class Turns {
 public:
  static constexpr int kBurst = 100, kASecond = 4;  // orders of each identity
  double take(const std::string& identity);         // seconds that an order has to wait

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> due_;  // when the latest order would be due at the even rate
};

// A session holds up to 200 MB.
struct SessionLimits {
  int of_each = 8;  // for each identity
  int all = 32;
  double order = 30;  // seconds for a client to send its order, at first and after each copy
};

struct ClientState {
  using Clock = std::chrono::steady_clock;
  std::string name;      // for messages
  std::string identity;  // as authenticated
  bool surplus = false;  // above the limits: its order is postponed
  std::atomic<bool> copying{false};
  std::atomic<Clock::time_point> since{Clock::now()};  // its arrival, or its last copy's end
};

// The rights of a key's holder.
struct Share {
  std::string root;
  bool read_only = false;
  std::string holder = {};  // for the log: "key site.key"
};

struct ServerOptions {
  std::map<std::string, Share> shares;  // by identity: the id of a key, the name in a certificate
  std::optional<Share> others;          // for all other authorised callers
  bool perms = false;                   // take execute bits, and write permission for others, from clients
  std::size_t batch = kMaxBatch;        // largest message, bytes
  SessionLimits limits;
  std::function<void(const std::string& line)> log;  // connections, copies and failures; any thread
};

// Serves folders to any number of clients at once: each key has its own, and cannot name anything outside.
class Server {
 public:
  // Throws Error where a root is not a folder.
  explicit Server(const ServerOptions& options);
  ~Server() { stop(); }  // waits for its threads

  void run(Listener& listener);  // until stop()
  void stop();                   // any thread; ends copies in progress, and admits nobody else

  // Serves one client until it leaves: for run(), and for tests.
  void serve(MessageChannel& channel, ClientState& client);

 private:
  struct Opened {
    explicit Opened(const Share& given) : share(given), root(given.root) {}
    Share share;
    Root root;
  };
  // A connected client, with a thread of its own.
  struct Session {
    ClientState client;
    std::shared_ptr<MessageChannel> channel;         // null after its end
    std::atomic<bool> ended{false}, leaving{false};  // leaving: `farewell` is running
    std::jthread thread, farewell;                   // last: they use the others until they are joined
    bool counts() const { return channel && !farewell.joinable() && !client.surplus; }
  };
  // If all places are taken, an idle session or one whose client is gone makes room; otherwise one of an identity with
  // more sessions than this one. Throws std::system_error if no thread can be started.
  void start(Accepted& accepted);  // takes its path
  void host(Session& session);
  bool make_room(const std::string& identity);
  static bool is_idle(const Session& session);
  static void dismiss(Session& session);
  void remove_ended();
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
  Turns turns_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;                                            // guards the members below
  std::map<std::string, std::shared_ptr<UnderWay>> under_way_;  // by identity
  std::list<std::unique_ptr<Session>> sessions_;                // last: its threads use the others
};

}  // namespace maki::wan::copy
