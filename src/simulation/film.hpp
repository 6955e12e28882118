// Pictures of a film: their times, and the particles at a time within the last step.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "src/cosmology/cosmology.hpp"

namespace maki {

enum class Cadence { kScaleFactor, kLogScaleFactor, kTime };

// `count` moments (scale factors, or times) from `start` to `end`, both included; a single one is the end. Evenly
// spaced in the variable of `cadence`; in isolated runs always in time.
std::vector<double> film_times(std::size_t count, Cadence cadence, const Timeline& timeline, double start, double end);

// `now` with positions drifted back by `factor` (sides per momentum unit, as in drift()). Momenta are copied, ids are
// not.
Particles drifted_back(const Stream& stream, const Particles& now, double factor);

// Bytes a particle on the device while a picture of a film is taken, beside those of the picture.
inline constexpr double kFilmBytes = 34;

}  // namespace maki
