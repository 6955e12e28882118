// A small state for tests of restarts.
#pragma once

#include <cmath>

#include "kernels/error.hpp"
#include "src/io/restart.hpp"
#include "tests/src/io/io_helpers.hpp"

namespace maki::test {

// Rows [begin, end) of a set in which all numbers differ, also in their last bits.
inline ParticleRows particle_rows(std::uint32_t begin, std::uint32_t end) {
  ParticleRows rows;
  for (std::uint32_t i = begin; i < end; ++i) {
    const std::uint32_t x = 2654435761u * (i + 1);
    rows.source.push_back({x, ~x, x * 7, 1 + 1e-7f * static_cast<float>(i)});
    rows.remainder.push_back(
        {static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(x >> 5), static_cast<std::uint16_t>(x >> 11)});
    for (std::size_t axis = 0; axis < 3; ++axis)
      rows.momentum[axis].push_back(std::ldexp(static_cast<float>(x >> 3), -20 - static_cast<int>(axis)));
    rows.id.push_back(std::uint64_t{x} << 20 | i);
  }
  return rows;
}

// With the long-range accelerations of a restart within a long step.
inline ParticleRows within_long_step(ParticleRows rows) {
  rows.long_acceleration = HostVectors{rows.momentum[2], rows.momentum[0], rows.momentum[1]};
  return rows;
}

inline EscaperRows escaper_rows(std::uint32_t begin, std::uint32_t end) {
  EscaperRows rows;
  for (std::uint32_t i = begin; i < end; ++i) {
    rows.positions.push_back({0.1 * i, 1.0 / (i + 3), -2e5});
    rows.velocities.push_back({1.5f, static_cast<float>(i), -3e-9f});
    rows.masses.push_back(1 + static_cast<float>(i));
    rows.ids.push_back(1000 + i);
    rows.times.push_back(1.0 / 3 + i);
  }
  return rows;
}

inline bool same_bits(const ParticleRows& a, const ParticleRows& b) {
  return same_bits(a.source, b.source) && same_bits(a.remainder, b.remainder) &&
         same_bits(a.momentum[0], b.momentum[0]) && same_bits(a.momentum[1], b.momentum[1]) &&
         same_bits(a.momentum[2], b.momentum[2]) && same_bits(a.id, b.id) && a.long_acceleration == b.long_acceleration;
}
inline bool same_bits(const EscaperRows& a, const EscaperRows& b) {
  return same_bits(a.positions, b.positions) && same_bits(a.velocities, b.velocities) &&
         same_bits(a.masses, b.masses) && same_bits(a.ids, b.ids) && same_bits(a.times, b.times);
}

inline RestartInfo info_of_step(std::uint64_t step) {
  RestartInfo info;
  info.step = step;
  info.time = 0.1 + 1e-3 * static_cast<double>(step);
  info.provenance = {"[run]\nname = \"it's \\\"quoted\\\"\"\n", "Maki 0.1.0", "0123456789ab", "g++", "CPU"};
  return info;
}

inline StateNumbers some_numbers() {
  return {{{"a.third", {1.0 / 3}}, {"three", {1e-300, -0.0, 2e300}}}, {{"large", {~std::uint64_t{0}, 7}}}};
}

// A restart, once it is complete. Returns its path. Collective. Throws Error, the same on all ranks.
inline std::string write_restart(const std::string& directory, const RestartInfo& info, const StateNumbers& numbers,
                                 const RestartRows& rows, int keep, const Communicator& ranks = Communicator::self()) {
  RestartWriter writer(ranks);
  writer.begin(directory, info, numbers, rows, keep);
  const RestartOutcome outcome = writer.wait();
  if (!outcome.problem.empty()) throw Error(outcome.problem);
  return outcome.path;
}

inline std::string write(const std::string& directory, std::uint64_t step, std::uint32_t particles = 1000,
                         int keep = 2) {
  return write_restart(directory, info_of_step(step), some_numbers(), {particle_rows(0, particles), escaper_rows(0, 3)},
                       keep);
}

}  // namespace maki::test
