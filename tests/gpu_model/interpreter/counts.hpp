// Counts: what the kernels of a run have done, and the least time that takes on an H100.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu_model/interpreter/program.hpp"

namespace gpu_model {

struct Counts {
  std::string kernel;
  std::uint64_t launches = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(Class::kCount)> instructions{};  // of warps, by class
  std::uint64_t all = 0;                                                              // their sum
  std::uint64_t lanes = 0;                                                            // active ones, summed over all
  std::uint64_t sectors = 0;                                                          // of 32 bytes, of global memory
  std::uint64_t wavefronts = 0;                                                       // of shared memory
  std::uint64_t atomic_turns = 0;  // most lanes at one address, summed over the atomic operations
};

std::vector<Counts> counts();  // of each kernel since the program began

// The least time in seconds on an H100 SXM, and what bounds it. Counted are PTX instructions, not the machine's own,
// and each sector as if it came from DRAM: what caches serve is faster. README.md says more.
struct LeastTime {
  double seconds = 0;
  const char* bound = "";
};
LeastTime least_time(const Counts& c);

// One line for each kernel that takes a share, the sum, and the runtime's counters. Written at the end of a program to
// the file that MAKI_GPU_MODEL_COUNTS names ("-": standard error).
std::string table(const std::vector<Counts>& all);

}  // namespace gpu_model
