// The planes of a mesh that hold particles.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/device/stream.hpp"
#include "kernels/mesh/mesh_box.hpp"
#include "kernels/particles/types.hpp"

namespace maki {

// By axis and cell along it: 1 where any particle is in that plane of a mesh of `cells`^3, else 0. Waits for the
// device.
std::array<std::vector<std::uint32_t>, 3> occupied_planes(const Stream& stream, const SourceParticle* particles,
                                                          std::size_t n, int cells);

// Whether all particles are in cells of the box. Waits for the device.
bool all_within(const Stream& stream, const SourceParticle* particles, std::size_t n, const MeshBox& box);

}  // namespace maki
