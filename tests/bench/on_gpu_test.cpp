// bench/on_gpu.sh among stand-ins for the programs that it runs.
#include "tests/src/cli/program_fixture.hpp"

namespace maki::test {
namespace {

class OnGpu : public Program {
 protected:
  void SetUp() override {
    fs::create_directories(path("bin"));
    stand_in("maki", "echo a version");
    stand_in("tests", "echo part $((GTEST_SHARD_INDEX + 1)) of $GTEST_TOTAL_SHARDS\necho '2 passed, 0 failed'");
  }
  void stand_in(const std::string& name, const std::string& text) const {
    fs::permissions(write("bin/" + name, "#!/bin/bash\n" + text + "\n"), fs::perms::owner_all);
  }
  Result on_gpu(const std::string& steps, const std::string& settings = "") const {
    return call_shell("PATH=" + path("bin") + ":$PATH PROGRAMS=" + path("bin") + " " + settings + " bash " +
                      source_directory() + "/bench/on_gpu.sh " + path("out") + " " + steps);
  }
};

TEST_F(OnGpu, AMachineHasToHaveAGpu) {
  stand_in("nvidia-smi", "exit 9");
  expect_end(on_gpu("machine"), 1, {"machine: exit status 9", "a version"});
  stand_in("nvidia-smi", "echo a GPU");
  expect_end(on_gpu("machine"), 0, {"machine: exit status 0"});
  stand_in("maki", "exit 3");
  expect_end(on_gpu("machine"), 1, {"machine: exit status 3"});
}

TEST_F(OnGpu, ProgramsAreWhereTheyAreSaidToBe) {
  expect_end(on_gpu("machine", "PROGRAMS=" + path("none")), 2, {path("none/maki"), "PROGRAMS="});
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(OnGpu, TestsRunSideBySide) {
  expect_end(on_gpu("tests", "PARTS=3"), 0, {"tests: exit status 0", "6 passed, 0 failed"});
  expect_contains(text_of(path("out/tests.log")), {"part 1 of 3", "part 3 of 3"});
}

TEST_F(OnGpu, NoTestsAreNoSuccess) {
  stand_in("tests", "echo '0 passed, 0 failed'");
  expect_end(on_gpu("tests"), 1, {"tests: exit status 1", "0 passed, 0 failed"});
  expect_contains(text_of(path("out/tests.log")), {"no test was run"});
}

// What tests have said by then is in the log.
TEST_F(OnGpu, AStepEndsWithItsTime) {
  stand_in("tests", "echo begun $GTEST_SHARD_INDEX\nexec sleep 1000");
  expect_end(on_gpu("tests machine", "PARTS=2 LIMIT=8 TOTAL=8"), 1, {"tests: ended after ", "machine: no time left"});
  expect_contains(text_of(path("out/tests.log")), {"begun 0", "begun 1"});
}

}  // namespace
}  // namespace maki::test
