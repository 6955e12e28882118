#include "src/simulation/link_lines.hpp"

#include <mutex>

#include "wan/net/error.hpp"

namespace maki {

namespace {
constexpr std::size_t kMostLines = 1000;
}

struct LinkLines::Lines {
  std::mutex mutex;
  std::vector<std::pair<WallClock::time_point, std::string>> lines;
};

LinkLines::LinkLines() : lines_(std::make_shared<Lines>()) {
  wan::set_log_sink([lines = lines_](wan::LogLevel level, const std::string& text) {
    wan::print(level, text);
    std::lock_guard lock(lines->mutex);
    if (lines->lines.size() < kMostLines) lines->lines.emplace_back(WallClock::now(), text);
  });
}

LinkLines::~LinkLines() { wan::set_log_sink({}); }

std::vector<std::pair<WallClock::time_point, std::string>> LinkLines::take() {
  std::lock_guard lock(lines_->mutex);
  return std::exchange(lines_->lines, {});
}

}  // namespace maki
