// Tests that call the program as a user does, in a folder of their own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "tests/commands.hpp"
#include "tests/messages.hpp"
#include "tests/places.hpp"
#include "tests/temp_dir.hpp"

namespace maki::test {

namespace fs = std::filesystem;

using Result = CallResult;

inline Result call(const std::string& arguments, const std::string& before = "") {
  return call_shell(before + program() + " " + arguments);
}

inline void expect_words(const Result& result, const std::vector<std::string>& words) {
  expect_contains(result.output, words);
}

// It has ended with this code and said these words.
inline Result expect_end(const Result& result, int code, const std::vector<std::string>& words = {}) {
  EXPECT_EQ(result.code, code) << result.output;
  expect_words(result, words);
  return result;
}

// Paths of a run's restarts, the oldest first.
inline std::vector<std::string> restarts_in(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().filename().string().starts_with("restart_")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// What a snapshot holds, by ID.
struct Particle {
  std::array<double, 3> position;
  std::array<float, 3> velocity;
  float mass;
  bool operator==(const Particle&) const = default;
};
using ById = std::map<std::uint64_t, Particle>;

inline ById particles_in(const std::string& file) {
  const Snapshot set = read_snapshot(file);
  ById found;
  for (std::size_t i = 0; i < set.size(); ++i) found[set.ids[i]] = {set.positions[i], set.velocities[i], set.masses[i]};
  EXPECT_EQ(found.size(), set.size());
  return found;
}

inline constexpr const char* kTinyUniverse = R"(
[run]
name = "tiny"
[box]
size = "10 Mpc/h"
[initial]
particles_per_side = 16
[gravity]
softening = "20 kpc/h"
[time]
end_redshift = 40
[output]
redshifts = [49, 45]
image_pixels = 64
)";

class Program : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string tiny() const { return write("tiny.toml", kTinyUniverse); }
  // Takes the line of its end from a run's metrics.
  void as_killed_before_the_end(const std::string& run) const {
    const std::string metrics = text_of(path(run + "/metrics.jsonl"));
    write(run + "/metrics.jsonl", metrics.substr(0, metrics.rfind("{\"end\"")));
  }
  const TempDir folder_;
  const fs::path directory_ = folder_.path();
};

}  // namespace maki::test
