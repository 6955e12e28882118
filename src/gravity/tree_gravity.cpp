#include "src/gravity/tree_gravity.hpp"

#include <utility>

#include "host/domain/sampling.hpp"

namespace maki {
namespace {

// Largest rms distance that particles move while lists are kept, in r_cut. Some move several times as far, but the
// short-range force falls steeply towards r_cut.
constexpr double kMostDrift = 0.05;

GravityOptions with_ghosts(GravityOptions options) {
  if (options.ghost_level == 0) return options;
  if (options.fixed_reuse == 0) options.fixed_reuse = kGhostReuse;
  options.let_compression = false;  // ghosts are where they are
  return options;
}

}  // namespace

TreeGravity::TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
                         SiteAgreement& agreement)
    : options_(with_ghosts(options)), timers_(timers), ranks_(ranks), domains_(ranks), own_(options_, timers),
      rank_trees_(options_, timers, ranks), sites_(agreement, options_, timers), forces_(options_, timers, imports_),
      source_trees_(make_source_trees(options_, timers, own_, imports_, forces_)) {
  if (ranks.size() > 1) imports_.push_back(&rank_trees_);
  if (!agreement.sites().alone()) imports_.push_back(&sites_);
}

void TreeGravity::agree_with_sites() {
  if (sites_.rebuild_is_wanted()) rebuild_due_ = true;
  sites_.agreement().decided(std::uint64_t{rebuild_is_due()});
}

// A tree built before accelerations were known is rebuilt.
void TreeGravity::rms_acceleration_is(double rms) {
  if (options_.open_by_error && uses_since_rebuild_ > 0 && rms > 0 && !forces_.opens_by_error()) rebuild_due_ = true;
  rms_acceleration_ = rms;
}

// Distances of successive steps are added, as particles move straight at first.
void TreeGravity::drifted(double rms_sides) {
  drifted_sides_ += static_cast<float>(rms_sides);  // sites may round the last bits of their factors differently
  if (options_.fixed_reuse == 0 && drifted_sides_ > kMostDrift * options_.law.r_cut && options_.law.r_cut > 0)
    rebuild_due_ = true;
}

void TreeGravity::set_theta(double theta) {
  if (theta == options_.theta) return;
  options_.theta = theta;
  rebuild_due_ = true;
}

void TreeGravity::set_law(const ForceLaw& law) {
  if (law.r_cut != options_.law.r_cut) rebuild_due_ = true;
  options_.law = law;
}

void TreeGravity::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  rebuild_due_ = rebuild_is_due();
  if (!rebuild_due_) return;
  forces_.open_by_error(options_.open_by_error && carried ? rms_acceleration_ : 0);
  distribute(stream, particles, carried);
  forces_.release_lists();  // the sort uses their memory as scratch
  own_.sort(stream, particles, carried);
}

void TreeGravity::evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const bool fresh = std::exchange(rebuild_due_, false);
  if (fresh) uses_since_rebuild_ = 0, drifted_sides_ = 0;
  counts_ = {};
  counts_.theta = options_.theta;
  counts_.rebuilt = fresh;
  again_ = asks_rebuild_ = false;
  forces_.begin();
  source_trees_->evaluate(stream, particles, fresh, out);
  if (fresh && options_.fixed_reuse == 0) {
    if (forces_.batched())
      probes_.clear();
    else
      probes_.choose(stream, forces_.groups(), options_.group_size);
  }
  StepSums sums = over_ranks(settle(stream, particles, out));
  forces_.take_seconds();
  if (sums.outgrown > 0) {
    renew_imports(stream, particles, out);
    sums = over_ranks(settle(stream, particles, out));
  }
  judge(sums, fresh);
  report(sums, particles);
  if (must_replace()) replace_lists(stream, particles, out);
  tell_sites(stream, particles, sums);
  ++uses_since_rebuild_;
}

namespace {

// Costs for the balance of domains: of a cell, relative to a particle of a leaf, and of a particle beside its
// interactions.
constexpr std::uint32_t kCellCost = 1, kParticleCost = 10;

}  // namespace

// Divides particles by the cost of their lists since the last call, by number the first time and where a set has
// changed. Particles go first to their sites, then to the ranks there.
void TreeGravity::distribute(const Stream& stream, Particles& particles, VectorArray* carried) {
  const PhaseTimers::Scope scope(timers_, "domains");
  const double known =
      smallest_of(ranks_, costs_known_ && forces_.statistics().members == particles.size() ? 1.0 : 0.0);
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
