// How `make deps-cuda` puts a toolkit together, with a stand-in for pip.
#include "tests/ci/stand_ins.hpp"

namespace maki::test {
namespace {

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

}  // namespace
}  // namespace maki::test
