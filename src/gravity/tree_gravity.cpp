#include "src/gravity/tree_gravity.hpp"

#include <algorithm>
#include <initializer_list>
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
  options.let_compression = false;  // ghosts need their exact positions
  return options;
}

}  // namespace

TreeGravity::TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks,
                         SiteAgreement& agreement)
    : options_(with_ghosts(options)), timers_(timers), ranks_(ranks), domains_(ranks, options.most_particles),
      own_(options_, timers), rank_trees_(options_, timers, ranks), sites_(agreement, options_, timers),
      forces_(options_, timers, imports_), source_trees_(make_source_trees(options_, timers, own_, imports_, forces_)) {
  for (TreeImports* const part : std::initializer_list<TreeImports*>{&rank_trees_, &sites_})
    if (part->others() > 0) imports_.push_back(part);
}

void TreeGravity::agree_with_sites() {
  if (sites_.rebuild_is_wanted()) rebuild_due_ = true;
  sites_.agreement().decided(std::uint64_t{rebuild_is_due()});
}

// A tree built before accelerations were known is rebuilt.
void TreeGravity::reference_acceleration_is(double acceleration) {
  if (options_.open_by_error && uses_since_rebuild_ > 0 && acceleration > 0 && !forces_.opens_by_error())
    rebuild_due_ = true;
  reference_acceleration_ = acceleration;
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
  sites_.set_theta(theta);
  rebuild_due_ = true;
}

void TreeGravity::set_law(const ForceLaw& law) {
  if (law.r_cut != options_.law.r_cut) rebuild_due_ = true;
  options_.law = law;
}

void TreeGravity::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  rebuild_due_ = rebuild_is_due();
  if (!rebuild_due_) return;
  forces_.open_by_error(options_.open_by_error && carried ? reference_acceleration_ : 0);
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

// ---- domains --------------------------------------------------------------------------------------------------------

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

// ---- probes, and whether kept lists and imported trees are still accurate enough ------------------------------------

bool TreeGravity::has_probes() const {
  return options_.fixed_reuse == 0 && !forces_.batched() && !forces_.groups().empty() && !probes_.empty();
}

// The error of the forces on the probes.
Result<SampleError> TreeGravity::probe(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "probe", stream);
  const ListProbes::Walks walks{forces_.walk(), forces_.walk(kStrictTheta * options_.theta)};
  probes_.gather(stream, forces_.groups(), particles.source.data());
  for (const Sources& sources : source_trees_->all(particles))
    probes_.evaluate(stream, sources, walks, options_.law, options_.quadrupoles, forces_.results());
  const auto error = forces_.results().make<SampleError>(stream);
  probes_.compare(stream, forces_.groups(), {out.acceleration.x, out.acceleration.y, out.acceleration.z}, error.place);
  return error;
}

// The host gets all results of an evaluation with one wait: whether lists had enough memory, their lengths, and the
// error of the probes (zeros without probes). Where memory was short, which is rare, the lists are complete afterwards
// and their forces are evaluated again.
SampleError TreeGravity::settle(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  Results& results = forces_.results();
  for (;;) {
    Result<SampleError> error;
    if (has_probes()) error = probe(stream, particles, out);
    if (!error.place && !forces_.has_counted()) return {};
    results.fetch(stream);
    bool good = true;
    if (!forces_.groups().empty())
      for (const Sources& sources : source_trees_->all(particles))
        good = sources.lists.finish_repair(stream, sources.tree, forces_.walk(), results) &&
               sources.lists.finish_reopened(stream, sources.tree, forces_.walk(), forces_.groups(), results) && good;
    const bool probed = !error.place || probes_.finish(stream, results);
    forces_.take_counted(good);
    if (good) {
      if (probed) return error.place ? results[error] : SampleError{};
      continue;
    }
    source_trees_->evaluate_again(stream, particles, out);
  }
}

StepSums TreeGravity::over_ranks(const SampleError& error) const {
  StepSums mine;
  mine.interactions = static_cast<double>(forces_.interactions());
  mine.members = static_cast<double>(forces_.statistics().members);
  mine.groups = static_cast<double>(forces_.groups().size());
  mine.rewalked = static_cast<double>(again_ ? forces_.groups().size() : forces_.rewalked());
  mine.difference = error.difference;
  mine.fresh_difference = error.packed_difference;
  mine.reference = error.reference;
  mine.batched = forces_.batched() ? 1 : 0;
  mine.outgrown = rank_trees_.outgrown;
  const PhaseTimers::Scope scope(timers_, "agree");
  return StepSums::over_ranks(ranks_, mine);
}

