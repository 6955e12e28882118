// Direct sum in double precision over an isolated set: the reference for isolated forces.
#pragma once

#include <cstddef>

#include "src/gravity/reference/softened_pair.hpp"

namespace maki {

struct DirectReferenceOptions {
  Softening kind = Softening::kPlummer;
  double softening = 0;  // sides
};

// Acceleration and potential at the particles named by `targets` (indices; empty: all). Positions in sides, not
// wrapped; masses of the same length. A particle's own term and pairs at zero distance are left out. O(targets x
// particles), on all threads.
ReferenceForces direct_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                 const std::vector<std::size_t>& targets, const DirectReferenceOptions& options);

}  // namespace maki
