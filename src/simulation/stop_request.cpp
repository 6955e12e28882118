#include "src/simulation/stop_request.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

namespace maki {

namespace {

volatile std::sig_atomic_t received_signal = 0;

void remember_signal(int number) {
  if (received_signal == SIGINT && number == SIGINT) {
    // A second SIGINT ends the process.
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  received_signal = number;
}

}  // namespace

StopRequest::StopRequest(const std::string& directory, double time_limit, std::chrono::steady_clock::time_point begin,
                         bool signals)
    : stop_file_(directory.empty() ? "" : (std::filesystem::path(directory) / "stop").string()),
      time_limit_(time_limit), begin_(begin), signals_(signals) {
  std::error_code ignored;
  if (!stop_file_.empty()) std::filesystem::remove(stop_file_, ignored);
  received_signal = 0;
  if (!signals_) return;
  before_term_ = std::signal(SIGTERM, remember_signal);
  before_int_ = std::signal(SIGINT, remember_signal);
}

StopRequest::~StopRequest() {
  if (!signals_) return;
  std::signal(SIGTERM, before_term_);
  std::signal(SIGINT, before_int_);
}

std::string StopRequest::reason(double next_seconds) const {
  if (received_signal == SIGTERM) return "SIGTERM";
  if (received_signal == SIGINT) return "SIGINT";
  std::error_code ignored;
  if (!stop_file_.empty() && std::filesystem::remove(stop_file_, ignored)) return kStopFileReason;
  if (time_limit_ > 0 && elapsed() + next_seconds > time_limit_)
    return fmt::format("the time limit of {:g} s", time_limit_);
  return {};
}

double StopRequest::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace maki
