#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "host/comm/heartbeat.hpp"
#include "host/comm/mpi_ranks.hpp"
#include "kernels/error.hpp"

namespace maki::mpi {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr int kYields = 200;  // looks with nothing but a yield between them, then pauses of growing length
constexpr std::chrono::microseconds kLongest{200};
constexpr Seconds kLookAround{0.05};  // for a rank that is lost
// A longer time between two looks is not waiting: this process was itself stopped, or its job suspended.
constexpr Seconds kGap{1};

}  // namespace

Patience::Patience(const Ranks& ranks, std::string what) : ranks_(ranks), what_(std::move(what)) {}

Patience::~Patience() { refresh(); }

void Patience::refresh() {
  if (waited_.count() > ranks_.timeout / 2) say_waiting(false);
  idle_ = 0;
  waited_ = Seconds{0};
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
  waited_ += std::min(since, kGap);
  if (const std::vector<int> lost = lost_ranks(); !lost.empty()) give_up(lost, {});
  if (waited_.count() > ranks_.timeout / 2) say_waiting(true);
  if (waited_.count() <= ranks_.timeout) return;
  const bool first = ranks_.in_world[ranks_.rank] == 0;
  if (first ? all_wait() : !in_touch()) give_up({}, pending());
}

void Patience::give_up(const std::vector<int>& lost, const std::vector<int>& pending) const {
  say_ending();
  const std::string reason = what_ + " waited " + std::to_string(std::lround(waited_.count())) + " s";
  const std::string look = "see what became of the process, its node or its network";
  if (!lost.empty()) {
    throw Error(name_ranks(lost) + (lost.size() == 1 ? " is" : " are") + " not heard from", reason,
                look + "; MAKI_RANK_TIMEOUT sets the time allowed");
  }
  std::vector<int> named;
  for (const int r : pending) named.push_back(ranks_.in_world[r]);
  const std::string silent = in_touch() ? "the ranks wait for each other" : "nothing comes from other ranks";
  throw Error(named.empty() ? silent : name_ranks(named) + " sent nothing", reason,
              in_touch() ? "the ranks do not make the same calls"
                         : look + "; datagrams, if they came through, would tell");
}

}  // namespace maki::mpi
