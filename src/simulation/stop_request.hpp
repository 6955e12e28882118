// Ways to end a run early: a signal, a file, a limit on wall-clock time.
#pragma once

#include <chrono>
#include <string>

namespace maki {

// While one lives, SIGTERM and SIGINT are requests and no longer end the process; a second SIGINT does.
// At most one at a time.
class StopRequest {
 public:
  // Watches for a file named `stop` in `directory` (which must not be there yet: an old one is removed).
  // Empty: for none. `time_limit` in seconds since `begin`; 0: none.
  StopRequest(const std::string& directory, double time_limit,
              std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now());
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // Why the run should end now, as a phrase ("SIGTERM", "a file named stop"), or empty. `next_seconds` is what the next
  // piece of work will take: the run ends before it would pass the time limit. The stop file is removed when it was
  // seen.
  std::string reason(double next_seconds) const;

  double elapsed() const;  // seconds

 private:
  std::string stop_file_;
  double time_limit_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace maki
