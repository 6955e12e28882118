// Restarts come back bit by bit; one that is not whole is none, and one that cannot be written harms no other.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "src/io/restart.hpp"
#include "src/io/safe_file.hpp"
#include "tests/small_disk.hpp"
#include "tests/src/io/io_helpers.hpp"
#include "tests/src/io/restart_state.hpp"
#include "tests/test_stream.hpp"

namespace maki {
namespace {

using namespace test;
using Restarts = InTempDir;
namespace fs = std::filesystem;

std::vector<std::uint64_t> steps_in(const std::string& directory) {
  std::vector<std::uint64_t> steps;
  for (const RestartInfo& info : find_restarts(directory)) steps.push_back(info.step);
  return steps;
}
using Steps = std::vector<std::uint64_t>;

void expect_whole(const std::string& directory, std::uint64_t step) {
  const RestartInfo info = find_restarts(directory + "/" + restart_folder::name_of(step)).at(0);
  EXPECT_EQ(error_of([&] { read_restart(info); }), "");
}

TEST_F(Restarts, TheOneThatAllSitesHaveStays) {
  for (const std::uint64_t step : {3u, 6u, 9u, 12u, 15u}) write(dir.path(), step, 10, 100);
  const auto prune = [&](std::uint64_t needed) {
    restart_folder::prune(dir.path(), find_restarts(dir / "restart_000015").at(0), 2, needed);
  };
  prune(6);
  EXPECT_EQ(steps_in(dir.path()), (Steps{3, 6, 12, 15})) << "the newest two, that one, and the one before it";
  prune(12);
  EXPECT_EQ(steps_in(dir.path()), (Steps{6, 12, 15}));
  prune(20);
  EXPECT_EQ(steps_in(dir.path()), (Steps{12, 15}));
}

TEST_F(Restarts, ThoseOfAnotherRunStay) {
  RestartInfo other = info_of_step(5);
  other.run = "another";
  write_restart(dir.path(), other, some_numbers(), {particle_rows(0, 10), escaper_rows(0, 3)}, 2);
  for (const std::uint64_t step : {3u, 6u, 9u}) write(dir.path(), step, 10);
  EXPECT_EQ(steps_in(dir.path()), (Steps{5, 6, 9}));
}

TEST_F(Restarts, ComesBackBitByBit) {
  for (const std::uint32_t particles : {0u, 1u, 1000u}) {
    const std::string path = write(dir.path(), 17, particles);
    EXPECT_EQ(path, dir / "restart_000017");
    const std::vector<RestartInfo> found = find_restarts(dir.path());
    ASSERT_EQ(found.size(), 1u);
    const Restart back = read_restart(found[0]);
    EXPECT_TRUE(same_bits(back.particles, particle_rows(0, particles)));
    EXPECT_TRUE(same_bits(back.escapers, escaper_rows(0, 3)));
    EXPECT_EQ(back.numbers, some_numbers());
    EXPECT_EQ(back.info.step, 17u);
    EXPECT_EQ(back.info.time, info_of_step(17).time);
    EXPECT_EQ(back.info.provenance.configuration, info_of_step(17).provenance.configuration);
    EXPECT_EQ(find_restarts(path).at(0).step, 17u);  // the folder itself
    EXPECT_EQ(find_restarts(path + "/").at(0).step, 17u);
  }
}

TEST_F(Restarts, TheDeviceGetsItBackToo) {
  const Stream& stream = test_stream();
  const ParticleRows rows = particle_rows(0, 100);
  Particles particles;
  copy_from_rows(stream, rows, particles);
  ParticleRows back = particle_rows(0, 500);
  copy_to_rows(stream, particles, back);
  EXPECT_TRUE(same_bits(back, rows));
  HostVectors momentum;
  copy_to_rows(stream, particles.momentum, momentum);
  EXPECT_EQ(momentum, rows.momentum);
}

TEST_F(Restarts, TheLastOnesAreKept) {
  for (const std::uint64_t step : {5, 100, 999999, 1000001}) write(dir.path(), step);
  EXPECT_EQ(steps_in(dir.path()), (Steps{999999, 1000001}));
  EXPECT_EQ(dir.entries(), 2u);
  write(dir.path(), 1000002, 10, 3);
  EXPECT_EQ(steps_in(dir.path()), (Steps{999999, 1000001, 1000002}));
  write(dir.path(), 1000003, 10, 1);
  EXPECT_EQ(steps_in(dir.path()), (Steps{1000003}));
}

TEST_F(Restarts, WhatIsNotWholeIsNone) {
  write(dir.path(), 1);
  write(dir.path(), 2);
  fs::remove(dir / "restart_000002/complete.toml");
  EXPECT_EQ(steps_in(dir.path()), (Steps{1}));
  std::ofstream(dir / "restart_000002/complete.toml") << "format = 2\nstep = 2\nconfiguration = \"\"\"half a";
  EXPECT_EQ(steps_in(dir.path()), (Steps{1}));
  write(dir.path(), 3);  // removes what is left of it
  EXPECT_EQ(steps_in(dir.path()), (Steps{1, 3}));
  EXPECT_EQ(dir.entries(), 2u);
}

TEST_F(Restarts, OneThatCannotBeReadAtTheMomentStays) {
  write(dir.path(), 1);
  write(dir.path(), 2);
  const std::string folder = dir / "restart_000002", file = folder + "/complete.toml";
  RestartInfo info;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const restart_folder::Found without_descriptors = restart_folder::read(folder, info);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(without_descriptors, restart_folder::Found::kUnreadable);
  fs::rename(file, dir / "aside");
  fs::create_symlink("complete.toml", file);  // leads to itself
  expect_error([&] { find_restarts(dir.path()); }, {"cannot read", file.c_str(), "name another"});
  write(dir.path(), 3, 10, 1);
  EXPECT_EQ(remove_restarts_after(dir.path(), 3), (std::vector<std::string>{}));
  fs::rename(dir / "aside", file);
  EXPECT_EQ(steps_in(dir.path()), (Steps{2, 3}));
}

// Threads would have stacks that no memory holds.
TEST_F(Restarts, WithoutAThreadToWriteItHasAnOutcome) {
  const ParticleRows particles = particle_rows(0, 10);
  const EscaperRows escapers = escaper_rows(0, 3);
  pthread_attr_t usual, vast;
  pthread_getattr_default_np(&usual);
  pthread_getattr_default_np(&vast);
  pthread_attr_setstacksize(&vast, std::size_t{1} << 47);
  pthread_setattr_default_np(&vast);
  RestartWriter writer;
  const std::string thrown = error_of([&] {
    writer.begin(dir.path(), info_of_step(1), some_numbers(), {particles, escapers}, 2);
  });
  pthread_setattr_default_np(&usual);
  ASSERT_EQ(thrown, "") << "other ranks may have their threads";
  expect_contains(writer.wait().problem, {"cannot write files beside the steps", "no thread could be started"});
  EXPECT_EQ(dir.entries(), 0u);
}

TEST_F(Restarts, LaterOnesAreRemoved) {
  for (const std::uint64_t step : {1, 2, 3, 4}) write(dir.path(), step, 10, 9);
  fs::remove(dir / "restart_000001/complete.toml");
  EXPECT_EQ(remove_restarts_after(dir.path(), 2), (std::vector<std::string>{"restart_000003", "restart_000004"}));
  EXPECT_EQ(steps_in(dir.path()), (Steps{2}));
  EXPECT_EQ(dir.entries(), 1u);
}

// Restarts of the same format had files of measured FFTW plans too, with their checksums.
TEST_F(Restarts, ReadsThoseWithPlans) {
  const std::string folder = write(dir.path(), 8), path = folder + "/complete.toml";
  std::ofstream(folder + "/plans_0.txt") << "(fftw-3.3.10 fftwf_wisdom)";
  std::string text = bytes_of_file(path);
  text = "plans = [ '0123456789abcdef' ]\n" + text.substr(0, text.rfind("# checksum"));
  std::ofstream(path) << text << "# checksum of all lines above: " << checksum_of(text) << '\n';
  EXPECT_EQ(steps_in(dir.path()), (Steps{8}));
  EXPECT_EQ(error_of([&] { read_restart(find_restarts(dir.path()).at(0)); }), "");
}

TEST_F(Restarts, RefusesDamageAndOtherFormats) {
  const std::string file = write(dir.path(), 8) + "/rank_0.hdf5";
  flip_bit(file, fs::file_size(file) - 100, 0);
  RestartInfo info = find_restarts(dir.path()).at(0);
  expect_error([&] { read_restart(info); }, {file.c_str(), "damaged", "checksum", "earlier"});
  fs::remove(file);
  expect_error([&] { read_restart(info); }, {file.c_str(), "is missing"});
  std::ofstream(dir / "restart_000008/complete.toml") << "format = 99\nstep = 8\nversion = \"Maki 9\"\n"
                                                         "git_hash = \"abc12\"\n";
  info = find_restarts(dir.path()).at(0);
  expect_error([&] { read_restart(info); }, {"restart_000008", "format 99", "Maki 9, commit abc12"});
}

TEST_F(Restarts, AFullDiskLeavesTheFormerOnes) {
  const SmallDisk disk(dir.path());
  if (!disk)
    GTEST_SKIP()
        << "mounting a small file system needs root; RestartRanks.OneRankThatCannotWriteFailsAll covers the same path";
  write(dir.path(), 1);
  write(dir.path(), 2);
  expect_error([&] { write(dir.path(), 3, 100000); },
               {"cannot write", "restart_000003", "No space left on device", "free space"});
  EXPECT_EQ(dir.entries(), 2u);
  expect_whole(dir.path(), 1);
  expect_whole(dir.path(), 2);
  write(dir.path(), 4);
  EXPECT_EQ(steps_in(dir.path()), (Steps{2, 4}));
}

// A process that ends in the middle of a write, here by the signal of a file that grows too large.
TEST_F(Restarts, KilledWhileWriting) {
  write(dir.path(), 1);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);
    const rlimit none{0, 0}, limit{1 << 18, 1 << 18};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_FSIZE, &limit);
    write(dir.path(), 2, 100000);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(dir.entries(), 2u);  // it has begun, and could not tidy up
  EXPECT_EQ(steps_in(dir.path()), (Steps{1}));
  expect_whole(dir.path(), 1);
  write(dir.path(), 2);
  EXPECT_EQ(steps_in(dir.path()), (Steps{1, 2}));
  expect_whole(dir.path(), 2);
}

TEST_F(Restarts, SaysWhereThereIsNoDirectory) {
  expect_error([&] { find_restarts("/nowhere/at/all"); }, {"/nowhere/at/all", "No such file"});
}

}  // namespace
}  // namespace maki
