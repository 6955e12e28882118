// How good kept lists and imported trees still are, and what follows from it.
#include <algorithm>

#include "host/domain/sampling.hpp"
#include "src/gravity/tree_gravity.hpp"

namespace maki {
namespace {

// The strict walk that probes are judged by.
constexpr double kStrictTheta = 0.4;

}  // namespace

// What the probes' forces are off by; nothing where they are not asked for.
SampleError TreeGravity::probe(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  if (options_.fixed_reuse != 0 || batched_ || groups_.empty() || probes_.empty()) return {};
  const PhaseTimers::Scope scope(timers_, "probe", stream);
  const WalkOptions strict = walk_options(kStrictTheta * options_.theta);
  probes_.gather(stream, groups_, particles.source.data());
  const auto add = [&](const Sources& sources) {
    probes_.evaluate_strict(stream, sources.tree, strict, options_.law, options_.quadrupoles, sources.view,
                            sources.imported());
  };
  add(local(particles));
  if (has_imported()) add(imported(particles));
  if (has_sites()) add(from_sites(particles));
  return probes_.compare(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z});
}

StepSums TreeGravity::over_ranks(const SampleError& error) const {
  StepSums mine;
  mine.interactions = static_cast<double>(statistics_.particle_pairs + statistics_.cell_pairs);
  mine.members = static_cast<double>(statistics_.members);
  mine.groups = static_cast<double>(groups_.size());
  mine.rewalked = static_cast<double>(counts_.rewalked_groups);
  mine.difference = error.difference;
  mine.reference = error.reference;
  mine.batched = batched_ ? 1 : 0;
  mine.outgrown = outgrown_;
  if (ranks_.size() == 1) return StepSums::over_ranks(ranks_, mine);
  const PhaseTimers::Scope scope(timers_, "agree");
  return StepSums::over_ranks(ranks_, mine);
}

void TreeGravity::report(const StepSums& sums) {
  counts_.groups = groups_.size();
  counts_.cells = ghosts_ ? ghosts_->tree().cells : tree_.cells;
  counts_.interactions = statistics_.particle_pairs + statistics_.cell_pairs;
  counts_.longest_list = statistics_.longest;
  counts_.mean_list = sums.mean_list();
  counts_.mean_fill = sums.particles() / (std::max(1.0, sums.groups) * options_.group_size);
  counts_.probe_error = sums.probe_error();
  counts_.fresh_error = judge_.fresh_error();
  counts_.domain_imbalance = sums.imbalance();
  if (ranks_.size() == 1) return;
  const LetCounts& let = let_.counts();
  counts_.let_cells = let.cells_received;
  counts_.let_particles = let.particles_received;
  counts_.let_bytes = let.bytes_sent;
  counts_.let_messages = let.messages_sent;
  counts_.let_exchange_seconds = let.exchange_seconds;
  counts_.let_waited_seconds = let.waited_seconds;
}

// At one site at once, else of all sites.
void TreeGravity::ask_for_rebuild() {
  asks_rebuild_ = true;
  if (!sites_) rebuild_due_ = true;
}

// Sums of this site, and after a rebuild a sample of where its work is.
void TreeGravity::tell_sites(const Stream& stream, const Particles& particles, const StepSums& sums) {
  std::vector<std::uint32_t> x;
  if (counts_.rebuilt) {
    const PhaseTimers::Scope scope(timers_, "export to sites");
    const Costs costs = costs_known_ ? costs_of_particles(stream, 0) : Costs{};
    const Samples samples = gather_samples(stream, ranks_, particles, costs, sites_->steps().number());
    for (const SamplePoint& point : samples.points) x.push_back(point[0]);
  }
  const auto pairs = static_cast<double>(statistics_.particle_pairs + statistics_.cell_pairs);
  sites_->tell(ranks_, sums, pairs, force_seconds_, outgrown_sites_, asks_rebuild_, std::move(x));
}

// The same sums, and so the same decisions, on all ranks.
void TreeGravity::judge(const StepSums& sums, bool fresh) {
  costs_known_ = sums.batched == 0;
  if (sums.batched > 0) ask_for_rebuild();
  if (fresh) {
    judge_.begin(sums, balanced_);
    drift_.shorten();
  } else if (options_.fixed_reuse == 0 && judge_.wants_rebuild(sums) && !sites_) {
    rebuild_due_ = true;  // over several sites they all decide, from all sites' sums
  }
  report(sums);
}

// Some rank's particles have come near to what another rank has sent undivided: all import anew from the trees as they
// are, with more room, and the step is evaluated again.
void TreeGravity::renew_imports(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  if (!drift_.lengthen(options_.law.r_cut)) ask_for_rebuild();  // more room is not to be had: new domains and trees
  statistics_ = {};
  outgrown_ = 0;
  exchange_trees(stream, particles, true);
  const auto again = [&](const Sources& sources) {
    evaluate_kept(stream, sources, out);
    count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
  };
  if (!groups_.empty()) again(local(particles));
  finish_exchange(stream);
  if (groups_.empty()) return;
  if (has_imported()) {
    const Sources sources = imported(particles);
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      sources.lists.make(stream, sources.tree, walk_options(options_.theta), groups_, budget_of(sources));
    }
    again(sources);
  }
  if (has_sites()) again(from_sites(particles));
  counts_.rewalked_groups = groups_.size();  // which also stands for the second evaluation
}

bool TreeGravity::must_replace() const {
  return !counts_.rebuilt && options_.fixed_reuse == 0 && judge_.is_too_wrong(counts_.probe_error);
}

// An error that nothing announced (once in some hundred steps): all lists are walked anew on the trees as they are,
// which needs nothing of other ranks, and the step is evaluated again. The rebuild follows in the next one.
void TreeGravity::replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  statistics_ = {};
  const auto replace = [&](const Sources& sources) {
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      sources.lists.make(stream, sources.tree, walk_options(options_.theta), groups_, budget_of(sources));
    }
    evaluate_kept(stream, sources, out);
    count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
  };
  if (!groups_.empty()) replace(local(particles));
  if (!groups_.empty() && has_imported()) replace(imported(particles));
  if (!groups_.empty() && has_sites()) replace(from_sites(particles));
  counts_.rewalked_groups = groups_.size();
  SampleError error;
  if (!groups_.empty() && !probes_.empty())
    error = probes_.compare(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z});
  report(over_ranks(error));
}

}  // namespace maki
