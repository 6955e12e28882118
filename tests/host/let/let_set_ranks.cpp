#include "tests/host/let/let_set_ranks.hpp"

#include "host/domain/multisection.hpp"

namespace maki::test {
namespace {

constexpr double kLeastForce = 0.01;

std::vector<SourceParticle> share_of(const std::vector<SourceParticle>& set, const std::vector<int>& owner, int rank,
                                     bool others) {
  std::vector<SourceParticle> share;
  for (std::size_t i = 0; i < set.size(); ++i)
    if ((owner[i] == rank) != others) share.push_back(set[i]);
  return share;
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
    : ranks(Communicator::world().split(0, Communicator::world().rank())),
      mine(share_of(set, owner, ranks.rank(), false)), others(share_of(set, owner, ranks.rank(), true)),
      own(mine, 64, min_level), walk(w), let(ranks, options) {
  if (!mine.empty()) mine = own.particles.source.download(stream);
}

void LetSet::rebuild() {
  let.rebuild(stream, own.tree, own.particles.source.data(), walk);
  let.progress();
  let.finish(stream);
}

void LetSet::update() {
  let.update(stream, own.tree, own.particles.source.data());
  let.finish(stream);
}

std::vector<SourceParticle> LetSet::all() const {
  std::vector<SourceParticle> set = mine;
  set.insert(set.end(), others.begin(), others.end());
  return set;
}

Vectors LetSet::forces(const ForceLaw& law) {
  if (mine.empty()) return {};
  VectorArray acceleration("test");
  acceleration.resize(mine.size());
  testing::add_forces(law, walk, own, own.tree, own.particles.source.data(), false, acceleration);
  testing::add_forces(law, walk, own, let.forest(), let.particles().data(), true, acceleration);
  return testing::download(stream, acceleration);
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
  return testing::download(stream, acceleration);
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
