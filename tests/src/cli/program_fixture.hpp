// Tests that call the program as a user does, in a folder of their own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/places.hpp"

namespace maki::test {

// Runs a command and takes what it says.
struct CallResult {
  int code = -1;       // exit code; stays where a signal ended it
  std::string output;  // both streams
};

inline CallResult call_shell(const std::string& command) {
  CallResult result;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

namespace fs = std::filesystem;

using Result = CallResult;

inline Result call(const std::string& arguments, const std::string& before = "") {
  return call_shell(before + program() + " " + arguments);
}

inline void expect_words(const Result& result, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(result.output.find(word), std::string::npos) << "'" << word << "' is missing in:\n" << result.output;
  }
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("maki_program_test_" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  fs::path directory_;
};

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

}  // namespace maki::test
