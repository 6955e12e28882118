// A set of particles that do not move, on the device.
#pragma once

#include <vector>

#include "kernels/particles/particles.hpp"

namespace maki::testing {

// Momenta, remainders and ids are 0.
inline void upload_at_rest(const Stream& stream, const std::vector<SourceParticle>& set, Particles& particles) {
  particles.resize(set.size());
  particles.source.upload(stream, set);
  particles.remainder.fill_zero(stream);
  particles.momentum.fill_zero(stream);
  particles.id.fill_zero(stream);
}

// Those particles i of the set for which is_mine(i), with their places in the set as ids.
template <class IsMine>
void upload_some_at_rest(const Stream& stream, const std::vector<SourceParticle>& set, const IsMine& is_mine,
                         Particles& particles) {
  std::vector<SourceParticle> mine;
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!is_mine(i)) continue;
    mine.push_back(set[i]);
    ids.push_back(i);
  }
  upload_at_rest(stream, mine, particles);
  particles.id.upload(stream, ids);
}

}  // namespace maki::testing
