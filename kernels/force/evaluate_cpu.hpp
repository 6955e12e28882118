// The interface between evaluate_cpu.cpp and evaluate_isa.cpp, which is compiled once for each instruction set. Plain
// data only: see PairParameters.
#pragma once

#include "kernels/device/instruction_set.hpp"
#include "kernels/force/split.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

// A law's parameters for one instruction set. Where reciprocal roots are coarse (ForceLaw::refine_root is false), the
// polynomials are scaled by the roots' mean error, and the sums are scaled back.
struct GroupParameters {
  PairParameters points, cells;
  float force_scale, potential_scale;  // factors on the sums
};

// One group's evaluation. `targets` is never null. Output arrays are by particle index; `potential` may be nullptr.
struct GroupTask : SourceView {
  const std::uint32_t* words;  // of this group
  ListRange list;
  Group group;
  bool quadrupoles;
  float *ax, *ay, *az, *potential;
  bool add;  // to the output arrays, instead of overwriting
};

// Targets [first, first + count) against all n particles; outputs are indexed from 0 at `first`.
struct DirectTask {
  const SourceParticle* particles;
  std::uint32_t n, first, count;
  float *ax, *ay, *az, *potential;
};

// A loop of one formula, for the benchmark: `repeat` passes over n sources (x, y, z, mass; in cache) for `targets`
// targets, a multiple of 16.
struct LoopTask {
  const float* sources;  // 64-byte aligned; particles 4 floats each, cells 12
  std::uint32_t n, targets, repeat;
  bool cells, potential;
};

struct ForceKernels {
  GroupParameters (*centred)(const PairParameters&);  // the law's GroupParameters
  void (*evaluate_group)(const GroupParameters&, const GroupTask&);
  void (*direct)(const PairParameters&, const DirectTask&);
  float (*loop)(const PairParameters&, const LoopTask&);  // sum of the results, so that none is optimised away
};

namespace scalar {
extern const ForceKernels kForceKernels;
}
namespace avx2 {
extern const ForceKernels kForceKernels;
}
namespace avx512 {
extern const ForceKernels kForceKernels;
}
inline const ForceKernels& force_kernels() {
  return of_instruction_set(scalar::kForceKernels, avx2::kForceKernels, avx512::kForceKernels);
}

}  // namespace maki
