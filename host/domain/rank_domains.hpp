// The domains of the ranks of a site over a run.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "host/comm/communicator.hpp"
#include "host/domain/multisection.hpp"
#include "host/domain/sampling.hpp"
#include "kernels/particles/particles.hpp"

namespace maki {

// The domains of the ranks: cut anew at rebuilds by the measured cost of particles, which then move to their ranks.
class RankDomains {
 public:
  // `most_particles`: particles for which one rank has memory; 0: no limit.
  explicit RankDomains(const Communicator& ranks, std::uint64_t most_particles = 0)
      : ranks_(ranks), most_particles_(most_particles) {}

  // New domains; with one rank nothing is done. `costs` returns the costs of particles in the present order. The first
  // time, and where no rank has costs, all particles cost the same. Where equal work would give a rank too many
  // particles (ranks in voids have up to 2.6 times the mean where domains are below some 20 Mpc/h), domains are as near
  // to equal work as memory allows. Collective, as is move().
  void cut(const Stream& stream, const Particles& particles, const std::function<Costs()>& costs);
  // Sends particles to their ranks. `carried` (null on all ranks or on none) has one entry for each particle and goes
  // with it.
  void move(const Stream& stream, Particles& particles, VectorArray* carried) const;

  // To be called where the box of an isolated set has doubled about its middle.
  void double_box() {
    if (domains_) domains_->double_box();
  }

 private:
  Communicator ranks_;
  std::uint64_t most_particles_;
  std::optional<Domains> domains_;  // none before the first cut
  std::uint64_t updates_ = 0;
};

}  // namespace maki
