// Restarts of which a bit has flipped or the end is missing: each is noticed, and the one before serves.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

class DamagedRestart : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    seed_ = std::random_device()();
    random_.seed(seed_);
    const Result made =
        call("run " + write("tiny.toml", kTinyUniverse) +
             " restart_steps=1 output.image=false power_spectrum=false output_directory=" + path("run"));
    ASSERT_EQ(made.code, 0) << made.output;
    ASSERT_EQ(restarts("run").size(), 2u);
    fs::remove(path("run/snapshot_002.hdf5"));
  }
  std::vector<fs::path> restarts(const std::string& name) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path(name)))
      if (entry.path().filename().string().starts_with("restart_")) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  // A copy of the run, in which only its newest restart is there where `alone`.
  void copy_run(bool alone) const {
    fs::remove_all(path("copy"));
    fs::copy(path("run"), path("copy"), fs::copy_options::recursive);
    if (alone) fs::remove_all(restarts("copy").front());
  }
  // Flips a bit of a file of the restart, or cuts the file off. Returns what was done.
  std::string damage(const fs::path& restart) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(restart)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    const fs::path file = files[random_() % files.size()];
    const std::uintmax_t at = random_() % fs::file_size(file);
    if (random_() % 3 == 0) {
      fs::resize_file(file, at);
      return file.filename().string() + " was cut off at " + std::to_string(at);
    }
    const int bit = static_cast<int>(random_() % 8);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(bytes.get() ^ (1 << bit));
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(byte);
    return "bit " + std::to_string(bit) + " of byte " + std::to_string(at) + " of " + file.filename().string();
  }
  // One of four times there is no other restart, and the run is refused.
  void expect_noticed(int times) {
    for (int i = 0; i < times; ++i) {
      const bool alone = i % 4 == 3;
      copy_run(alone);
      const std::string before = restarts("copy").front().string();
      SCOPED_TRACE(damage(restarts("copy").back()) + ", seed " + std::to_string(seed_));
      const Result resumed = call("resume " + path("copy"));
      EXPECT_EQ(resumed.code, alone ? 1 : 0) << resumed.output;
      expect_words(resumed, {"damaged"});
      EXPECT_EQ(fs::exists(path("copy/snapshot_002.hdf5")), !alone);
      if (!alone) {
        expect_words(resumed, {"Resumed from " + before, "one before has to serve"});
        continue;
      }
      expect_words(resumed, {"copy a whole one back, or begin again"});
      EXPECT_EQ(restarts("copy").size(), 1u) << "it is left alone";
    }
  }
  unsigned seed_ = 0;
  std::mt19937 random_;
};

TEST_F(DamagedRestart, IsNoticedAndTheOneBeforeServes) { expect_noticed(12); }

class FullDamagedRestart : public DamagedRestart {};
TEST_F(FullDamagedRestart, IsNoticedAHundredTimes) { expect_noticed(100); }

}  // namespace
}  // namespace maki::test
