#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "host/comm/heartbeat.hpp"
#include "host/comm/mpi_ranks.hpp"
#include "host/comm/survivor_check.hpp"
#include "kernels/device/error.hpp"

namespace maki::mpi {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr int kYields = 200;  // looks with nothing but a yield between them, then pauses of growing length
constexpr std::chrono::microseconds kLongest{200};
constexpr Seconds kLookAround{0.05};  // for a rank that has given up
constexpr Seconds kAnswer{1};         // for answers to come
// A longer time between two looks is not waiting: this process was itself stopped, or its job suspended.
constexpr Seconds kGap{1};

}  // namespace

Patience::Patience(const Ranks& ranks, std::string what) : ranks_(ranks), what_(std::move(what)) {}

Patience::~Patience() { refresh(); }

void Patience::refresh() {
  if (waited_.count() > ranks_.timeout / 2) say_waiting(false);
  idle_ = 0;
  waited_ = asked_ = Seconds{0};
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
  if (waited_.count() > ranks_.timeout / 2) say_waiting(true);
  if (any_lost() || survivor_check_is_called()) give_up(pending());
  if (waited_.count() > ranks_.timeout && !others_are_at_work()) give_up(pending());
}

// Called after the timeout. True also while answers may still come.
bool Patience::others_are_at_work() {
  if (asked_.count() == 0) {
    answers_.clear();
    for (const Heartbeat& sign : heartbeats()) answers_.push_back(sign.answers);
    ask_all();
    asked_ = waited_;
  }
  if (waited_ < asked_ + kAnswer) return true;
  const std::vector<Heartbeat> now = heartbeats();
  std::vector<int> at_work;
  int speaker = -1;  // the lowest of those that wait
  for (int r = 0; r < static_cast<int>(now.size()); ++r) {
    const bool works = now[r].answers > answers_[r] && !now[r].waiting;
    if (works) at_work.push_back(r);
    if (!works && speaker < 0) speaker = r;
  }
  if (at_work.empty()) return false;
  if (speaker == ranks_.in_world[ranks_.rank]) {
    std::fprintf(stderr, "maki: waiting for %s, at work for %.0f s or more\n", name_with_machines(at_work).c_str(),
                 ranks_.timeout);
  }
  refresh();
  return true;
}

void Patience::give_up(const std::vector<int>& pending) const {
  say_ending();
  const std::vector<Heartbeat> before = heartbeats();
  ask_all();
  const std::vector<bool> here = check_survivors();
  const std::vector<Heartbeat> after = heartbeats();
  // Those at work do not hear the check of survivors, but answer.
  std::vector<int> missing;
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (!here[r] && after[r].answers == before[r].answers) missing.push_back(static_cast<int>(r));
  }
  const std::string reason = what_ + " waited " + std::to_string(std::lround(waited_.count())) + " s";
  if (!missing.empty()) {
    throw Error(name_with_machines(missing) + (missing.size() == 1 ? " is" : " are") + " not heard from", reason,
                "see what became of the process, its node or its network; MAKI_RANK_TIMEOUT sets the time allowed");
  }
  std::vector<int> named;
  for (const int r : pending) named.push_back(ranks_.in_world[r]);
  throw Error(named.empty() ? "the ranks wait for each other" : name_ranks(named) + " sent nothing, but answers",
              reason, "the ranks do not make the same calls");
}

}  // namespace maki::mpi
