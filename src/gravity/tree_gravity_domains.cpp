// Particles to their sites and ranks, before a rebuild.
#include <span>

#include "host/domain/sampling.hpp"
#include "src/gravity/tree_gravity.hpp"

namespace maki {
namespace {

// What a cell costs beside a particle of a leaf, and a particle beside its interactions, in the balance of domains.
constexpr std::uint32_t kCellCost = 1, kParticleCost = 10;

}  // namespace

// By what the particles' lists have cost since the last time; by number the first time and where a set has changed.
// Particles go to their sites first, and then to the ranks there.
void TreeGravity::distribute(const Stream& stream, Particles& particles, VectorArray* carried) {
  const PhaseTimers::Scope scope(timers_, "domains");
  double known = costs_known_ && forces_.statistics().members == particles.size() ? 1 : 0;
  ranks_.min(std::span(&known, 1));
  rank_trees_.know_drift(particles.size());
  const double seconds = forces_.take_work();
  balanced_ = known > 0;
  domains_.cut(stream, particles, [&] { return balanced_ ? costs_of_particles(stream, particles, seconds) : Costs{}; });
  sites_.cut_slabs();
  sites_.migrate(stream, particles, carried);
  domains_.move(stream, particles, carried);
}

// Costs from the lists of each group, in the particles' present order.
Costs TreeGravity::costs_of_particles(const Stream& stream, const Particles& particles, double seconds) {
  const DeviceBuffer<Group>& groups = forces_.groups();
  if (groups.empty()) return {};
  costs_.resize(groups.size(), 0.2);
  for (const Sources& sources : source_trees_->all(particles))
    group_costs(stream, sources.tree.count.data(), sources.lists.view(groups), kCellCost, costs_.data(),
                sources.imported());
  return {costs_.data(), source_trees_->own_groups().data(), groups.size(), kParticleCost,
          options_.deterministic ? 0 : seconds};
}

}  // namespace maki
