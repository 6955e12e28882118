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
// The same at places of the caller's, the same ones on all processes, of a set of which each process holds a part.
ReferenceForces direct_reference_of_parts(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                          const std::vector<Vector3>& targets, const DirectReferenceOptions& options,
                                          const SumOfParts& sum);

}  // namespace maki
