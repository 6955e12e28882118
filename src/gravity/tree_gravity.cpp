#include "src/gravity/tree_gravity.hpp"

#include <algorithm>

namespace maki {
namespace {

// A kept list is repaired when one of its cells has come nearer than this fraction of the opening distance.
constexpr float kStaleMargin = 0.1f;
// The strict walk that probes are judged by.
constexpr double kStrictTheta = 0.4;
// The part of the tolerance that is used: the next step's error is a guess.
constexpr double kToleranceUse = 0.7;
// What a rebuild and a repair cost, in interactions a particle: kept lists that have cost more than a rebuild go.
constexpr double kRebuildCost = 350;
constexpr double kRewalkCost = 200;
// Room for lists over what they take when they are made: lists that are walked again leave gaps behind.
constexpr double kListRoom = 1.6;
// Lists that are walked again are longer than the mean, being those in dense regions: by so much at first, and then by
// what the last of them were, and a little.
constexpr double kLongerLists = 3, kLittleMore = 1.3;

}  // namespace

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

SourceView TreeGravity::sources(const Particles& particles) const {
  return {particles.source.data(), tree_.moments.data(), tree_.first.data(), tree_.count.data()};
}

ListView TreeGravity::all_lists() const {
  return {groups_.data(), lists_.ranges.data(), lists_.words.data(), nullptr,
          static_cast<std::uint32_t>(groups_.size())};
}

void TreeGravity::prepare(const Stream& stream, Particles& particles, VectorArray* carried) {
  rebuild_due_ = rebuild_is_due();
  if (!rebuild_due_) return;
  lists_.words.release();  // their place serves as scratch of the sort
  const PhaseTimers::Scope scope(timers_, "sort", stream);
  sorter_.sort(stream, particles, carried);
}

void TreeGravity::evaluate(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  counts_ = {};
  lists_.redone = 0;
  if (rebuild_due_) {
    rebuild_tree(stream, particles);
    evaluate_fresh(stream, particles, out);
  } else {
    evaluate_kept(stream, particles, out);
  }
  counts_.redone_groups = lists_.redone;
  ++uses_since_rebuild_;
}

void TreeGravity::rebuild_tree(const Stream& stream, const Particles& particles) {
  const int min_level = options_.periodic ? kPeriodicMinLevel : 0;
  {
    const PhaseTimers::Scope scope(timers_, "build", stream);
    build_octree(stream, sorter_.keys(), options_.leaf_size, min_level, tree_);
    sorter_.release_keys();
  }
  {
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    sweep_octree(stream, particles.source.data(), tree_);
    make_groups(stream, tree_, particles.source.data(), options_.group_size, min_level,
                static_cast<std::uint32_t>(particles.size()), groups_);
  }
  counts_.rebuilt = true;
  uses_since_rebuild_ = 0;
  excess_ = previous_error_ = 0;
  rebuild_due_ = false;
}

// How many groups' lists fit the budget, judged by a sample walked for the purpose; all of them without a budget.
std::uint32_t TreeGravity::batch_within_budget(const Stream& stream) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  if (options_.list_budget == 0) return all;
  const std::uint32_t sample = std::min<std::uint32_t>(all, 256), begin = (all - sample) / 2;
  walk_tree(stream, tree_, walk_options(options_.theta), {groups_.data(), all, nullptr, begin, sample, false}, lists_);
  const double bytes_a_group = 1.25 * static_cast<double>(lists_.used) * sizeof(std::uint32_t) / sample + 1;
  const double batch = static_cast<double>(options_.list_budget) / bytes_a_group;
  return batch >= all ? all : std::max<std::uint32_t>(32, static_cast<std::uint32_t>(batch));
}

void TreeGravity::evaluate_fresh(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  const std::uint32_t batch = batch_within_budget(stream);
  if (batch < all) return evaluate_in_batches(stream, particles, out, batch);
  const auto room = static_cast<std::size_t>(kListRoom * static_cast<double>(fresh_words_));
  const std::size_t most = options_.list_budget / sizeof(std::uint32_t);
  lists_.words.resize(most > 0 ? std::min(room, most) : room);
  {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    walk_tree(stream, tree_, walk_options(options_.theta), {groups_.data(), all, nullptr, 0, all, false}, lists_);
  }
  fresh_words_ = std::max<std::uint64_t>(lists_.used, 1);
  longer_ = kLongerLists;
  count(list_statistics(stream, tree_, all_lists()));
  fresh_pairs_ = static_cast<double>(counts_.interactions);
  if (options_.fixed_reuse == 0) probes_.choose(stream, groups_, options_.group_size);
  evaluate_probed(stream, particles, out);
  counts_.fresh_error = fresh_error_ = previous_error_ = counts_.probe_error;
}

// Lists that do not fit the budget are made and used a batch at a time, and not kept.
void TreeGravity::evaluate_in_batches(const Stream& stream, const Particles& particles, const ForceOutput& out,
                                      std::uint32_t batch) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  ListStatistics total;
  for (std::uint32_t begin = 0; begin < all; begin += batch) {
    const std::uint32_t n = std::min(batch, all - begin);
    {
      const PhaseTimers::Scope scope(timers_, "walk", stream);
      walk_tree(stream, tree_, walk_options(options_.theta), {groups_.data(), all, nullptr, begin, n, false}, lists_);
    }
    const PhaseTimers::Scope scope(timers_, "evaluate", stream);
    const ListView view{groups_.data() + begin, lists_.ranges.data() + begin, lists_.words.data(), nullptr, n};
    evaluate_lists(stream, options_.law, options_.quadrupoles, sources(particles), view, out);
    const ListStatistics s = list_statistics(stream, tree_, view);
    total.particle_pairs += s.particle_pairs;
    total.cell_pairs += s.cell_pairs;
    total.words += s.words;
    total.longest = std::max(total.longest, s.longest);
    total.members += s.members;
  }
  count(total);
  rebuild_due_ = true;
}

