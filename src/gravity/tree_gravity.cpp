#include "src/gravity/tree_gravity.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "host/domain/group_costs.hpp"
#include "kernels/device/async_copy.hpp"
#include "kernels/device/device.hpp"

namespace maki {
namespace {

// The strict walk that probes are judged by.
constexpr double kStrictTheta = 0.4;
// What a cell costs beside a particle of a leaf, and a particle beside its interactions, in the balance of domains.
constexpr std::uint32_t kCellCost = 1, kParticleCost = 10;
// What imported trees allow particles to move before they are made anew: at first, in mean distances of the particles
// of the whole box; longer where it was too short, else slowly shorter; of r_cut, or of the side, at most.
constexpr double kFirstDrift = 0.1, kLongerDrift = 1.5, kShorterDrift = 0.97;
constexpr double kMostDriftOfCutoff = 0.5, kMostDrift = 0.05;
// Pieces in which the local lists are evaluated on the CPU while messages are on their way.
constexpr std::uint32_t kSlices = 16;

bool host_computes() { return std::string(backend_name()) == "cpu"; }

}  // namespace

TreeGravity::TreeGravity(const GravityOptions& options, PhaseTimers& timers, const Communicator& ranks)
    : options_(options),
      timers_(timers),
      ranks_(ranks),
      domains_(ranks),
      let_(ranks, LetOptions{.compress = options.let_compression}),
      judge_(options.reuse_tolerance) {}

void TreeGravity::set_theta(double theta) {
  if (theta == options_.theta) return;
  options_.theta = theta;
  rebuild_due_ = true;
}

void TreeGravity::set_law(const ForceLaw& law) {
  if (law.r_cut != options_.law.r_cut) rebuild_due_ = true;
  options_.law = law;
}

WalkOptions TreeGravity::walk_options(double theta) const {
  WalkOptions walk;
  walk.theta = static_cast<float>(theta);
  walk.r_cut = options_.law.r_cut;
  return walk;
}

TreeGravity::Sources TreeGravity::local(const Particles& particles) {
  return {tree_, lists_,
          {particles.source.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()}, false};
}

TreeGravity::Sources TreeGravity::imported(const Particles& particles) {
  Octree& forest = let_.forest();
  return {forest, imported_lists_,
          {let_.particles(), forest.moments.data(), forest.first.data(), forest.count.data(), particles.source.data()},
          true};
}

void TreeGravity::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  rebuild_due_ = rebuild_is_due();
  if (!rebuild_due_) return;
  if (ranks_.size() > 1) {
    const PhaseTimers::Scope scope(timers_, "domains");
    distribute(stream, particles, carried);
  }
  lists_.release();  // their place serves as scratch of the sort
  imported_lists_.release();
  const PhaseTimers::Scope scope(timers_, "sort", stream);
  sorter_.sort(stream, particles, carried);
}

// By what the particles' lists have cost since the last time; by number the first time and where a set has changed.
void TreeGravity::distribute(const Stream& stream, Particles& particles, VectorArray* carried) {
  double known = costs_known_ && statistics_.members == particles.size() ? 1 : 0;
  ranks_.min(std::span(&known, 1));
  if (drift_ == 0) {
    std::uint64_t all = particles.size();
    ranks_.sum(std::span(&all, 1));
    drift_ = kFirstDrift / std::cbrt(static_cast<double>(std::max<std::uint64_t>(all, 1)));
  }
  Costs costs;
  const double seconds = work_.take();
  if (known > 0 && !groups_.empty()) {
    costs_.resize(groups_.size(), 0.2);
    group_costs(stream, tree_.count.data(), lists_.view(groups_), kCellCost, costs_.data());
    if (has_imported())
      group_costs(stream, let_.forest().count.data(), imported_lists_.view(groups_), kCellCost, costs_.data(), true);
    costs = {costs_.data(), groups_.data(), groups_.size(), kParticleCost, options_.deterministic ? 0 : seconds};
  }
  balanced_ = known > 0;
  domains_.update(stream, particles, carried, costs);
}

