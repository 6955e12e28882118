// Moments at which a job is killed: by what it has written so far, and by chance; and what jobs have written in the end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <random>
#include <sstream>

#include "tests/places.hpp"

namespace maki::test {

// Decides once for each job, with whatever outcome: it may have ended before.
class Killer {
 public:
  // `directory`: that of the run.
  Killer(const std::string& directory, std::mt19937& random)
      : directory_(directory), moment_(static_cast<Moment>(random() % kMoments)), more_(1 + random() % 8),
        pause_(random() % (moment_ == kStart ? 300000 : 4000)), steps_(lines()), restarts_(restarts(true)) {}

  bool operator()() {
    if (!seen_ && has_come()) seen_ = Clock::now();
    return seen_ && Clock::now() >= *seen_ + std::chrono::microseconds(pause_);
  }
  // Whether a restart was begun and not complete at that moment.
  bool amid_restart() const { return restarts(false) > 0; }

 private:
  using Clock = std::chrono::steady_clock;
  // While a restart is written; when it has just become one; after some steps; while the job starts.
  enum Moment { kWriting, kWritten, kSteps, kStart, kMoments };

  bool has_come() const {
    switch (moment_) {
      case kWriting: return steps_ != lines() && restarts(false) > 0;
      case kWritten: return restarts(true) != restarts_;
      case kSteps: return lines() >= steps_ + more_ || lines() < steps_;
      default: return true;
    }
  }
  std::size_t lines() const {
    return static_cast<std::size_t>(std::ranges::count(text_of(directory_ + "/metrics.jsonl"), '\n'));
  }
  // A number that changes with the complete restarts; how many are not complete.
  std::size_t restarts(bool complete) const {
    std::size_t found = 0;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("restart_")) continue;
      const bool whole = std::filesystem::exists(entry.path() / "complete.toml", none);
      if (whole == complete) found += complete ? std::stoul(name.substr(8)) : 1;
    }
    return found;
  }

  std::string directory_;
  Moment moment_;
  std::size_t more_, pause_;  // microseconds
  std::size_t steps_, restarts_;
  std::optional<Clock::time_point> seen_;
};

// Every step has one line in metrics.jsonl, in order; other lines tell of beginnings, outputs and the end.
inline void expect_whole_metrics(const std::string& directory) {
  std::istringstream file(text_of(directory + "/metrics.jsonl"));
  std::size_t step = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"step\": ")) continue;
    ASSERT_TRUE(line.starts_with("{\"step\": " + std::to_string(step++) + ",")) << line;
  }
  EXPECT_GT(step, 20u);
}

// The last 4000 characters.
inline std::string tail(const std::string& text) {
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 4000));
}

}  // namespace maki::test
