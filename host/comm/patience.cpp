#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "host/comm/mpi_ranks.hpp"
#include "host/comm/neighbours.hpp"
#include "host/comm/roll_call.hpp"
#include "kernels/device/error.hpp"

namespace maki::mpi {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr int kYields = 200;  // looks with nothing but a yield between them, then pauses of growing length
constexpr std::chrono::microseconds kLongest{200};
constexpr Seconds kLookAround{0.05};  // for a rank that has given up
constexpr Seconds kStopped{10};       // how long a rank on this machine may be stopped
// A longer time between two looks is not waiting: this process was itself stopped, or its job suspended.
constexpr Seconds kGap{1};

}  // namespace

Patience::Patience(const Ranks& ranks, std::string what) : ranks_(ranks), what_(std::move(what)) {}

void Patience::refresh() {
  idle_ = 0;
  waited_ = stopped_ = Seconds{0};
}

void Patience::pause(const std::function<std::vector<int>()>& pending) {
  if (idle_ == 0) looked_ = Clock::now();
  if (++idle_ <= kYields) {
    sched_yield();
    return;
  }
  std::this_thread::sleep_for(std::min(kLongest, std::chrono::microseconds(idle_ - kYields)));
  if (ranks_.comm == MPI_COMM_NULL) return;  // alone: only the device is waited for
  const auto now = Clock::now();
  const Seconds since = now - looked_;
  if (since < kLookAround) return;
  looked_ = now;
  const double whole = std::floor(waited_.count());
  waited_ += std::min(since, kGap);
  // Once a second is enough to read what the system says of the neighbours.
  if (std::floor(waited_.count()) > whole) {
    stopped_ = stopped_neighbours().empty() ? Seconds{0} : stopped_ + Seconds{1};
  }
  if (roll_is_called() || waited_.count() > ranks_.timeout || stopped_ >= kStopped) give_up(pending());
}

void Patience::give_up(const std::vector<int>& pending) const {
  const std::vector<bool> here = call_roll();
  std::vector<int> missing;
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (!here[r]) missing.push_back(static_cast<int>(r));
  }
  const std::vector<int> stopped = stopped_neighbours();
  if (!stopped.empty()) missing = stopped;  // others may only be at work
  const std::string reason = std::string(stopped.empty() ? "" : "stopped on this machine; ") + what_ + " waited " +
                             std::to_string(std::lround(waited_.count())) + " s";
  if (!missing.empty()) {
    throw Error(name_ranks(missing) + (missing.size() == 1 ? " is" : " are") + " not heard from", reason,
                "see what became of the process, its node or its network; MAKI_RANK_TIMEOUT sets the time allowed");
  }
  std::vector<int> named;
  for (const int r : pending) named.push_back(ranks_.in_world[r]);
  throw Error(named.empty() ? "the ranks wait for each other" : name_ranks(named) + " sent nothing, but answers",
              reason, "the ranks do not make the same calls");
}

}  // namespace maki::mpi
