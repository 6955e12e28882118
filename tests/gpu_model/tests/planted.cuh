// Kernels with one fault each, beside their repaired twins: the model must find the fault whatever the order of
// threads, at its line, and must let the twin pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/launch.cuh"
#include "kernels/error.hpp"
#include "tests/gpu_model/tests/faults.hpp"

namespace gpu_model::planted {

using namespace maki;
using Lines = std::vector<int>;

inline constexpr unsigned kBlock = 64, kGrid = 2, kCount = kBlock * kGrid, kRuns = 20;
inline constexpr std::size_t kTileBytes = kBlock * sizeof(unsigned);
inline constexpr int kAnyThread = -1;

struct Planned {
  std::string kind;         // how it begins
  Lines lines;              // the fault is reported at one of them
  const char* text = "";    // part of what is said
  int thread = kAnyThread;  // where only one can be
  std::size_t shared_bytes = 0;
};

struct Data {
  const unsigned* in;  // 0, 1, 2 ... kCount
  unsigned* out;       // kCount
  unsigned* one;       // a single word
};
using Kernel = void (*)(Data);

class Planted : public testing::Test {
 protected:
  Planted() : in_("numbers", kCount), out_("results", kCount), one_("one word", 1) {
    std::vector<unsigned> values(kCount);
    for (unsigned i = 0; i < kCount; ++i) values[i] = i;
    in_.upload(stream_, values);
  }

  std::vector<Fault> run(Kernel kernel, std::size_t shared_bytes) {
    one_.fill_zero(stream_);
    return faults_of([&] {
      kernel<<<kGrid, kBlock, shared_bytes, native(stream_)>>>(Data{in_.data(), out_.data(), one_.data()});
    });
  }

  // Each launch draws another order. `at`: the line that lines count from.
  void expect_found(int at, const Planned& expected, Kernel broken, Kernel repaired,
                    const char* own_file = __builtin_FILE()) {
    for (unsigned n = 0; n < kRuns; ++n) {
      const auto faults = run(broken, expected.shared_bytes);
      ASSERT_FALSE(faults.empty()) << "not found";
      const auto found =
          std::find_if(faults.begin(), faults.end(), [&](const Fault& f) { return f.kind.starts_with(expected.kind); });
      const Fault& fault = found == faults.end() ? faults.front() : *found;
      SCOPED_TRACE(to_string(fault));
      EXPECT_NE(found, faults.end());
      const bool listed = std::any_of(expected.lines.begin(), expected.lines.end(), [&](int line) {
        return fault.where.find(std::string(own_file) + ":" + std::to_string(at + line)) != std::string::npos;
      });
      EXPECT_TRUE(listed);
      EXPECT_NE(fault.text.find(expected.text), std::string::npos);
      if (expected.thread >= 0)
        EXPECT_NE(fault.where.find("thread (" + std::to_string(expected.thread) + ",0,0)"), std::string::npos);
      const auto none = run(repaired, expected.shared_bytes);
      EXPECT_TRUE(none.empty()) << to_string(none.front());
    }
  }

  Stream stream_;
  DeviceBuffer<unsigned> in_, out_, one_;
};

__device__ inline unsigned global_thread() { return blockIdx.x * kBlock + threadIdx.x; }

// The head of a kernel of `data`, in which kBroken is the fault, and the test that finds it. The other arguments are
// those of Planned; lines count from this one.
#define PLANTED(test, ...)                                                                  \
  template <bool kBroken>                                                                   \
  __global__ void test(Data data);                                                          \
  TEST_F(Planted, test) { expect_found(__LINE__, {__VA_ARGS__}, test<true>, test<false>); } \
  template <bool kBroken>                                                                   \
  __global__ void test(Data data)

}  // namespace gpu_model::planted
