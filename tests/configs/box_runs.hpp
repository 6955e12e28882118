// What a run of 16^3 particles has left, to be compared with that of another one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include "src/io/snapshot_io.hpp"

namespace maki::test {

struct BoxParticle {
  std::array<double, 3> position;
  std::array<float, 3> velocity;
  float mass;
  bool operator==(const BoxParticle&) const = default;
};
using BoxById = std::map<std::uint64_t, BoxParticle>;

inline BoxById box_particles(const std::string& file) {
  const Snapshot set = read_snapshot(file);
  BoxById found;
  for (std::size_t i = 0; i < set.size(); ++i) found[set.ids[i]] = {set.positions[i], set.velocities[i], set.masses[i]};
  EXPECT_EQ(found.size(), 4096u);
  return found;
}

// Every step has one line in metrics.jsonl, in order; other lines tell of beginnings, outputs and the end.
inline void expect_whole_metrics(const std::string& directory) {
  std::ifstream file(directory + "/metrics.jsonl");
  std::size_t step = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("{\"step\": ")) continue;
    ASSERT_TRUE(line.starts_with("{\"step\": " + std::to_string(step++) + ",")) << line;
  }
  EXPECT_GT(step, 20u);
}

// The last 4000 characters.
inline std::string tail(const std::string& text) {
  return text.substr(text.size() - std::min<std::size_t>(text.size(), 4000));
}

}  // namespace maki::test