void TreeGravity::report(const StepSums& sums, const Particles& particles) {
  counts_.groups = forces_.groups().size();
  counts_.cells = source_trees_->all(particles).front().tree.cells;
  counts_.interactions = forces_.interactions();
  counts_.longest_list = forces_.statistics().longest;
  counts_.rewalked_groups = again_ ? counts_.groups : forces_.rewalked();
  counts_.redone_groups += forces_.take_redone();
  counts_.mean_list = sums.mean_list();
  counts_.mean_fill = sums.particles() / (std::max(1.0, sums.groups) * options_.group_size);
  counts_.probe_error = sums.probe_error();
  counts_.fresh_error = sums.fresh_error();
  counts_.domain_imbalance = sums.imbalance();
  rank_trees_.report(counts_);
}

// Tells other sites the sums of this one, and after a rebuild sampled positions of its work.
void TreeGravity::tell_sites(const Stream& stream, const Particles& particles, const StepSums& sums) {
  std::vector<std::uint32_t> x;
  if (counts_.rebuilt && sites_.shares_work()) {
    const PhaseTimers::Scope scope(timers_, "export to sites");
    const Costs costs = costs_known_ ? costs_of_particles(stream, particles, 0) : Costs{};
    const Samples samples = gather_samples(stream, ranks_, particles, costs, sites_.agreement().number());
    for (const SamplePoint& point : samples.points) x.push_back(point[0]);
  }
  sites_.tell({sums, static_cast<double>(forces_.interactions()), forces_.seconds(), asks_rebuild_, balanced_},
              std::move(x));
}

// All ranks have the same sums, and so make the same decisions.
void TreeGravity::judge(const StepSums& sums, bool fresh) {
  costs_known_ = sums.batched == 0;
  if (sums.batched > 0) asks_rebuild_ = true;
  if (!fresh) return;
  rank_trees_.drift().shorten();
}

// Particles of some rank have come near to an undivided cell of another rank: all ranks import again from the present
// trees, with a longer drift, and the step is evaluated again.
void TreeGravity::renew_imports(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  if (!rank_trees_.drift().lengthen(options_.law.r_cut)) asks_rebuild_ = true;  // the drift is at its limit
  forces_.count_again();
  rank_trees_.outgrown = 0;
  again_ = true;
  rank_trees_.send(stream, own_.octree(), particles.source.data(), forces_.walk(), true);
  const auto by_kept_lists = [&](const Sources& sources) {
    if (forces_.batched()) return forces_.evaluate_anew(stream, sources, out);  // this rank has none
    forces_.evaluate_kept(stream, sources, out);
    forces_.count_now(stream, sources);
  };
  const bool any = !forces_.groups().empty();
  if (any) by_kept_lists(source_trees_->all(particles).front());
  rank_trees_.take(stream);
  if (!any) return;
  for (const Sources& sources : source_trees_->all(particles)) {
    if (sources.imports == &rank_trees_)
      forces_.evaluate_anew(stream, sources, out);
    else if (sources.imported())
      by_kept_lists(sources);
  }
}

bool TreeGravity::must_replace() const {
  return !counts_.rebuilt && options_.fixed_reuse == 0 &&
         counts_.probe_error > options_.reuse_tolerance * reference_error(counts_.fresh_error, options_.theta);
}

// The error rose unexpectedly (once in some hundred steps): all lists are walked anew on the present trees, which needs
// no messages, and the step is evaluated again. The rebuild follows in the next step.
void TreeGravity::replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  forces_.count_again();
  again_ = true;
  SampleError error;
  if (!forces_.groups().empty()) {
    for (const Sources& sources : source_trees_->all(particles)) forces_.evaluate_anew(stream, sources, out);
    if (!probes_.empty()) {
      Results& results = forces_.results();
      const auto found = results.make<SampleError>(stream);
      probes_.compare(stream, forces_.groups(), {out.acceleration.x, out.acceleration.y, out.acceleration.z},
                      found.place);
      results.fetch(stream);
      error = results[found];
    }
  }
  const StepSums sums = over_ranks(error);
  judge(sums, false);
  report(sums, particles);
}

}  // namespace maki
