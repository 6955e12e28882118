#include "src/simulation/link_lines.hpp"

#include "wan/net/error.hpp"

namespace maki {

namespace {
constexpr std::size_t kMostLines = 1000;
}

LinkLines::LinkLines() {
  wan::set_log_sink([this](wan::LogLevel level, const std::string& text) {
    wan::print(level, text);
    std::lock_guard lock(mutex_);
    if (lines_.size() < kMostLines) lines_.emplace_back(WallClock::now(), text);
  });
}

LinkLines::~LinkLines() { wan::set_log_sink({}); }

std::vector<std::pair<WallClock::time_point, std::string>> LinkLines::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

}  // namespace maki
