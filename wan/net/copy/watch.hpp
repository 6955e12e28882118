// Tells which files of a folder are complete: closed after writing, or moved there, and left alone for a while since.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wan/net/copy/root.hpp"

namespace maki::wan::copy {

// Names that begin with a dot or end in .part or .tmp are still in the making, or nobody else's business.
bool is_ignored(std::string_view name);

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

}  // namespace maki::wan::copy
