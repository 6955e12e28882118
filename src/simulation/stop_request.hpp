// Ways to end a run early: a signal, a file, a limit on wall-clock time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace maki {

// The reason for a run ended by a person, who may resume it by hand.
inline constexpr const char* kStopFileReason = "a file named stop in the output directory";

// While an object of this class exists, SIGTERM, SIGINT, SIGHUP (unless ignored, as by nohup), SIGUSR1, SIGUSR2 and
// SIGXCPU only set a request; a second SIGINT ends the process. Afterwards the earlier handlers are back, such as those
// of a Python interpreter. At most one object at a time.
class StopRequest {
 public:
  // Watches for a file named `stop` in `directory` (empty: no file), which may be there already: it was made while the
  // program started, or for the next run there. One that comes too late for this run is removed at its end.
  // `time_limit` in seconds since `begin`; 0: none. `signals` = false leaves signals alone.
  StopRequest(const std::string& directory, double time_limit,
              std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now(), bool signals = true);
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  // The reason to end the run now, as a phrase ("SIGTERM", "a file named stop"), or empty. `next_seconds`: time of the
  // next piece of work; the run ends before this passes the time limit. Removes the stop file once seen; it counts from
  // then on, as a signal does.
  std::string reason(double next_seconds) const;

  // A call that returns whether reason() would give one; for any thread, also after this object's end.
  std::function<bool()> made() const;

  // Leaves a stop file alone from here on, as it is for another run.
  void forget_file() { stop_file_.clear(); }

  double elapsed() const;  // seconds

 private:
  std::string stop_file_;
  std::shared_ptr<std::atomic<bool>> file_seen_ = std::make_shared<std::atomic<bool>>(false);
  double time_limit_;
  std::chrono::steady_clock::time_point begin_;
  std::map<int, void (*)(int)> before_;  // handlers of signals
};

}  // namespace maki
