#include <sched.h>

#include <algorithm>
#include <thread>

#include "host/comm/mpi_ranks.hpp"
#include "host/comm/roll_call.hpp"
#include "kernels/device/error.hpp"

namespace maki::mpi {
namespace {

constexpr int kYields = 200;  // looks with nothing but a yield between them, then pauses of growing length
constexpr std::chrono::microseconds kLongest{200};
constexpr std::chrono::milliseconds kLookAround{50};  // for a rank that has given up

}  // namespace

Patience::Patience(const Ranks& ranks, std::string what) : ranks_(ranks), what_(std::move(what)) {
  heard_ = Clock::now();
  next_look_ = heard_ + kLookAround;
}

void Patience::refresh() {
  heard_ = Clock::now();
  idle_ = 0;
}

void Patience::pause(const std::function<std::vector<int>()>& pending) {
  if (++idle_ <= kYields) {
    sched_yield();
    return;
  }
  std::this_thread::sleep_for(std::min(kLongest, std::chrono::microseconds(idle_ - kYields)));
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + kLookAround;
  if (roll_is_called() || now - heard_ > std::chrono::duration<double>(ranks_.timeout)) give_up(pending());
}

void Patience::give_up(const std::vector<int>& pending) const {
  const std::vector<bool> here = call_roll();
  std::vector<int> missing;
  for (std::size_t r = 0; r < here.size(); ++r) {
    if (!here[r]) missing.push_back(static_cast<int>(r));
  }
  const auto waited = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - heard_).count();
  const std::string reason = what_ + " waited " + std::to_string(waited) + " s";
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
