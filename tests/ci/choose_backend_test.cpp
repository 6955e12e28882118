// What `make` builds on machines with other GPUs, drivers and toolkits, which a stand-in for nvidia-smi plays.
#include "tests/ci/stand_ins.hpp"

namespace maki::test {
namespace {

class ChooseBackend : public StandIns {
 protected:
  Result choose(const std::string& driver, const std::string& nvcc, const std::string& capabilities = "9.0") const {
    executable("nvidia-smi", "case \"$*\" in -L) echo 'GPU 0: NVIDIA H100';; *compute_cap*) printf '" + capabilities +
                                 "\\n';; *driver_version*) echo " + driver + ";; esac\n");
    return among_stand_ins("bash " + script("choose_backend") + " " + nvcc);
  }
  std::string toolkit(const std::string& release) const {
    return executable("nvcc", "echo 'Cuda compilation tools, release " + release + ", V" + release + ".88'\n");
  }
};

TEST_F(ChooseBackend, ByDriverAndToolkit) {
  EXPECT_EQ(choose("580.65.06", toolkit("13.0")).output, "cuda\n");
  EXPECT_EQ(choose("570.86.10", toolkit("12.8")).output, "cuda\n");
  EXPECT_EQ(choose("535.104.05", toolkit("12.8")).output, "cuda\n");
  expect_words(choose("570.86.10", toolkit("13.0")),
               {"cpu\n", "driver 570.86.10 is older than CUDA 13, which needs 580"});
  expect_words(choose("580.65.06", ""), {"toolkit\n", "no nvcc", "make deps-cuda"});
  expect_words(choose("570.86.10", ""), {"cpu\n", "needs 580"});
}

TEST_F(ChooseBackend, AGpuBeforeAmpereIsTooOldUnlessThereIsANewerOne) {
  expect_words(choose("580.65.06", toolkit("13.0"), "7.5"), {"cpu\n", "capability 7.5", "needs 8.0"});
  for (const std::string good : {"8.0", "10.3", "7.5\\n8.6", "12.0\\n7.5", "[N/A]"})
    EXPECT_EQ(choose("580.65.06", toolkit("13.0"), good).output, "cuda\n") << good;
}

TEST_F(ChooseBackend, AGpuThatCannotBeUsedIsNamed) {
  executable("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not communicate with the driver'; exit 9\n");
  expect_words(among_stand_ins("bash " + script("choose_backend")), {"cpu\n", "could not communicate with the driver"});
}

TEST_F(ChooseBackend, ACompilerWithoutAGpuIsNoSilentCpuBuild) {
  const std::string nvcc = toolkit("13.0");
  const auto choose_without_tools = [&](const std::string& given) {
    return call_shell("env -i PATH=\"" + directory_.string() + "\" /bin/bash " + script("choose_backend") + " " +
                      given);
  };
  expect_words(choose_without_tools(nvcc), {"cpu\n", "BACKEND=cuda"});
  EXPECT_EQ(choose_without_tools("").output, "cpu\n");
}

}  // namespace
}  // namespace maki::test
