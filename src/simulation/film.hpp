// Pictures of a film: when they are taken, and the particles at a moment within the last step.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/particles/particles.hpp"
#include "src/cosmology/cosmology.hpp"

namespace maki {

enum class Cadence { kScaleFactor, kLogScaleFactor, kTime };

// `count` moments (scale factors, or times) from `start` to `end`, both included; a single one is the end. Even in what
// `cadence` says; in isolated runs always in time.
std::vector<double> film_times(std::size_t count, Cadence cadence, const Timeline& timeline, double start, double end);

// Positions `factor` (sides per momentum unit, as drift() has it) before those of `now`. Momenta go along, ids do not.
Particles drifted_back(const Stream& stream, const Particles& now, double factor);

// Bytes of a particle on the device while a picture of a film is taken, beside those of the picture.
inline constexpr double kFilmBytes = 34;

}  // namespace maki
