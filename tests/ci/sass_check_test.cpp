// Which cuobjdump reads the compiled kernels, and that none of them is left out in silence.
#include "tests/ci/stand_ins.hpp"

namespace maki::test {
namespace {

class SassCheck : public StandIns {
 protected:
  void prepare() override {
    if (call_shell("python3 --version").code != 0) GTEST_SKIP() << "there is no python3";
    for (const char* name : {"force/evaluate", "tree/walk", "mesh/assign", "mesh/interpolate"}) {
      const fs::path object = path(std::string("objects/kernels/") + name + "_cuda.cu.o");
      fs::create_directories(object.parent_path());
      std::ofstream(object) << "";
    }
    for (const char* folder : {"old/bin", "new/bin"}) fs::create_directories(path(folder));
    executable("old/bin/nvcc", "");
    executable("old/bin/cuobjdump", "echo too old >&2; exit 1\n");
  }
  // With the answers of the newer cuobjdump to -lelf and -res-usage.
  Result check(const std::string& elves, const std::string& resources) const {
    executable("new/bin/cuobjdump",
               "case $* in *-lelf*) echo '" + elves + "';; *-res-usage*) echo '" + resources + "';; esac\n");
    return call_shell("PATH=" + path("old/bin") + ":$PATH CUDA_HOME=" + path("new") + " python3 " +
                      script("sass_check") + " " + path("objects"));
  }
};

TEST_F(SassCheck, TheToolIsThatOfTheToolkitThatIsNamed) { EXPECT_EQ(times(check("", "").output, "too old"), 0); }

TEST_F(SassCheck, AnObjectWithoutKernelsIsAnError) {
  expect_end(check("", ""), 1, {"kernels/tree/walk_cuda.cu: no compiled code was found"});
  expect_end(check("ELF file 1: a.1.sm_80.cubin", ""), 1, {"kernels/mesh/assign_cuda.cu, sm_80: no kernel was found"});
}

}  // namespace
}  // namespace maki::test
