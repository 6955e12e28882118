// A step's seconds, whole and by phase, for bench_step and bench_ranks.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "bench/timing.hpp"
#include "host/comm/communicator.hpp"
#include "kernels/measure/reductions.hpp"
#include "src/gravity/gravity.hpp"

namespace maki::bench {

// Seconds by what was timed; phases within phases as "tree/walk".
using Times = std::map<std::string, double>;

inline void keep_least(Times& least, const Times& times) {
  for (const auto& [name, seconds] : times) {
    const auto [at, is_new] = least.try_emplace(name, seconds);
    if (!is_new) at->second = std::min(at->second, seconds);
  }
}

// Those of the phases, whose names get `before` in front.
inline void read_phases(const PhaseTimers& timers, const std::string& before, Times& times) {
  for (const PhaseTime& phase : timers.phases())
    if (phase.seconds > 0) times[before + phase.path] = phase.seconds;
}

inline void evaluate(const Stream& stream, Gravity& gravity, Particles& particles) {
  gravity.evaluate(stream, particles, gravity.has_mesh() ? Ranges::kBoth : Ranges::kShort, false);
}

// Seconds of a step of all ranks, whose phases are in `timers`: kicks and drifts so small that the lists stay good.
inline double timed_step(const Stream& stream, const Communicator& ranks, Gravity& gravity, Particles& particles,
                         PhaseTimers& timers) {
  stream.synchronize();
  timers.collect();
  timers.reset();
  ranks.barrier();
  const double whole = seconds(stream, [&] {
    {
      const PhaseTimers::Scope scope(timers, "kick", stream);
      kick(stream, particles, gravity.short_acceleration(), 0.0);
    }
    {
      const PhaseTimers::Scope scope(timers, "drift", stream);
      drift(stream, particles, 0.0);
    }
    evaluate(stream, gravity, particles);
    {
      const PhaseTimers::Scope scope(timers, "reductions", stream);
      step_maxima(stream, particles, gravity.short_acceleration(),
                  gravity.has_mesh() ? &gravity.long_acceleration() : nullptr);
    }
    stream.synchronize();
    ranks.barrier();
  });
  timers.collect();
  return whole;
}

}  // namespace maki::bench