void TreeGravity::evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  counts_ = {};
  statistics_ = {};
  batched_ = false;
  outgrown_ = 0;
  const bool fresh = rebuild_due_;
  if (fresh)
    rebuild_tree(stream, particles);
  else
    refit_tree(stream, particles);
  if (ranks_.size() > 1) exchange_trees(stream, particles, fresh);
  serve(stream, local(particles), fresh, out);
  if (ranks_.size() > 1) {
    finish_exchange(stream);
    if (has_imported()) serve(stream, imported(particles), fresh, out);
  }
  if (fresh && !batched_ && options_.fixed_reuse == 0) probes_.choose(stream, groups_, options_.group_size);
  StepSums sums = over_ranks(probe(stream, particles, out));
  if (sums.outgrown > 0) {
    renew_imports(stream, particles, out);
    sums = over_ranks(probe(stream, particles, out));
  }
  judge(sums, fresh);
  if (must_replace()) replace_lists(stream, particles, out);
  counts_.redone_groups = lists_.take_redone() + imported_lists_.take_redone();
  ++uses_since_rebuild_;
}

void TreeGravity::rebuild_tree(const Stream& stream, const Particles& particles) {
  const int min_level = options_.periodic ? kPeriodicMinLevel : 0;
  counts_.rebuilt = true;
  uses_since_rebuild_ = 0;
  rebuild_due_ = false;
  if (particles.size() == 0) {
    tree_.cells = 0;
    groups_.resize(0);
    sorter_.release_keys();
    return;
  }
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    build_octree(stream, sorter_.keys(), options_.leaf_size, min_level, tree_);
    sorter_.release_keys();
  }
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
  make_groups(stream, tree_, particles.source.data(), options_.group_size, min_level,
              static_cast<std::uint32_t>(particles.size()), groups_);
}

void TreeGravity::refit_tree(const Stream& stream, const Particles& particles) {
  if (groups_.empty()) return;
  const PhaseTimers::Scope scope(timers_, "sweep", stream);
  sweep_octree(stream, particles.source.data(), tree_);
  refit_groups(stream, particles.source.data(), groups_);
}

// Leaves the messages on their way.
void TreeGravity::exchange_trees(const Stream& stream, const Particles& particles, bool fresh) {
  const PhaseTimers::Scope scope(timers_, "export trees");
  if (fresh)
    let_.rebuild(stream, tree_, particles.source.data(), walk_options(options_.theta), static_cast<float>(drift_));
  else
    let_.update(stream, tree_, particles.source.data());
}

void TreeGravity::finish_exchange(const Stream& stream) {
  const PhaseTimers::Scope scope(timers_, "wait for trees");
  let_.finish(stream);
  imported_cells_ = let_.forest().cells;
}

// The local lists leave room for the imported ones as they last were; these get what is left.
std::size_t TreeGravity::budget_of(const Sources& sources) const {
  const std::size_t all = options_.list_budget;
  if (all == 0) return 0;
  const std::size_t taken = sources.imported ? lists_.bytes() : imported_lists_.bytes();
  return std::max(all > taken ? all - taken : 0, all / 8);
}

// New lists, or kept ones repaired, and their evaluation.
void TreeGravity::serve(const Stream& stream, const Sources& sources, bool fresh, const ForceOutput& out) {
  if (groups_.empty()) return;
  const WalkOptions walk = walk_options(options_.theta);
  work_.begin(stream);
  if (fresh) {
    const std::size_t budget = budget_of(sources);
    const std::uint32_t batch = sources.lists.batch_within(stream, sources.tree, walk, groups_, budget);
    if (batch < groups_.size()) {
      serve_in_batches(stream, sources, batch, out);
      work_.end(stream);
      return;
    }
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    sources.lists.make(stream, sources.tree, walk, groups_, budget);
  } else if (options_.fixed_reuse == 0) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    const std::uint64_t rewalked = sources.lists.repair(stream, sources.tree, walk, groups_);
    // Most groups that are walked again over the one tree are so over the other.
    counts_.rewalked_groups = std::max(counts_.rewalked_groups, rewalked);
  }
  if (!fresh && sources.imported) {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    outgrown_ = sources.lists.outgrown(stream, sources.tree, walk, groups_);
  }
  evaluate_kept(stream, sources, out);
  work_.end(stream);
  count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
}

// Lists that do not fit the budget are made and used a batch at a time, and not kept.
void TreeGravity::serve_in_batches(const Stream& stream, const Sources& sources, std::uint32_t batch,
                                   const ForceOutput& out) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  ListStatistics total;
  for (std::uint32_t begin = 0; begin < all; begin += batch) {
    ListView view{};
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      view = sources.lists.make_batch(stream, sources.tree, walk_options(options_.theta), groups_, begin,
                                      std::min(batch, all - begin));
    }
    {
      const PhaseTimers::Scope scope(timers_, "evaluate", stream);
      evaluate_lists(stream, options_.law, options_.quadrupoles, sources.view, view,
                     {out.acceleration, out.potential, sources.imported});
    }
    total.add(list_statistics(stream, sources.tree, view));
    if (!sources.imported) move_messages(stream);
  }
  sources.lists.release();
  count(total);
  batched_ = true;
}

