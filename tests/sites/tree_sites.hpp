// A set of particles cut among sites of one rank each, all in this process and driven by one thread.
#pragma once

#include <memory>
#include <vector>

#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/sites/replayed_sites.hpp"
#include "wan/sites/site_trees.hpp"

namespace maki::sites::testing {

using maki::testing::add_forces, maki::testing::download, maki::testing::ForceErrors, maki::testing::TreeSet,
    maki::testing::Vectors;

inline int min_level(const WalkOptions& walk) { return walk.r_cut > 0 ? kPeriodicMinLevel : 0; }

// Of all particles of `set` in their order: the law in double, every pair at its nearest image.
inline Vectors direct_in_double(const ForceLaw& law, const std::vector<SourceParticle>& set) {
  Vectors sums(set.size());
#pragma omp parallel for schedule(dynamic, 64)
  for (std::size_t i = 0; i < set.size(); ++i)
    for (const SourceParticle& q : set) {
      const double x = signed_difference(q.x, set[i].x) / kSideToUnits;
      const double y = signed_difference(q.y, set[i].y) / kSideToUnits;
      const double z = signed_difference(q.z, set[i].z) / kSideToUnits, r2 = x * x + y * y + z * z;
      if (r2 == 0 || (law.r_cut > 0 && r2 >= double{law.r_cut} * law.r_cut)) continue;
      const double f = q.mass * force_factor(law, r2);
      sums[i][0] += f * x;
      sums[i][1] += f * y;
      sums[i][2] += f * z;
    }
  return sums;
}

// Relative to |a|, or to its hundredth part of the rms where |a| is less.
inline ForceErrors errors_of(const ForceLaw& law, const std::vector<SourceParticle>& set, const Vectors& found) {
  return maki::testing::force_errors(found, direct_in_double(law, set), 0.01);
}

// Of one tree over all particles.
inline ForceErrors errors_of_one_tree(const ForceLaw& law, const WalkOptions& walk,
                                      const std::vector<SourceParticle>& set) {
  TreeSet one(set, 64, min_level(walk));
  test::VectorsOnDevice acceleration(set.size());
  add_forces(law, walk, one, one.tree, one.particles.source.data(), false, acceleration);
  return errors_of(law, one.particles.source.download(one.stream), download(one.stream, acceleration));
}

struct TreeSite {
  std::unique_ptr<Sites> sites;
  std::vector<SourceParticle> mine;  // in the order on the device
  TreeSet set;
  std::unique_ptr<SiteTrees> trees;

  TreeSite(std::unique_ptr<Sites> s, const std::vector<SourceParticle>& own, int min_level, const LetOptions& options)
      : sites(std::move(s)), mine(own), set(mine, 64, min_level), trees(std::make_unique<SiteTrees>(*sites, options)) {
    if (!mine.empty()) mine = set.particles.source.download(set.stream);
  }
  const SourceParticle* particles() const { return set.particles.source.data(); }
  Traffic take_traffic() { return sites->take_traffic()[static_cast<std::size_t>(Phase::kTrees)]; }
};

struct TreeSites {
  const Stream& stream = test::test_stream();
  Slabs slabs;
  WalkOptions walk;
  std::vector<TreeSite> all;
  std::uint64_t number = 0;

  TreeSites(const std::vector<SourceParticle>& set, const Slabs& s, const WalkOptions& w,
            const LetOptions& options = {})
      : slabs(s), walk(w) {
    auto sites = maki::test::sites_in_memory(slabs.count());
    std::vector<std::vector<SourceParticle>> shares(sites.size());
    for (const SourceParticle& p : set) shares[static_cast<std::size_t>(slabs.site_of(p.x))].push_back(p);
    for (std::size_t i = 0; i < sites.size(); ++i)
      all.emplace_back(std::move(sites[i]), shares[i], min_level(walk), options);
  }
  void rebuild(float drift = 0) {
    ++number;
    for (TreeSite& site : all)
      site.trees->rebuild(stream, site.set.tree, site.particles(), walk, {slabs, drift}, number);
    for (TreeSite& site : all) site.trees->finish(stream);
  }
  void update() {
    ++number;
    for (TreeSite& site : all) site.trees->update(stream, site.set.tree, site.particles(), number);
    for (TreeSite& site : all) site.trees->finish(stream);
  }
  // Each particle becomes f(particle), trees are swept and groups refitted; all stay where they are.
  template <class F>
  void move(F f) {
    for (TreeSite& site : all) {
      for (SourceParticle& p : site.mine) f(p);
      site.set.move_to(site.mine);
    }
  }

  // Site after site.
  std::vector<SourceParticle> particles() const {
    std::vector<SourceParticle> set;
    for (const TreeSite& site : all) set.insert(set.end(), site.mine.begin(), site.mine.end());
    return set;
  }
  // Of these particles, by lists over the sites' own trees and what they have imported.
  Vectors forces(const ForceLaw& law) {
    return forces_with(law, [&](TreeSite& site, VectorArray& acceleration) {
      add_forces(law, walk, site.set, site.trees->forest(), site.trees->particles().data(), true, acceleration);
    });
  }
  // The same, but over the other sites' whole trees.
  Vectors forces_of_whole_trees(const ForceLaw& law) {
    return forces_with(law, [&](TreeSite& site, VectorArray& acceleration) {
      for (TreeSite& other : all)
        if (&other != &site) add_forces(law, walk, site.set, other.set.tree, other.particles(), true, acceleration);
    });
  }

 private:
  template <class AddImported>
  Vectors forces_with(const ForceLaw& law, AddImported add_imported) {
    Vectors found;
    for (TreeSite& site : all) {
      if (site.mine.empty()) continue;
      test::VectorsOnDevice acceleration(site.mine.size());
      add_forces(law, walk, site.set, site.set.tree, site.particles(), false, acceleration);
      add_imported(site, acceleration);
      const Vectors of_site = download(stream, acceleration);
      found.insert(found.end(), of_site.begin(), of_site.end());
    }
    return found;
  }
};

}  // namespace maki::sites::testing
