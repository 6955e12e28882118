// Kernels with one fault each, beside their repaired twins: the model must find the fault whatever the order of
// threads, at its line, and must let the twin pass.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/device/cooperative.cuh"

namespace maki::planted {

using simt::Fault;
using simt::FaultKind;
using Lines = std::vector<int>;

inline constexpr unsigned kBlock = 64, kGrid = 2, kCount = kBlock * kGrid, kSeeds = 20;

struct Expected {
  FaultKind kind;
  Lines lines;              // a fault is reported at one of them, and so is the other side of a race
  const char* buffer = "";  // part of its name
  int thread = -1;          // where only one can be
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

  std::optional<Fault> run(const char* name, Kernel kernel, std::size_t shared_bytes) {
    one_.fill_zero(stream_);
    try {
      launch_blocks(stream_, name, {kGrid, kBlock, shared_bytes}, kernel, Data{in_.data(), out_.data(), one_.data()});
    } catch (const Fault& fault) {
      return fault;
    }
    return std::nullopt;
  }

  // With every seed `broken` fails as expected, the same way each time, and `repaired` passes.
  void expect_found(const Expected& expected, Kernel broken, Kernel repaired, std::size_t shared_bytes = 0,
                    const char* own_file = __builtin_FILE()) {
    if (!simt::knows_lines()) GTEST_SKIP() << "no addr2line here (package binutils) to tell the lines of faults";
    const auto listed = [&](const std::string& file, int line) {
      return file == own_file && std::find(expected.lines.begin(), expected.lines.end(), line) != expected.lines.end();
    };
    simt::for_seeds(kSeeds, [&](std::uint64_t seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      const auto fault = run("broken", broken, shared_bytes);
      ASSERT_TRUE(fault) << "not found";
      SCOPED_TRACE(fault->what());
      EXPECT_EQ(fault->kind, expected.kind);
      EXPECT_EQ(fault->kernel, "broken");
      EXPECT_LT(fault->block, kGrid);
      EXPECT_GE(fault->thread, 0);
      EXPECT_LT(fault->thread, static_cast<int>(kBlock));
      EXPECT_TRUE(expected.thread < 0 || fault->thread == expected.thread);
      EXPECT_TRUE(listed(fault->file, fault->line));
      EXPECT_NE(fault->buffer.find(expected.buffer), std::string::npos);
      if (fault->kind == FaultKind::race) {
        EXPECT_TRUE(listed(fault->other.file, fault->other.line));
        EXPECT_TRUE(fault->other.block != fault->block || fault->other.thread != fault->thread);
      }
      simt::set_options(simt::options());  // the same random numbers again
      const auto again = run("broken", broken, shared_bytes);
      ASSERT_TRUE(again);
      EXPECT_STREQ(again->what(), fault->what());
      const auto none = run("repaired", repaired, shared_bytes);
      EXPECT_FALSE(none) << none->what();
    });
  }

  Stream stream_;
  DeviceBuffer<unsigned> in_, out_, one_;
};

__device__ inline unsigned global_thread() { return blockIdx.x * kBlock + threadIdx.x; }

}  // namespace maki::planted
