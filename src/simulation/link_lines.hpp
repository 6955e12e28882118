// Lines about the links to other sites (breaks and their ends, wan/net/error.hpp), collected for the log of a run.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/stream.hpp"

namespace maki {

// While an object of this class exists, lines that wan::log() is given, from any thread, go to stderr as before and are
// collected. One object at a time: a later one takes over.
class LinkLines {
 public:
  LinkLines();
  ~LinkLines();
  LinkLines(const LinkLines&) = delete;
  LinkLines& operator=(const LinkLines&) = delete;

  // The lines since the last call with their times. At most 1000 are kept between two calls; further ones are only
  // printed.
  std::vector<std::pair<WallClock::time_point, std::string>> take();

 private:
  std::mutex mutex_;
  std::vector<std::pair<WallClock::time_point, std::string>> lines_;
};

}  // namespace maki
