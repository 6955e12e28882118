// Serves a folder to any number of clients at once; nothing outside of it can be named.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "wan/net/copy/claims.hpp"
#include "wan/net/copy/courier.hpp"
#include "wan/net/copy/report.hpp"
#include "wan/net/copy/root.hpp"
#include "wan/net/listener.hpp"

namespace maki::wan::copy {

struct ServerOptions {
  std::string root;
  bool read_only = false;
  std::size_t batch = 8 << 20;                       // bytes of a message, at most kMaxBatch
  std::function<void(const std::string& line)> log;  // what is copied, and what fails; any thread
};

class Server {
 public:
  // Throws Error where the root is not a folder.
  explicit Server(const ServerOptions& options);
  ~Server();  // stop(), and waits

  void run(Listener& listener);  // until stop()
  void stop();                   // any thread; copies under way are given up

  // One client, until it leaves: for run(), and for tests. `name` appears in the log.
  void serve(Courier& courier, const std::string& name);

 private:
  struct Session {
    std::unique_ptr<Courier> courier;
    std::thread thread;
    std::atomic<bool> ended{false};
  };
  void start(Accepted accepted);
  void remove_ended(bool all);
  bool serve_one(Courier& courier, const std::string& name);
  Reply check(const Order& order) const;
  void take_push(Courier& courier, const std::string& name, const Order& order);
  void give_pull(Courier& courier, const std::string& name, const Order& order);
  void log(const std::string& line) const;
  void log_end(const std::string& name, const char* what, const CopyReport& report) const;

  ServerOptions options_;
  Root root_;
  Claims claims_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::list<std::unique_ptr<Session>> sessions_;
};

// "12 files (3.40 GB) in 4 folders; 2 were there; 1 failed"
std::string summary(const Counts& counts);

}  // namespace maki::wan::copy
