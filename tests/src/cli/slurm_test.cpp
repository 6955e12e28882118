// The batch script of configs/, with a stand-in for srun whose first job dies.
#include <string>

#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

// Runs the program in its own place, without the launcher's options; the first time it kills it once a restart is there.
constexpr const char* kSrun = R"(#!/bin/bash
while [[ $1 == --* ]]; do shift; done
if [ -e "$MAKI_OUTPUT.died" ]; then exec "$@"; fi
touch "$MAKI_OUTPUT.died"
"$@" restart_steps=1 & job=$!
until compgen -G "$MAKI_OUTPUT/restart_*/complete.toml" >/dev/null || ! kill -0 $job 2>/dev/null; do sleep 0.005; done
kill -9 $job
exit 137
)";

class Slurm : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    fs::permissions(write("srun", kSrun), fs::perms::owner_all);
    config_ = write("tiny.toml", std::string(kTinyUniverse) + "image = false\n");
  }
  Result submit(const std::string& settings = "") const {
    return call_shell("PATH=" + directory_.string() + ":$PATH MAKI=" + program() + " MAKI_OUTPUT=" + path("out") +
                      " bash " + source_directory() + "/configs/slurm.sh " + config_ + " " + settings);
  }
  std::string config_;
};

TEST_F(Slurm, AJobThatDiedGoesOnFromItsLastRestart) {
  const Result died = submit("end_redshift=1");
  EXPECT_EQ(died.code, 137) << died.output;
  const Result second = submit("end_redshift=1");
  EXPECT_EQ(second.code, 0) << second.output;
  expect_words(second, {"Resumed from " + path("out/restart_"), "maki: done"});
  EXPECT_EQ(second.output.find("z = 49:"), std::string::npos) << "it began again:\n" << second.output;
  expect_words(submit(), {"is finished"});
}

TEST_F(Slurm, AJobThatWasStoppedGoesOn) {
  std::ofstream(path("out.died"));
  const Result stopped = submit("time_limit=\"0.001 s\"");
  EXPECT_EQ(stopped.code, 3) << stopped.output;
  const Result second = submit();
  EXPECT_EQ(second.code, 3) << "its own limit still holds: " << second.output;
  const Result third = submit("time_limit=\"1 h\"");
  EXPECT_EQ(third.code, 0) << third.output;
  expect_words(third, {"Resumed from"});
}

TEST_F(Slurm, AStoppedRunWithoutRestartsIsNotLost) {
  std::ofstream(path("out.died"));
  EXPECT_EQ(submit("run.restarts_kept=0 time_limit=\"0.001 s\"").code, 3);
  const Result second = submit();
  EXPECT_EQ(second.code, 1);
  expect_words(second, {"stopped run without a restart"});
  EXPECT_TRUE(fs::exists(path("out/stopped.hdf5")));
}

}  // namespace
}  // namespace maki::test
