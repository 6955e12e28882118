// Ewald's sum in double precision: the reference for forces in a periodic box (Ewald 1921; Hernquist, Bouchet & Suto
// 1991).
#pragma once

#include <cstddef>

#include "src/gravity/reference/direct.hpp"

namespace maki {

// The result does not depend on `alpha`, only the time does: near and far sums share the work.
struct EwaldOptions {
  Softening kind = Softening::kPlummer;
  double softening = 0;  // sides; 0: none
  double alpha = 11.2;   // splitting parameter, 1 / side: the near sum reaches 5.6 / alpha, waves go to 5.6 alpha / pi
};

// Acceleration and potential at the particles named by `targets` (indices; empty: all), of all particles, their
// periodic images and a uniform background of minus the mean density: acceleration = -grad Phi with
// laplace Phi = 4 pi (rho - mean rho), and the mean of Phi over the box is 0 (unsoftened).
// Positions are fractions of the side, any image; masses of the same length. The nearest image is softened, the others
// are not (the difference is (softening / side)^2 of them). A particle's own -m / softening, and that of particles at
// the same point, is left out, its images are not. Truncation errors are 1e-11 of the force of one particle at half a
// side.
// Time: waves (17000 of them) x particles + targets x particles, on all threads.
ReferenceForces ewald_reference(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                const std::vector<std::size_t>& targets, const EwaldOptions& options);
// The same at positions `targets`, equal on all processes, where each process holds a part of the set. A target that is
// a particle has the particle's position to the last bit.
ReferenceForces ewald_reference_of_parts(const std::vector<Vector3>& positions, const std::vector<double>& masses,
                                         const std::vector<Vector3>& targets, const EwaldOptions& options,
                                         const SumOfParts& sum);

}  // namespace maki
