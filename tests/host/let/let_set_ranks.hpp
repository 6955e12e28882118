// A set of particles cut among ranks, each with its tree, its groups and what it imports.
#pragma once

#include <array>
#include <vector>

#include "host/let/local_essential_tree.hpp"
#include "kernels/force/force.hpp"
#include "kernels/particles/particles.hpp"
#include "kernels/tree/walk.hpp"
#include "tests/force_errors.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

using Vectors = std::vector<std::array<double, 3>>;

// The owner of each particle by multisection with equal weights.
std::vector<int> owners_by_multisection(const std::vector<SourceParticle>& set, int ranks);

struct LetSet {
  const Stream& stream = test::test_stream();
  Communicator ranks;
  std::vector<SourceParticle> mine, others;  // `mine` in the order on the device
  Particles particles;
  MortonSorter sorter;
  Octree tree;  // of no cells where the rank has no particles
  DeviceBuffer<Group> groups{"groups"};
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
    take_positions();
  }

  Vectors forces(const ForceLaw& law);              // by local lists and lists over the forest
  Vectors forces_of_one_tree(const ForceLaw& law);  // of the same groups by one tree over all ranks' particles
  Vectors direct(const ForceLaw& law);              // by all particles of all ranks
  // Sources times targets, particles and cells alike, of both lists of this rank, or of one rank with all particles.
  std::uint64_t interactions();
  std::uint64_t interactions_of_one_rank() const;
  // Forces of the local tree alone, with messages moved on after every batch of groups.
  Vectors local_forces_in_batches(const ForceLaw& law, std::uint32_t batches);

 private:
  void take_positions();
  std::vector<SourceParticle> all() const;
  void add_forces(const ForceLaw& law, Octree& sources, const SourceParticle* source, bool add,
                  VectorArray& acceleration);
  int min_level_;
};

// Of all ranks' particles; relative to |a|, or to its hundredth part of the rms where |a| is less.
testing::ForceErrors errors_of_all(const Communicator& ranks, const Vectors& found, const Vectors& exact);

}  // namespace maki::test
