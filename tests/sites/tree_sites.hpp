// A set of particles cut among sites of one rank each, all in this process and driven by one thread.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/force/force.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_set.hpp"
#include "tests/test_stream.hpp"
#include "wan/sites/site_trees.hpp"

namespace maki::sites::testing {

using Vectors = std::vector<std::array<double, 3>>;

// Of all particles of `set` in their order: the law in double, every pair at its nearest image.
Vectors direct_in_double(const ForceLaw& law, const std::vector<SourceParticle>& set);
// Relative to |a|, or to its hundredth part of the rms where |a| is less.
maki::testing::ForceErrors errors_of(const ForceLaw& law, const std::vector<SourceParticle>& set, const Vectors& found);
// Of one tree over all particles.
maki::testing::ForceErrors errors_of_one_tree(const ForceLaw& law, const WalkOptions& walk,
                                              const std::vector<SourceParticle>& set);

struct TreeSite {
  std::unique_ptr<Sites> sites;
  std::unique_ptr<maki::testing::TreeSet> set;  // null where the site has no particles
  std::vector<SourceParticle> mine;             // in the order on the device
  Octree none;                                  // of no cells
  std::unique_ptr<SiteTrees> trees;

  Octree& tree() { return set ? set->tree : none; }
  const SourceParticle* particles() const { return set ? set->particles.source.data() : nullptr; }
};

struct TreeSites {
  const Stream& stream = test::test_stream();
  Slabs slabs;
  WalkOptions walk;
  std::vector<TreeSite> all;
  std::uint64_t number = 0;

  TreeSites(const std::vector<SourceParticle>& particles, const Slabs& slabs, const WalkOptions& walk,
            const LetOptions& options = {});
  void rebuild(float drift = 0);
  void update();
  // Each particle becomes f(particle), trees are swept and groups refitted; all stay where they are.
  template <class F>
  void move(F f) {
    for (TreeSite& site : all) {
      for (SourceParticle& p : site.mine) f(p);
      if (!site.set) continue;
      site.set->particles.source.upload(stream, site.mine);
      sweep_octree(stream, site.particles(), site.set->tree);
      refit_groups(stream, site.particles(), site.set->groups);
    }
  }

  std::vector<SourceParticle> particles() const;  // site after site
  // Of these particles, by lists over the sites' own trees and what they have imported.
  Vectors forces(const ForceLaw& law);
  // The same, but over the other sites' whole trees.
  Vectors forces_of_whole_trees(const ForceLaw& law);

 private:
  template <class AddImported>
  Vectors forces_with(const ForceLaw& law, AddImported add_imported);
};

}  // namespace maki::sites::testing
