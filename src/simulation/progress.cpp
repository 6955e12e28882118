#include "src/simulation/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <utility>

#include "src/io/json.hpp"

namespace maki {

namespace {

// Seconds between redraws of a terminal's line, and between lines of JSON.
constexpr double kRedraw = 0.1, kJsonInterval = 1;

std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.2f} M", rate * 1e-6);
  if (rate >= 1e3) return fmt::format("{:.1f} k", rate * 1e-3);
  return fmt::format("{:.0f} ", rate);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds < 1e9)) return "?";
  const long whole = std::lround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string progress_line(const StepMetrics& metrics, double mean_seconds, const TimeUnit& time_unit) {
  const std::string time = metrics.comoving ? fmt::format("z {:<10.3f}", 1 / metrics.time - 1)
                                            : fmt::format("t {:<16}", time_text(metrics.time, time_unit));
  const double rate = mean_seconds > 0 ? static_cast<double>(metrics.particles) / mean_seconds : 0;
  const std::string left = metrics.steps_left > 0
                               ? fmt::format("about {:.0f} steps, {} left   ", std::ceil(metrics.steps_left),
                                             duration_text(metrics.steps_left * mean_seconds))
                               : "";
  return fmt::format("step {:<6} {} {}{}particles/s", metrics.step, time, left, rate_text(rate));
}

std::string progress_json(const StepMetrics& metrics, double mean_seconds, double elapsed) {
  JsonObject line;
  line.add("step", metrics.step);
  if (metrics.comoving)
    line.add("a", metrics.time).add("z", 1 / metrics.time - 1);
  else
    line.add("t", metrics.time);
  const double left =
      metrics.step > 0 ? metrics.steps_left : std::numeric_limits<double>::quiet_NaN();  // not known yet
  return line.add("seconds", mean_seconds)
      .add("elapsed", elapsed)
      .add("steps_left", left)
      .add("seconds_left", left * mean_seconds)
      .add("particles_per_second", mean_seconds > 0 ? static_cast<double>(metrics.particles) / mean_seconds : 0)
      .text();
}

Progress::Progress(std::FILE* out, double interval, ProgressForm form, TimeUnit time_unit)
    : out_(out), interval_(form == ProgressForm::kJson ? kJsonInterval : interval),
      terminal_(out != nullptr && form == ProgressForm::kScreen && isatty(fileno(out)) != 0),
      json_(form == ProgressForm::kJson), time_unit_(std::move(time_unit)) {}

void Progress::step(const StepMetrics& metrics, double elapsed) {
  if (out_ == nullptr) return;
  constexpr double kMemory = 0.9;  // of the running mean, a step
  mean_seconds_ = mean_seconds_ > 0 ? kMemory * mean_seconds_ + (1 - kMemory) * metrics.seconds : metrics.seconds;
  if (elapsed - last_shown_ < (terminal_ ? kRedraw : interval_)) return;
  last_shown_ = elapsed;
  const std::string line =
      json_ ? progress_json(metrics, mean_seconds_, elapsed) : progress_line(metrics, mean_seconds_, time_unit_);
  if (terminal_) {
    std::fprintf(out_, "\r%s\033[K", line.c_str());
    line_open_ = true;
  } else {
    std::fprintf(out_, "%s\n", line.c_str());
  }
  std::fflush(out_);
}

void Progress::message(const std::string& text) {
  if (out_ == nullptr) return;
  clear_line();
  std::fprintf(out_, "%s\n", json_ ? JsonObject().add("message", text).text().c_str() : text.c_str());
  std::fflush(out_);
}

void Progress::event(const std::string& json) {
  if (out_ == nullptr || !json_) return;
  std::fprintf(out_, "%s\n", json.c_str());
  std::fflush(out_);
}

void Progress::finish() {
  if (out_ == nullptr) return;
  if (line_open_) std::fprintf(out_, "\n");
  line_open_ = false;
  std::fflush(out_);
}

void Progress::clear_line() {
  if (line_open_) std::fprintf(out_, "\r\033[K");
  line_open_ = false;
}

}  // namespace maki
