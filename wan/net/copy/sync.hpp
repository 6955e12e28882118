// Ships the files of a folder as they become complete, for as long as it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "wan/net/copy/client.hpp"
#include "wan/net/copy/watch.hpp"

namespace maki::wan::copy {

struct SyncOptions {
  std::string folder;
  std::string destination;  // below the server's root
  double settle = 2;        // seconds that a file has to be left alone
  double scan_every = 60;   // seconds between looks at everything
  bool once = false;        // ship what is there, and end
  bool checksum = false;
  std::function<Path()> connect;  // called again whenever the path was lost, or was not needed for a while
  std::function<bool()> stop;     // asked a few times a second, also while files are under way
  std::function<void(const std::string&)> log;  // lines for the operator
  OnNote on_note;
};

class Sync {
 public:
  explicit Sync(SyncOptions options);
  // Until stop(), or with `once` until all is shipped. A lost path is connected again, for ever (with `once`: Error).
  // Throws Error for what waiting does not mend: a refusing server, a wrong key, a folder that is gone, at first also a
  // name that has no address.
  Counts run();

 private:
  struct Candidate {
    std::string path;
    std::uint64_t size;
    std::int64_t mtime;
  };
  std::vector<Candidate> still_there(const std::vector<std::string>& paths) const;
  void connect();
  void leave();
  bool ship(const std::vector<Candidate>& files);
  void break_off_when_stopped();
  void run_until_stopped();
  void ship_until_there(const std::vector<Candidate>& files);
  void ship_once();
  bool pause(double seconds);
  bool stopped() const { return options_.stop && options_.stop(); }
  void log(const std::string& line) const;

  SyncOptions options_;
  std::shared_ptr<const Root> root_;
  Watch watch_;
  std::mutex mutex_;  // of the pointer, for the thread that breaks a copy off
  std::shared_ptr<Client> client_;
  std::chrono::steady_clock::time_point shipped_;
  bool met_ = false;  // the server was reached once
  std::atomic<bool> ended_{false};
  Counts total_;
};

}  // namespace maki::wan::copy
