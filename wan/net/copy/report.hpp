// The progress of a copy, for whoever watches it, and its result.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "wan/net/copy/message.hpp"

namespace maki::wan::copy {

// Updated while the copy runs; thread-safe.
struct Progress {
  std::atomic<std::uint64_t> files{0}, bytes{0};            // to be copied, as far as known
  std::atomic<std::uint64_t> files_done{0}, bytes_done{0};  // bytes: including those from an earlier copy
  std::atomic<std::uint64_t> moved{0};                      // bytes sent or received
  std::atomic<std::uint64_t> skipped{0};                    // files already present
  std::atomic<bool> listed{false};                          // `files` and `bytes` are final
};

// "1234 of 10001 files, 0.52 of 2.10 GB (25 %), 93.1 MB/s, 17 s left". The rate is over the last few seconds.
class Meter {
 public:
  explicit Meter(const Progress& progress) : progress_(progress) {}
  std::string line();

 private:
  using Clock = std::chrono::steady_clock;
  const Progress& progress_;
  struct Sample {
    Clock::time_point when;
    std::uint64_t moved;
  };
  std::vector<Sample> samples_;
};

std::string time_text(double seconds);  // "17 s", "3 min 20 s", "2 h 05 min"

// "12 files (3.40 GB) in 4 folders; 2 were there; 1 failed"
std::string summary(const Counts& counts);

using OnNote = std::function<void(bool failed, const std::string& text)>;

struct CopyReport {
  Counts counts;
  std::vector<std::string> problems;  // of files not copied, the first thousand
  std::vector<std::string> notes;     // what was deliberately left out
  bool complete() const { return counts.failed == 0; }
};

// Collects the notes of a copy, from any of its threads, and passes each on at once.
class Notes {
 public:
  explicit Notes(OnNote on_note) : on_note_(std::move(on_note)) {}
  void add(bool failed, const std::string& text);
  std::uint64_t failed() const;
  CopyReport report(const Counts& counts) const;

 private:
  OnNote on_note_;
  mutable std::mutex mutex_;
  std::uint64_t failed_ = 0;
  std::vector<std::string> problems_, notes_;
};

}  // namespace maki::wan::copy
