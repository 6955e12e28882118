// The images of particles that an observer's past light cone meets during a drift, and their positions.
//
// In comoving coordinates the cone is a sphere around the observer whose radius R shrinks while particles drift. An
// image, the particle displaced by whole sides, is met where |x| < R at the beginning of the drift and |x| >= R at its
// end, x from the observer. Both are decided in integers. Coordinates and radius at the end of a drift are those at the
// beginning of the next one, and particles are slower than light. So over the drifts of a run every image is met once,
// also across the edges of the box, whichever rank holds the particle.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/particles/particles.hpp"

namespace maki {

// A smooth quantity during a drift, as a function of the elapsed part of the drift (0 to 1): the cubic through four
// values, in Newton's form.
struct DriftCubic {
  double node[3] = {0, 0, 0};
  double coefficient[4] = {0, 0, 0, 0};
  MAKI_HD double operator()(double part) const {
    double value = coefficient[3];
    for (int i = 2; i >= 0; --i) value = value * (part - node[i]) + coefficient[i];
    return value;
  }
};
// `parts` ascend from 0 to 1.
DriftCubic cubic_through(const std::array<double, 4>& parts, const std::array<double, 4>& values);

// The sphere during a drift. Integers are in units of 2^-48 side, as the coordinates of Particles.
struct LightSphere {
  std::int64_t observer[3] = {0, 0, 0};
  std::int64_t before = 0, after = 0;  // R at the beginning and the end of the drift; after < before
  DriftCubic radius;                   // R in between, sides
};

// An observer's field of view: directions within an angle of an axis.
struct FieldOfView {
  std::array<double, 3> axis{0, 0, 1};  // of length 1
  double cos_angle = -1;                // -1: the whole sky
  bool holds(double x, double y, double z) const;
};

// Images displaced by (x, y, n) sides, n = first ... last.
struct ImageColumn {
  std::int32_t x, y, first, last;
};
// All images of the box that may have a particle to meet within the field of view, by column.
std::vector<ImageColumn> image_columns(const LightSphere& sphere, const FieldOfView& view);

struct Crossing {
  double x, y, z;  // from the observer, sides; |x| = R
  float px, py, pz, mass;
  std::uint64_t id;
  double part;  // elapsed part of the drift
};

// The crossings of the drift that drift(stream, particles, factor) has just made, among the images of `columns`: all
// that lie in their field of view, and others besides. `take` gets them in batches, in an order that depends only on
// particles and columns. A batch has at most n/4 + 1 crossings of n particles, or those of one particle.
void find_crossings(const Stream& stream, const Particles& particles, double factor, const LightSphere& sphere,
                    const std::vector<ImageColumn>& columns,
                    const std::function<void(const std::vector<Crossing>&)>& take);

// For estimates: bytes a particle on the device during the call: counts, places, and the crossings of a batch.
inline constexpr double kCrossingsAtOnce = 0.25;
inline constexpr double kCrossingBytes = 12 + kCrossingsAtOnce * sizeof(Crossing);

}  // namespace maki
