// Ways to end a run early: a signal, a file, a limit on wall-clock time.
#pragma once

#include <chrono>
#include <string>

namespace maki {

// The reason by which a person ends a run, for good or until it is taken up again by hand.
inline constexpr const char* kStopFileReason = "a file named stop in the output directory";

// While an object of this class exists, SIGTERM and SIGINT only set a request; a second SIGINT ends the process. The
// handlers that were there before, such as those of a Python interpreter, are back afterwards. At most one object at a time.
class StopRequest {
 public:
  // Watches for a file named `stop` in `directory` (empty: for no file); one that is there already is removed.
  // `time_limit` in seconds since `begin`; 0: none. `signals` = false leaves them alone.
  StopRequest(const std::string& directory, double time_limit,
              std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now(), bool signals = true);
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
  bool signals_;
  void (*before_term_)(int) = nullptr;
  void (*before_int_)(int) = nullptr;
};

}  // namespace maki
