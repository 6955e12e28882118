#include "src/simulation/state_copy.hpp"

#include "kernels/particles/types.hpp"

namespace maki {

StateCopy::StateCopy(const OutputState& state)
    : header_(state.header), frame_(state.frame), scale_factor_(header_.comoving ? header_.time : 1),
      gone_(state.escapers) {
  copy_to_rows(state.stream, state.particles, rows_);
}

double StateCopy::position(std::size_t i, std::size_t axis) const {
  if (i >= rows_.size()) {
    i -= rows_.size();
    return gone_.positions[i][axis] + gone_.velocities[i][axis] * (header_.time - gone_.times[i]);
  }
  const SourceParticle& p = rows_.source[i];
  const Remainder& r = rows_.remainder[i];
  const double fraction = axis == 0 ? fraction_of(p.x, r.x) : axis == 1 ? fraction_of(p.y, r.y) : fraction_of(p.z, r.z);
  return frame_.corner[axis] + fraction * frame_.side;
}

float StateCopy::velocity(std::size_t i, std::size_t axis) const {
  if (i >= rows_.size()) return gone_.velocities[i - rows_.size()][axis];
  return static_cast<float>(rows_.momentum[axis][i] / scale_factor_);
}

float StateCopy::mass(std::size_t i) const {
  return i < rows_.size() ? rows_.source[i].mass : gone_.masses[i - rows_.size()];
}

std::uint64_t StateCopy::id(std::size_t i) const {
  return i < rows_.size() ? rows_.id[i] : gone_.ids[i - rows_.size()];
}

}  // namespace maki
