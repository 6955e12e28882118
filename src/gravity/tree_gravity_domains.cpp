// Particles to their sites and ranks, before a rebuild.
#include <span>

#include "host/domain/group_costs.hpp"
#include "src/gravity/tree_gravity.hpp"

namespace maki {
namespace {

// What a cell costs beside a particle of a leaf, and a particle beside its interactions, in the balance of domains.
constexpr std::uint32_t kCellCost = 1, kParticleCost = 10;

}  // namespace

// By what the particles' lists have cost since the last time; by number the first time and where a set has changed.
// Particles go to their sites first, and then to the ranks there.
void TreeGravity::distribute(const Stream& stream, Particles& particles, VectorArray* carried) {
  double known = costs_known_ && statistics_.members == particles.size() ? 1 : 0;
  ranks_.min(std::span(&known, 1));
  if (!drift_.known()) {
    std::uint64_t all = particles.size();
    ranks_.sum(std::span(&all, 1));
    drift_.begin(all);
  }
  const double seconds = work_.take();
  balanced_ = known > 0;
  if (ranks_.size() > 1) domains_.cut(stream, particles, known > 0 ? costs_of_particles(stream, seconds) : Costs{});
  if (sites_) {
    sites_->cut_slabs();
    sites_->migrate(stream, particles, carried);
  }
  if (ranks_.size() > 1) domains_.move(stream, particles, carried);
}

// By group, in the particles' present order.
Costs TreeGravity::costs_of_particles(const Stream& stream, double seconds) {
  if (groups_.empty()) return {};
  costs_.resize(groups_.size(), 0.2);
  const Octree& tree = ghosts_ ? ghosts_->tree() : tree_;
  group_costs(stream, tree.count.data(), lists_.view(groups_), kCellCost, costs_.data());
  if (has_imported())
    group_costs(stream, let_.forest().count.data(), imported_lists_.view(groups_), kCellCost, costs_.data(), true);
  if (has_sites())
    group_costs(stream, sites_->trees().forest().count.data(), sites_->lists().view(groups_), kCellCost, costs_.data(),
                true);
  const Group* groups = ghosts_ ? ghosts_->own_groups().data() : groups_.data();
  return {costs_.data(), groups, groups_.size(), kParticleCost, options_.deterministic ? 0 : seconds};
}

}  // namespace maki
