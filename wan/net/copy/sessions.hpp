// The clients that are here, a thread for each, and how many of them there may be.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "wan/net/copy/message_channel.hpp"

namespace maki::wan::copy {

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
    std::shared_ptr<PathChannel> channel;  // null once it is over
    std::thread thread, farewell;
    std::atomic<bool> ended{false}, leaving{false};  // leaving: `farewell` is being said
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

}  // namespace maki::wan::copy