void TreeGravity::evaluate_kept(const Stream& stream, const Sources& sources, const ForceOutput& out) {
  const PhaseTimers::Scope scope(timers_, "evaluate", stream);
  const auto all = static_cast<std::uint32_t>(groups_.size());
  const bool waiting = ranks_.size() > 1 && !sources.imported;
  const std::uint32_t slices = waiting && host_computes() ? std::min(kSlices, all) : 1;
  for (std::uint32_t slice = 0; slice < slices; ++slice) {
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{all} * slice / slices);
    const auto end = static_cast<std::uint32_t>(std::uint64_t{all} * (slice + 1) / slices);
    evaluate_lists(stream, options_.law, options_.quadrupoles, sources.view,
                   sources.lists.view(groups_, begin, end - begin),
                   {out.acceleration, out.potential, sources.imported});
    if (waiting) move_messages(stream);
  }
}

// While what is queued on `stream` is evaluated: staged messages move in calls only, and the host would only wait for
// the GPU. On the CPU it is done when we come here.
void TreeGravity::move_messages(const Stream& stream) {
  if (let_.progress() || host_computes()) return;
  StreamMark evaluated;
  evaluated.set(stream);
  while (!let_.progress() && !evaluated.reached()) std::this_thread::yield();
}

void TreeGravity::count(const ListStatistics& s) {
  const std::uint64_t members = statistics_.members > 0 ? statistics_.members : s.members;  // of either tree the same
  statistics_.add(s);
  statistics_.members = members;
}

// What the probes' forces are off by; nothing where they are not asked for.
SampleError TreeGravity::probe(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  if (options_.fixed_reuse != 0 || batched_ || groups_.empty() || probes_.empty()) return {};
  const PhaseTimers::Scope scope(timers_, "probe", stream);
  const WalkOptions strict = walk_options(kStrictTheta * options_.theta);
  probes_.gather(stream, groups_, particles.source.data());
  const auto add = [&](const Sources& sources) {
    probes_.evaluate_strict(stream, sources.tree, strict, options_.law, options_.quadrupoles, sources.view,
                            sources.imported);
  };
  add(local(particles));
  if (has_imported()) add(imported(particles));
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
  counts_.cells = tree_.cells;
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

// The same sums, and so the same decisions, on all ranks.
void TreeGravity::judge(const StepSums& sums, bool fresh) {
  costs_known_ = sums.batched == 0;
  if (sums.batched > 0) rebuild_due_ = true;
  if (fresh) {
    judge_.begin(sums, balanced_);
    drift_ *= kShorterDrift;
  } else if (options_.fixed_reuse == 0 && judge_.wants_rebuild(sums)) {
    rebuild_due_ = true;
  }
  report(sums);
}

// Some rank's particles have come near to what another rank has sent undivided: all import anew from the trees as they
// are, with more room, and the step is evaluated again.
void TreeGravity::renew_imports(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const double most = options_.law.r_cut > 0 ? kMostDriftOfCutoff * options_.law.r_cut : kMostDrift;
  if (drift_ >= most) rebuild_due_ = true;  // more room is not to be had: new domains and trees
  drift_ = std::min(most, kLongerDrift * drift_);
  statistics_ = {};
  outgrown_ = 0;
  exchange_trees(stream, particles, true);
  const auto again = [&](const Sources& sources) {
    evaluate_kept(stream, sources, out);
    count(list_statistics(stream, sources.tree, sources.lists.view(groups_)));
  };
  if (!groups_.empty()) again(local(particles));
  finish_exchange(stream);
  if (groups_.empty() || !has_imported()) return;
  const Sources sources = imported(particles);
  {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    sources.lists.make(stream, sources.tree, walk_options(options_.theta), groups_, budget_of(sources));
  }
  again(sources);
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
  counts_.rewalked_groups = groups_.size();
  SampleError error;
  if (!groups_.empty() && !probes_.empty())
    error = probes_.compare(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z});
  report(over_ranks(error));
}

}  // namespace maki
