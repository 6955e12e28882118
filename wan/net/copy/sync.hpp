// Shipping the files of a folder as they become complete.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "wan/net/copy/client.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// Names that begin with a dot or end in .part or .tmp are still in the making, or nobody else's business.
bool is_ignored(std::string_view name);

// Tells which files of a folder are complete: closed after writing, or moved there, and left alone for a while since.
class Watch {
 public:
  // Folders below are watched too, as they come. Throws Error where `folder` is not there or cannot be watched.
  Watch(const std::string& folder, double settle);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Looks at all files: what the events did not tell (before the start, on a network's file system, after too many at
  // once). A file that is still as it was when it was marked does not count.
  void scan();
  // Waits at most `seconds` for complete files: paths below the folder, each once, at most `most`.
  std::vector<std::string> ready(double seconds, std::size_t most = 10000);
  std::size_t waiting() const { return waiting_.size(); }  // files that are not complete yet
  // This state of a file has been dealt with.
  void mark(const std::string& path, std::uint64_t size, std::int64_t mtime) { known_[path] = {size, mtime}; }
  bool is_marked(const std::string& path, std::uint64_t size, std::int64_t mtime) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct File {
    Clock::time_point due;
    bool open = false;  // written to, and not closed since
  };
  void scan_folder(const std::string& path);
  void see_file(const std::string& path, const struct stat& status);
  void read_events();
  void take_event(int watch, unsigned what, const std::string& name);
  void forget_folder(const std::string& path);

  Root root_;
  std::string folder_;
  Clock::duration settle_;
  Descriptor events_;
  std::map<int, std::string> watched_;  // folders
  std::map<std::string, File> waiting_;
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> known_;
  bool lost_ = false;  // events
};

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

// Ships the files of a folder as they become complete, for as long as it runs.
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
  void break_off_when_stopped(const std::stop_token& ended);
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
  Counts total_;
};

}  // namespace maki::wan::copy
