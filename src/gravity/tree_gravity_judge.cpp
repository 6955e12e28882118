// How good kept lists and imported trees still are, and what follows from it.
#include <algorithm>
#include <utility>

#include "host/domain/sampling.hpp"
#include "src/gravity/tree_gravity.hpp"

namespace maki {
namespace {

// The strict walk that probes are judged by.
constexpr double kStrictTheta = 0.4;

}  // namespace

std::vector<TreeGravity::Sources> TreeGravity::all_sources(const Particles& particles) {
  std::vector<Sources> all{local(particles)};
  if (has_imported()) all.push_back(imported(particles));
  if (has_sites()) all.push_back(from_sites(particles));
  return all;
}

bool TreeGravity::has_probes() const {
  return options_.fixed_reuse == 0 && !batched_ && !groups_.empty() && !probes_.empty();
}

// What the probes' forces are off by.
Result<SampleError> TreeGravity::probe(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "probe", stream);
  const WalkOptions strict = walk_options(kStrictTheta * options_.theta);
  probes_.gather(stream, groups_, particles.source.data());
  for (const Sources& sources : all_sources(particles))
    probes_.evaluate_strict(stream, sources.tree, strict, options_.law, options_.quadrupoles, sources.view,
                            sources.imported(), results_);
  const auto error = results_.make<SampleError>(stream);
  probes_.compare(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z}, error.place);
  return error;
}

// All that the host wants to know of an evaluation comes with one wait: whether lists had room, what they hold, and
// what the probes are off by (nothing where they are not asked for). Where room was short, which is rare, lists are
// there after it, and what was made of them is made again.
SampleError TreeGravity::settle(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  for (;;) {
    Result<SampleError> error;
    if (has_probes()) error = probe(stream, particles, out);
    if (!error.place && counted_.empty()) return {};
    results_.fetch(stream);
    bool good = true;
    if (!groups_.empty())
      for (const Sources& sources : all_sources(particles))
        good = sources.lists.finish_repair(stream, sources.tree, walk_options(options_.theta), results_) && good;
    const bool probed = !error.place || probes_.finish(stream, walk_options(kStrictTheta * options_.theta), results_);
    const auto counted = std::exchange(counted_, {});
    if (good) {
      for (const auto& statistics : counted) count(results_[statistics]);
      if (probed) return error.place ? results_[error] : SampleError{};
      continue;
    }
    for (const Sources& sources : all_sources(particles)) {
      evaluate_kept(stream, sources, out);
      count_later(stream, sources);
    }
  }
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
    count_now(stream, sources);
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
    count_now(stream, sources);
  };
  if (!groups_.empty()) replace(local(particles));
  if (!groups_.empty() && has_imported()) replace(imported(particles));
  if (!groups_.empty() && has_sites()) replace(from_sites(particles));
  counts_.rewalked_groups = groups_.size();
  SampleError error;
  if (!groups_.empty() && !probes_.empty()) {
    const auto found = results_.make<SampleError>(stream);
    probes_.compare(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z}, found.place);
    results_.fetch(stream);
    error = results_[found];
  }
  report(over_ranks(error));
}

}  // namespace maki
