#include "src/simulation/stop_request.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>

namespace maki {

namespace {

// The last three are warnings of batch systems.
const std::map<int, std::string> kStopSignals = {{SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},
                                                 {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGXCPU, "SIGXCPU"}};

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
      time_limit_(time_limit), begin_(begin) {
  received_signal = 0;
  if (!signals) return;
  for (const auto& [number, name] : kStopSignals) before_[number] = std::signal(number, remember_signal);
  if (before_[SIGHUP] == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

StopRequest::~StopRequest() {
  std::error_code ignored;
  if (!stop_file_.empty()) std::filesystem::remove(stop_file_, ignored);
  for (const auto& [number, handler] : before_) std::signal(number, handler);
}

std::string StopRequest::reason(double next_seconds) const {
  std::error_code ignored;
  if (!stop_file_.empty() && std::filesystem::exists(stop_file_, ignored)) *file_seen_ = true;
  if (*file_seen_) std::filesystem::remove(stop_file_, ignored);
  if (*file_seen_) return kStopFileReason;
  if (const auto signal = kStopSignals.find(int{received_signal}); signal != kStopSignals.end()) return signal->second;
  if (time_limit_ > 0 && elapsed() + next_seconds > time_limit_)
    return fmt::format("the time limit of {:g} s", time_limit_);
  return {};
}

std::function<bool()> StopRequest::made() const {
  const std::chrono::duration<double> limit(time_limit_);
  return [file = stop_file_, seen = file_seen_, limit, begin = begin_] {
    const bool late = limit.count() > 0 && std::chrono::steady_clock::now() - begin > limit;
    std::error_code ignored;
    if (!file.empty() && std::filesystem::exists(file, ignored)) *seen = true;
    return late || *seen || kStopSignals.contains(int{received_signal});
  };
}

double StopRequest::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace maki
