#include "tests/host/let/let_set_ranks.hpp"

#include "host/domain/multisection.hpp"
#include "tests/kernels/particles/at_rest.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki::test {
namespace {

constexpr double kLeastForce = 0.01;

Vectors download(const Stream& stream, const VectorArray& array) {
  const auto x = array.x.download(stream), y = array.y.download(stream), z = array.z.download(stream);
  Vectors vectors;
  for (std::size_t i = 0; i < x.size(); ++i) vectors.push_back({x[i], y[i], z[i]});
  return vectors;
}

std::uint64_t count_interactions(const Stream& stream, Octree& tree, const WalkOptions& walk,
                                 const DeviceBuffer<Group>& groups) {
  if (tree.cells == 0) return 0;
  const auto count = static_cast<std::uint32_t>(groups.size());
  InteractionLists lists;
  walk_tree(stream, tree, walk, {groups.data(), count, nullptr, 0, count, false}, lists);
  const ListStatistics s =
      list_statistics(stream, tree, {groups.data(), lists.ranges.data(), lists.words.data(), nullptr, count});
  return s.particle_pairs + s.cell_pairs;
}

}  // namespace

std::vector<int> owners_by_multisection(const std::vector<SourceParticle>& set, int ranks) {
  std::vector<SamplePoint> points;
  for (const SourceParticle& p : set) points.push_back({p.x, p.y, p.z});
  const Domains domains = multisect(points, choose_factors(ranks));
  std::vector<int> owner;
  for (const SourceParticle& p : set) owner.push_back(static_cast<int>(domains.rank_of(p.x, p.y, p.z)));
  return owner;
}

LetSet::LetSet(const std::vector<SourceParticle>& set, const std::vector<int>& owner, const WalkOptions& w,
               int min_level, const LetOptions& options)
    : ranks(Communicator::world().split(0, Communicator::world().rank())), walk(w), let(ranks, options),
      min_level_(min_level) {
  for (std::size_t i = 0; i < set.size(); ++i) (owner[i] == ranks.rank() ? mine : others).push_back(set[i]);
  if (mine.empty()) return;
  testing::upload_at_rest(stream, mine, particles);
  sorter.sort(stream, particles, nullptr);
  mine = particles.source.download(stream);
  build_octree(stream, sorter.keys(), 8, min_level, tree);
  sweep_octree(stream, particles.source.data(), tree);
  make_groups(stream, tree, particles.source.data(), 64, min_level, groups);
}

void LetSet::rebuild() {
  let.rebuild(stream, tree, particles.source.data(), walk);
  let.progress();
  let.finish(stream);
}

void LetSet::update() {
  let.update(stream, tree, particles.source.data());
  let.finish(stream);
}

void LetSet::take_positions() {
  if (mine.empty()) return;
  particles.source.upload(stream, mine);
  sweep_octree(stream, particles.source.data(), tree);
  refit_groups(stream, particles.source.data(), groups);
}

std::vector<SourceParticle> LetSet::all() const {
  std::vector<SourceParticle> set = mine;
  set.insert(set.end(), others.begin(), others.end());
  return set;
}

void LetSet::add_forces(const ForceLaw& law, Octree& sources, const SourceParticle* source, bool add,
                        VectorArray& acceleration) {
  if (sources.cells == 0) return;
  const auto count = static_cast<std::uint32_t>(groups.size());
  InteractionLists lists;
  walk_tree(stream, sources, walk, {groups.data(), count, nullptr, 0, count, false}, lists);
  SourceView view{source, sources.moments.data(), sources.first.data(), sources.count.data()};
  if (source != particles.source.data()) view.targets = particles.source.data();
  evaluate_lists(stream, law, true, view, {groups.data(), lists.ranges.data(), lists.words.data(), nullptr, count},
                 {acceleration.view(), nullptr, add});
}

Vectors LetSet::forces(const ForceLaw& law) {
  if (mine.empty()) return {};
  VectorArray acceleration("test");
  acceleration.resize(mine.size());
  add_forces(law, tree, particles.source.data(), false, acceleration);
  add_forces(law, let.forest(), let.particles(), true, acceleration);
  return download(stream, acceleration);
}

Vectors LetSet::forces_of_one_tree(const ForceLaw& law) {
  if (mine.empty()) return {};
  testing::TreeSet one(all(), 64, min_level_);
  VectorArray acceleration("test");
  acceleration.resize(mine.size());
  add_forces(law, one.tree, one.particles.source.data(), false, acceleration);
  return download(stream, acceleration);
}

std::uint64_t LetSet::interactions() {
  if (mine.empty()) return 0;
  return count_interactions(stream, tree, walk, groups) + count_interactions(stream, let.forest(), walk, groups);
}

std::uint64_t LetSet::interactions_of_one_rank() const {
  testing::TreeSet one(all(), 64, min_level_);
  return count_interactions(one.stream, one.tree, walk, one.groups);
}

Vectors LetSet::local_forces_in_batches(const ForceLaw& law, std::uint32_t batches) {
  if (mine.empty()) return {};
  VectorArray acceleration("test");
  acceleration.resize(mine.size());
  const auto count = static_cast<std::uint32_t>(groups.size());
  InteractionLists lists;
  walk_tree(stream, tree, walk, {groups.data(), count, nullptr, 0, count, false}, lists);
  const SourceView view{particles.source.data(), tree.moments.data(), tree.first.data(), tree.count.data()};
  for (std::uint32_t b = 0; b < batches; ++b) {
    const std::uint32_t begin = static_cast<std::uint32_t>(std::uint64_t{count} * b / batches);
    const std::uint32_t end = static_cast<std::uint32_t>(std::uint64_t{count} * (b + 1) / batches);
    evaluate_lists(stream, law, true, view,
                   {groups.data() + begin, lists.ranges.data() + begin, lists.words.data(), nullptr, end - begin},
                   {acceleration.view(), nullptr});
    let.progress();
  }
  return download(stream, acceleration);
}

Vectors LetSet::direct(const ForceLaw& law) {
  if (mine.empty()) return {};
  const std::vector<SourceParticle> set = all();
  DeviceBuffer<SourceParticle> sources("test");
  sources.upload(stream, set);
  VectorArray acceleration("test");
  acceleration.resize(mine.size());
  direct_sum(stream, law,
             {sources.data(), static_cast<std::uint32_t>(set.size()), 0, static_cast<std::uint32_t>(mine.size())},
             {acceleration.view(), nullptr});
  return download(stream, acceleration);
}

testing::ForceErrors errors_of_all(const Communicator& ranks, const Vectors& found, const Vectors& exact) {
  const std::uint64_t mine = 3 * exact.size();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, sizes.data(), sizeof mine);
  std::size_t total = 0, begin = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    if (static_cast<int>(r) == ranks.rank()) begin = total;
    total += sizes[r];
  }
  const auto gather = [&](const Vectors& vectors) {
    std::vector<double> all(total, 0.0);
    for (std::size_t i = 0; i < mine; ++i) all[begin + i] = vectors[i / 3][i % 3];
    ranks.sum(all);
    Vectors whole;
    for (std::size_t i = 0; i < total; i += 3) whole.push_back({all[i], all[i + 1], all[i + 2]});
    return whole;
  };
  return testing::force_errors(gather(found), gather(exact), kLeastForce);
}

}  // namespace maki::test
