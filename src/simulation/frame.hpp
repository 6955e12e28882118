// Conversion between a run's units and those of the kernels: place and size of the box, and the unit of momenta.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/particles/particles.hpp"
#include "src/io/snapshot.hpp"

namespace maki {

// position = corner + fraction * side.
struct Frame {
  double side = 1;                    // length units
  double gravitational_constant = 1;  // length velocity^2 / mass
  std::array<double, 3> corner{};     // length units; 0 where periodic
  int doublings = 0;                  // of an isolated set's box
  bool periodic = true;

  double acceleration_unit() const { return gravitational_constant / (side * side); }  // velocity^2 / length
  double potential_unit() const { return gravitational_constant / side; }              // velocity^2
};

// Doublings of the box for any particle that leaves its middle half; later ones only for enough bound particles
// (GravityField::bound_ones_leave).
inline constexpr int kMaxDoublings = 4;
// Distance (sides) below which a tree's forces between two particles err by some 1e-3: separations have 24 bits of a
// group's extent.
inline constexpr double kTightPair = 1e-5;
// The sentence for the log of a run with a softening below kTightPair in a box of this side (length units).
std::string note_of_tight_pairs(double side);

// A particle farther than this from the middle on some axis, in units of the last bit, has left the middle half of
// the box: the nearest image of another particle could be the wrong one.
inline constexpr std::int64_t kMiddleHalf = (std::int64_t{1} << 30) - 1;

// The box of side `side` (length units) about `centre`; G is the header's, or that of its units.
// Throws Error where side is not positive, or G / side^2 is not a normal number.
Frame make_frame(const SnapshotHeader& header, double side, const std::array<double, 3>& centre);

// Doubles the side about the middle; momenta keep their meaning.
void double_frame(Frame& frame);

// Moves the box by so many units of the last bit on each axis (shift_box()).
void shift_frame(Frame& frame, const std::array<std::int32_t, 3>& shift);

// Host bytes a particle that load_particles() takes beside the set; measured.
inline constexpr double kFrameBytes = 62;

// Copies the set to the device. Momenta are p = a v for peculiar velocities v. Throws Error that names the first
// particle outside of the box.
void load_particles(const Stream& stream, const Snapshot& snapshot, const Frame& frame, Particles& particles);

}  // namespace maki
