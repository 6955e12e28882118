// Shipping the files of a folder to a served one as they become complete.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wan/net/copy/client.hpp"
#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// Names that begin with a dot or end in .part or .tmp: files still being written, or private ones.
bool is_ignored(std::string_view name);

// Whether the folder's file system tells of files that are open for writing, as Linux's local ones do by leases.
bool knows_writers(const std::string& folder);

inline constexpr std::size_t kMostReady = 10000;  // files at once

// Finds the complete files of a folder: closed after writing, or moved there, and unchanged for a while since. A file
// that was opened before the folder was watched is known to be open where it is this user's (knows_writers()).
class Watch {
 public:
  // Subfolders are watched too, as they appear. Throws Error if `folder` does not exist or cannot be watched.
  Watch(const std::string& folder, double settle);

  // Checks all files: for changes without events (before the start, on network file systems, after an overflow). A file
  // unchanged since its mark() does not count.
  void scan();
  // Waits at most `seconds` for complete files: paths below the folder, each once, at most `most`.
  std::vector<std::string> ready(double seconds, std::size_t most = kMostReady);
  std::size_t waiting() const { return waiting_.size(); }  // files that are not complete yet
  std::vector<std::string> incomplete() const;             // these
  // Marks this state of a file as handled.
  void mark(const std::string& path, std::uint64_t size, std::int64_t mtime) { known_[path] = {size, mtime}; }
  bool is_marked(const std::string& path, std::uint64_t size, std::int64_t mtime) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct File {
    Clock::time_point due;  // or, where it is open, the time of the last event
    bool open = false;      // written to, and not closed since
  };
  void scan_folder(const std::string& path);
  void see_file(const std::string& path, const struct stat& status);
  std::optional<bool> is_written(const std::string& path) const;
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
  bool lost_ = false;  // events were lost
};

struct SyncOptions {
  std::string folder;
  std::string destination;  // below the server's root
  double settle = 2;        // seconds without change after which a file is complete
  bool once = false;        // ship what is there, then end
  bool checksum = false;
  std::function<Path()> connect;  // called again whenever the path was lost, or closed since it was not needed
  std::function<bool()> stop;     // called a few times a second, also during transfers
  std::function<void(const std::string&)> log;  // lines for the operator
  OnNote on_note;
};

// Ships the files of a folder as they become complete.
class Sync {
 public:
  explicit Sync(SyncOptions options);
  // Runs until stop(), or with `once` until all is shipped; files still being written then count as failed. Reconnects
  // a lost path, for ever (with `once`: Error).
  // Throws Error where waiting is no remedy: a refusing server, a wrong key, a missing folder, at first also a host
  // name without an address.
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
  void leave_out(const std::vector<std::string>& paths);
  bool pause(double seconds);
  bool stopped() const { return options_.stop && options_.stop(); }
  void log(const std::string& line) const;

  SyncOptions options_;
  std::shared_ptr<const Root> root_;
  Watch watch_;
  std::mutex mutex_;  // guards the pointer, for the thread that interrupts a copy
  std::shared_ptr<Client> client_;
  std::chrono::steady_clock::time_point shipped_;
  bool met_ = false;  // the server was reached at least once
  Counts total_;
};

}  // namespace maki::wan::copy