std::uint32_t TreeGravity::repair_lists(const Stream& stream, const Particles& particles) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  {
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    sweep_octree(stream, particles.source.data(), tree_);
    refit_groups(stream, particles.source.data(), groups_);
  }
  const PhaseTimers::Scope scope(timers_, "walk", stream);
  const WalkOptions walk = walk_options(options_.theta);
  DeviceBuffer<std::uint32_t> stale("lists.stale");
  const std::uint32_t n = find_stale_groups(stream, tree_, walk, kStaleMargin, groups_, lists_, stale);
  if (n == 0) return 0;
  // Where the room is used up all are walked, rather than old and new lists held side by side while they grow.
  const std::uint64_t before = lists_.used;
  const double wanted = longer_ * static_cast<double>(fresh_words_) / all * n;
  if (static_cast<double>(before) + wanted > static_cast<double>(lists_.words.capacity())) {
    walk_tree(stream, tree_, walk, {groups_.data(), all, nullptr, 0, all, false}, lists_);
    return all;
  }
  walk_tree(stream, tree_, walk, {groups_.data(), all, stale.data(), 0, n, true}, lists_);
  longer_ = kLittleMore * static_cast<double>(lists_.used - before) / n / (static_cast<double>(fresh_words_) / all);
  return n;
}

void TreeGravity::evaluate_kept(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  counts_.rewalked_groups = options_.fixed_reuse == 0 ? repair_lists(stream, particles) : 0;
  if (options_.fixed_reuse > 0) {
    const PhaseTimers::Scope scope(timers_, "sweep", stream);
    sweep_octree(stream, particles.source.data(), tree_);
    refit_groups(stream, particles.source.data(), groups_);
  }
  count(list_statistics(stream, tree_, all_lists()));
  evaluate_probed(stream, particles, out);
  counts_.fresh_error = fresh_error_;
  decide_rebuild();
  if (options_.fixed_reuse == 0 && counts_.probe_error > options_.reuse_tolerance * fresh_error_)
    replace_lists(stream, particles, out);
}

// An error that nothing announced (once in some hundred steps): all lists are walked anew on the tree as it is, which
// needs no other rank, and the step is evaluated again. The rebuild follows in the next one.
void TreeGravity::replace_lists(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const auto all = static_cast<std::uint32_t>(groups_.size());
  {
    const PhaseTimers::Scope scope(timers_, "walk", stream);
    walk_tree(stream, tree_, walk_options(options_.theta), {groups_.data(), all, nullptr, 0, all, false}, lists_);
  }
  count(list_statistics(stream, tree_, all_lists()));
  counts_.rewalked_groups = all;
  evaluate_probed(stream, particles, out);
}

void TreeGravity::evaluate_probed(const Stream& stream, const Particles& particles, const ForceOutput& out) {
  const bool probe = options_.fixed_reuse == 0 && !probes_.empty();
  const SourceView view = sources(particles);
  if (probe) {
    const PhaseTimers::Scope scope(timers_, "probe", stream);
    probes_.evaluate_strict(stream, tree_, groups_, walk_options(kStrictTheta * options_.theta), options_.law,
                            options_.quadrupoles, view, out);
  }
  {
    const PhaseTimers::Scope scope(timers_, "evaluate", stream);
    evaluate_lists(stream, options_.law, options_.quadrupoles, view, all_lists(), out);
  }
  if (probe) {
    const PhaseTimers::Scope scope(timers_, "probe", stream);
    counts_.probe_error =
        probes_.error(stream, groups_, {out.acceleration.x, out.acceleration.y, out.acceleration.z});
  }
}

// The next step's list error is extrapolated from the last two, so that the limit is kept and not found out about.
void TreeGravity::decide_rebuild() {
  if (options_.fixed_reuse > 0) return;
  const double growth = std::max(0.0, counts_.probe_error - previous_error_);
  const double limit = (1 + kToleranceUse * (options_.reuse_tolerance - 1)) * counts_.fresh_error;
  if (counts_.probe_error + growth > limit) rebuild_due_ = true;
  previous_error_ = counts_.probe_error;
  const double particles = counts_.mean_list > 0 ? static_cast<double>(counts_.interactions) / counts_.mean_list : 1;
  const double longer = (static_cast<double>(counts_.interactions) - fresh_pairs_) / particles;
  const double rewalked = static_cast<double>(counts_.rewalked_groups) / static_cast<double>(counts_.groups);
  excess_ += std::max(0.0, longer) + kRewalkCost * rewalked;
  if (excess_ > kRebuildCost) rebuild_due_ = true;
}

void TreeGravity::count(const ListStatistics& s) {
  const auto members = static_cast<double>(std::max<std::uint64_t>(1, s.members));
  counts_.groups = groups_.size();
  counts_.cells = tree_.cells;
  counts_.interactions = s.particle_pairs + s.cell_pairs;
  counts_.mean_list = static_cast<double>(counts_.interactions) / members;
  counts_.longest_list = s.longest;
  counts_.mean_fill = members / (static_cast<double>(groups_.size()) * options_.group_size);
}

}  // namespace maki
