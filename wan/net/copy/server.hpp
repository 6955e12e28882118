// A server of folders: its log, the clients that are here, and what they may have.
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
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

// What a server says of its clients: every line safe to be shown, and no more of them than an operator can bear.
// Any thread.
class PeerLog {
 public:
  static constexpr int kAMinute = 60;               // lines of mention() about each identity
  static constexpr int kBurst = 100, kASecond = 4;  // orders of each identity

  explicit PeerLog(std::function<void(const std::string& line)> sink) : sink_(std::move(sink)) {}

  // What has to be said. Whoever calls for a peer waits for its turn() first.
  void record(const std::string& line);
  // What may be left out: beyond so many a minute lines are counted only.
  void mention(const std::string& identity, const std::string& line);
  void catch_up();  // called now and then: says how many were left out
  // Seconds that an order of this identity has to wait for, so that orders do not fill the log.
  double turn(const std::string& identity);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Clock::time_point minute = Clock::now();  // when it began
    int said = 0;
    std::uint64_t left_out = 0;
    Clock::time_point due = {};  // of the latest order, if they came evenly
  };
  void sum_up(const std::string& identity, Peer& peer);

  std::function<void(const std::string& line)> sink_;
  std::mutex mutex_;
  std::map<std::string, Peer> peers_;  // of authenticated ones only
};

// A session holds up to 200 MB.
struct SessionLimits {
  int of_each = 8;  // of each identity
  int all = 32;
  double order = 30;  // seconds that a client has to say what it wants, at first and after each copy
};

struct ClientState {
  using Clock = std::chrono::steady_clock;
  std::string name;      // for messages
  std::string identity;  // as authenticated
  bool surplus = false;  // one too many: its order is put off
  std::atomic<bool> copying{false};
  std::atomic<Clock::time_point> since{Clock::now()};  // when copying became what it is
};

// The clients that are here, a thread for each, and how many of them there may be.
class Sessions {
 public:
  // `serve` is called in a thread for each client, and returns when it is through with it. Throws nothing.
  using Serve = std::function<void(MessageChannel&, ClientState&)>;
  Sessions(const SessionLimits& limits, Serve serve) : limits_(limits), serve_(std::move(serve)) {}
  ~Sessions();  // stop(), and waits

  // Where all places are taken, a session that does nothing or whose client is gone makes room; then one of an identity
  // that has more than this one. Throws std::system_error where there is no thread to be had.
  void start(Path path, const std::string& name, const std::string& identity);
  void remove_ended();  // now and then
  void stop();          // any thread: whoever is here has its connection broken, and nobody else comes in

 private:
  struct Session {
    ClientState client;
    std::shared_ptr<PathChannel> channel;            // null once it is over
    std::atomic<bool> ended{false}, leaving{false};  // leaving: `farewell` is being said
    std::jthread thread, farewell;                   // last: they use the others until they are joined
    bool counts() const { return channel && !farewell.joinable() && !client.surplus; }
  };
  void host(Session& session);
  bool make_room(const std::string& identity);
  static bool is_idle(const Session& session);
  static void dismiss(Session& session);

  SessionLimits limits_;
  Serve serve_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::map<std::string, std::shared_ptr<UnderWay>> under_way_;  // by identity
  std::list<std::unique_ptr<Session>> sessions_;
};

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

// Serves folders to any number of clients at once: to each key its own, and nothing outside of it can be named.
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
