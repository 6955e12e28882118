// Judges whether kept lists and imported trees are still accurate enough, and acts on the verdict.
#include <algorithm>
#include <utility>

#include "host/domain/sampling.hpp"
#include "src/gravity/tree_gravity.hpp"

namespace maki {

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
  for (const TreeImports* const imports : imports_) imports->report(counts_);
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
  report(over_ranks(error), particles);
}

}  // namespace maki
