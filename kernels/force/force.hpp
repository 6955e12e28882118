// Short-range (or whole) gravity of particles and cells on groups of particles.
#pragma once

#include <cstdint>

#include "kernels/device/buffer.hpp"
#include "kernels/device/stream.hpp"
#include "kernels/force/split.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

struct ForceOutput {
  VectorView acceleration;  // by particle index; overwritten for every particle of an evaluated group, or added to
  float* potential;         // by particle index, or nullptr: then it is neither computed nor touched
  bool add = false;         // adds to the arrays instead (not in direct_sum)
};

// Evaluates the lists of `lists.count` groups. Acceleration = + sum m g(r^2) r, potential = - sum m p(r^2), G = 1,
// lengths in sides, g and p of `law` (split.hpp), r from the target to the source. A source at the target's position,
// such as the target itself, adds nothing to the acceleration, and to the potential only the split's smooth part
// (+ m l(0) / r_cut): tree plus mesh then hold no self-energy. quadrupoles = false takes cells as monopoles. Sources
// are taken relative to the group's centre.
void evaluate_lists(const Stream& stream, const ForceLaw& law, bool quadrupoles, const SourceView& sources,
                    const ListView& lists, const ForceOutput& out);

// All `n` particles, and the targets of a direct sum among them: [first, first + count).
struct DirectSet {
  const SourceParticle* particles;
  std::uint32_t n;
  std::uint32_t first, count;
};

// Direct sum over all particles of the set for its targets: same law and conventions, periodic by nearest image
// (isolated sets lie in the middle half of the box, where the nearest image is the particle itself). Output arrays are
// indexed from 0 at `first`.
void direct_sum(const Stream& stream, const ForceLaw& law, const DirectSet& set, const ForceOutput& out);

}  // namespace maki
