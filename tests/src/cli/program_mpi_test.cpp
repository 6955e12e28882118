// The program under a launcher: one output, one message, whatever the number of ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "kernels/device/device.hpp"
#include "src/io/snapshot_io.hpp"
#include "tests/places.hpp"
#include "tests/src/cli/program_fixture.hpp"

namespace {

namespace fs = std::filesystem;

using Result = maki::test::CallResult;

// A time limit on all of it: a job that does not end fails the test instead of hanging it.
Result call(int ranks, const std::string& arguments) {
  return maki::test::call_shell("OMP_NUM_THREADS=1 timeout -k 5 60 " + (ranks > 1 ? maki::test::launcher(ranks) : "") +
                                maki::test::program() + " " + arguments);
}

std::size_t count(const Result& result, const std::string& text) {
  std::size_t number = 0;
  for (auto at = result.output.find(text); at != std::string::npos; at = result.output.find(text, at + 1)) ++number;
  return number;
}

class ProgramOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("maki_program_mpi_test_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    std::ofstream(config()) << "[box]\nsize = \"50 Mpc/h\"\n[initial]\nparticles_per_side = 16\nredshift = 9\n"
                               "[gravity]\nmesh = 32\n[time]\nend_redshift = 8\n[output]\nredshifts = []\n"
                               "image_pixels = 64\npower_mesh = 32\n[run]\noutput_directory = \""
                            << (directory_ / "out").string() << "\"\n";
  }
  void TearDown() override { fs::remove_all(directory_); }
  std::string config() const { return (directory_ / "box.toml").string(); }
  fs::path directory_;
};

TEST_F(ProgramOfRanks, WhatOneProcessDoesIsDoneOnce) {
  const Result one = call(1, "config"), many = call(3, "config");
  EXPECT_EQ(many.code, 0);
  EXPECT_EQ(many.output, one.output);
  EXPECT_EQ(count(call(3, "--version"), "backend"), 1u);
}

TEST_F(ProgramOfRanks, ErrorsThatAllMeetAreToldOnce) {
  const Result usage = call(3, "run");
  EXPECT_NE(usage.code, 0);
  EXPECT_EQ(count(usage, "maki: error:"), 1u) << usage.output;
  const Result missing = call(3, "run " + (directory_ / "none.toml").string());
  EXPECT_NE(missing.code, 0);
  EXPECT_EQ(count(missing, "maki: error:"), 1u) << missing.output;
}

TEST_F(ProgramOfRanks, TheEstimateIsOfARank) {
  const Result result = call(3, "run " + config() + " --estimate");
  EXPECT_EQ(result.code, 0);
  const char* machine =
      std::string(maki::backend_name()) == "cpu" ? "a machine, all its ranks" : "a machine's host, all its ranks";
  for (const char* words : {"on each of 3 ranks", "local essential trees", machine, "disk, each"})
    EXPECT_EQ(count(result, words), 1u) << words << " in\n" << result.output;
}

// The snapshot is the same as one rank's but for round-off; the log tells of ranks.
TEST_F(ProgramOfRanks, ARunIsOneRun) {
  const std::string run = "run " + config() + " power_spectrum=false output.image=false";
  const Result result = call(3, run);
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_EQ(count(result, "3 ranks on"), 1u) << result.output;
  EXPECT_EQ(count(result, "wrote "), 1u) << result.output;
  EXPECT_EQ(count(result, "\033"), 0u) << "a log of mpirun's output is to be read as text";
  EXPECT_EQ(maki::read_snapshot((directory_ / "out/snapshot_000.hdf5").string()).size(), 4096u);
  std::ifstream log(directory_ / "out/log.txt");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  for (const char* words : {"over ranks", "interactions", "tree/evaluate", "(most)", "held most"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
  const Result again = call(3, run);  // the directory holds a run
  EXPECT_NE(again.code, 0);
  EXPECT_EQ(count(again, "maki: error:"), 1u) << again.output;
}

}  // namespace
