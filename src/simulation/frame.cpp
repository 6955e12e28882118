#include "src/simulation/frame.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "kernels/error.hpp"

namespace maki {

namespace {

[[noreturn]] void refuse_position(const Snapshot& snapshot, std::size_t i, const Frame& frame) {
  const auto& position = snapshot.positions[i];
  throw Error(fmt::format("particle {} lies outside of the box", snapshot.ids[i]),
              fmt::format("at {:g} {:g} {:g}, the box of side {:g} begins at {:g} {:g} {:g}", position[0], position[1],
                          position[2], frame.side, frame.corner[0], frame.corner[1], frame.corner[2]),
              "give a larger box.size, or leave it out");
}

}  // namespace

Frame make_frame(const SnapshotHeader& header, double side, const std::array<double, 3>& centre) {
  if (!(side > 0)) throw Error("the particles have no box", "side " + std::to_string(side), "give box.size");
  Frame frame;
  frame.side = side;
  frame.periodic = header.comoving;
  frame.gravitational_constant = header.newton();
  if (!std::isnormal(frame.acceleration_unit()))
    throw Error(fmt::format("the box has a side of {:g}, with G = {:g}", side, frame.gravitational_constant),
                "accelerations in it are not in the range of numbers", "choose other units");
  for (std::size_t axis = 0; axis < 3; ++axis) frame.corner[axis] = centre[axis] - 0.5 * side;
  return frame;
}

std::string note_of_tight_pairs(double side) {
  return fmt::format(
      "The softening is less than 1e-5 of the box: between particles closer than {:.3g} forces of the tree may err by "
      "1e-3 and more. gravity.method = \"direct\" has exact separations.",
      kTightPair * side);
}

void double_frame(Frame& frame) {
  for (double& corner : frame.corner) corner -= 0.5 * frame.side;
  frame.side *= 2;
  ++frame.doublings;
}

void shift_frame(Frame& frame, const std::array<std::int32_t, 3>& shift) {
  for (std::size_t axis = 0; axis < 3; ++axis) frame.corner[axis] += shift[axis] / kSideToUnits * frame.side;
}

void load_particles(const Stream& stream, const Snapshot& snapshot, const Frame& frame, Particles& particles) {
  const double a = snapshot.header.comoving ? snapshot.header.time : 1;
  const std::size_t n = snapshot.size();
  std::vector<std::array<double, 3>> fractions(n);
  std::vector<std::array<float, 3>> momenta(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      fractions[i][axis] = (snapshot.positions[i][axis] - frame.corner[axis]) / frame.side;
      if (!(fractions[i][axis] >= 0 && fractions[i][axis] < 1)) refuse_position(snapshot, i, frame);
      momenta[i][axis] = static_cast<float>(snapshot.velocities[i][axis] * a);
    }
  }
  upload_particles(stream, particles, fractions, momenta, snapshot.masses, snapshot.ids);
}

}  // namespace maki
