// A set of particles cut among ranks, each with its tree, its groups and what it imports.
#pragma once

#include <vector>

#include "host/let/local_essential_tree.hpp"
#include "kernels/force/force.hpp"
#include "tests/force_errors.hpp"
#include "tests/kernels/tree/tree_forces.hpp"

namespace maki::test {

using testing::Vectors;

// The owner of each particle by multisection with equal weights.
std::vector<int> owners_by_multisection(const std::vector<SourceParticle>& set, int ranks);

struct LetSet {
  Communicator ranks;
  std::vector<SourceParticle> mine, others;  // `mine` in the order on the device
  testing::TreeSet own;
  const Stream& stream = own.stream;
  WalkOptions walk;
  LocalEssentialTree let;

  LetSet(const std::vector<SourceParticle>& set, const std::vector<int>& owner, const WalkOptions& walk, int min_level,
         const LetOptions& options = {});

  void rebuild();
  void update();
  // All of this rank's particles and the others' become f(particle), the tree is swept and the groups refitted.
  template <class F>
  void move(F f) {
    for (auto* set : {&mine, &others})
      for (SourceParticle& p : *set) f(p);
    own.move_to(mine);
  }

  Vectors forces(const ForceLaw& law);  // by local lists and lists over the forest
  Vectors direct(const ForceLaw& law);  // by all particles of all ranks

 private:
  std::vector<SourceParticle> all() const;
};

// Of all ranks' particles; relative to |a|, or to its hundredth part of the rms where |a| is less.
testing::ForceErrors errors_of_all(const Communicator& ranks, const Vectors& found, const Vectors& exact);

}  // namespace maki::test
