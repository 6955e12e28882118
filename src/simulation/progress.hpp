// The progress of a run, shown to the user.
#pragma once

#include <cstdio>
#include <string>

#include "src/config/quantity.hpp"
#include "src/simulation/metrics.hpp"

namespace maki {

enum class ProgressForm {
  kScreen,  // one line that is overwritten on a terminal; elsewhere as kLines
  kLines,   // a plain line every few seconds
  kJson,    // each line is a JSON object, one a second at most for steps
};

// Silent where `out` is null.
class Progress {
 public:
  // `interval`: seconds between plain lines. Use kLines under Open MPI's mpirun, which puts a terminal between itself
  // and its ranks. `time_unit`: in which the time of an isolated run is shown.
  Progress(std::FILE* out, double interval, ProgressForm form, TimeUnit time_unit = {});
  ~Progress() { finish(); }  // later output, such as an error, begins a new line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const StepMetrics& metrics, double elapsed);  // seconds of this process
  void message(const std::string& text);                  // a line of its own; as JSON {"message": text}
  void event(const std::string& json);                    // shown as JSON only: a line of step_log.hpp
  void finish();                                          // keeps the last line

 private:
  void clear_line();

  std::FILE* out_;
  double interval_;
  bool terminal_, json_;
  TimeUnit time_unit_;
  double last_shown_ = -1e30;
  double mean_seconds_ = 0;  // of recent steps
  bool line_open_ = false;
};

// "3 s", "12 min 05 s", "5 h 07 min"; "?" from 1e9 s on.
std::string duration_text(double seconds);
std::string progress_line(const StepMetrics& metrics, double mean_seconds, const TimeUnit& time_unit);
// {"step": 397, "a": 0.44, "z": 1.26, "seconds": ..., "elapsed": ..., "steps_left": ..., "seconds_left": ...,
// "particles_per_second": ...}, in isolated runs "t" in place of a and z; "seconds" is the mean of recent steps.
std::string progress_json(const StepMetrics& metrics, double mean_seconds, double elapsed);

}  // namespace maki
