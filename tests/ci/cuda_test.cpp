// CUDA in the build: what `make` builds on machines with other GPUs, drivers and toolkits; how `make deps-cuda` puts a
// toolkit together; and which cuobjdump reads the compiled kernels. Stand-ins play nvidia-smi, pip and the toolkits.
#include <gtest/gtest.h>

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

class CudaToolkit : public StandIns {
 protected:
  // With wheels that hold these files.
  Result get(const std::string& files) const {
    executable("python3",
               "case $* in *--version*) exit;; esac\n"
               "while [ \"$1\" != --target ]; do shift; done\n"
               "for file in " +
                   files +
                   "; do mkdir -p \"$2/nvidia/$(dirname $file)\"\n"
                   "  printf '#!/bin/sh\\necho %s\\n' $file > \"$2/nvidia/$file\"\n"
                   "done\n");
    return among_stand_ins("bash " + script("cuda_toolkit") + " " + path("toolkit") + " nvidia-cuda-nvcc nvidia-nccl");
  }
};

TEST_F(CudaToolkit, PartsAreInOneFolder) {
  expect_end(get("cu13/bin/nvcc cu13/lib/libx.so.1 cu13/lib/one.py nccl/lib/libnccl.so.2 nccl/lib/one.py"), 0,
             {"cu13/bin/nvcc"});
  expect_contains(text_of(path("toolkit/lib/libnccl.so")), {"nccl/lib/libnccl.so.2"});
  expect_contains(text_of(path("toolkit/lib/one.py")), {"cu13/lib/one.py"});
  expect_end(get("none"), 0, {"CUDA toolkit in"});
}

TEST_F(CudaToolkit, WheelsWithoutACompilerAreAnError) {
  expect_end(get("nccl/lib/libnccl.so.2"), 1, {"the wheels brought no nvcc"});
  EXPECT_FALSE(fs::exists(path("toolkit")));
}

TEST_F(CudaToolkit, WhatIsLeftOfAnEarlierOneGoes) {
  fs::create_directories(path("toolkit/lib"));
  expect_end(get("cu13/bin/nvcc cu13/lib/libx.so.1"), 0, {"cu13/bin/nvcc"});
}

// None of the kernels is left out in silence.
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
