// Lines about the links to other sites (breaks and their ends, wan/net/error.hpp), collected for the log of a run.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels/device/stream.hpp"
#include "wan/net/error.hpp"

namespace maki {

// While an object of this class exists, lines that wan::log() is given, from any thread, go to stderr as before and are
// collected. One object at a time: a later one takes over.
class LinkLines {
 public:
  LinkLines() {
    wan::set_log_sink([this](wan::LogLevel level, const std::string& text) {
      wan::print(level, text);
      std::lock_guard lock(mutex_);
      if (lines_.size() < kMostLines) lines_.emplace_back(WallClock::now(), text);
    });
  }
  ~LinkLines() { wan::set_log_sink({}); }
  LinkLines(const LinkLines&) = delete;
  LinkLines& operator=(const LinkLines&) = delete;

  // The lines since the last call with their times. At most kMostLines are kept between two calls; further ones are
  // only printed.
  std::vector<std::pair<WallClock::time_point, std::string>> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  static constexpr std::size_t kMostLines = 1000;
  std::mutex mutex_;
  std::vector<std::pair<WallClock::time_point, std::string>> lines_;
};

}  // namespace maki
