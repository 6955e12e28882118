// Forces by lists over a set's own tree, or over another.
#pragma once

#include <array>
#include <vector>

#include "kernels/force/force.hpp"
#include "tests/kernels/tree/tree_set.hpp"

namespace maki::testing {

using Vectors = std::vector<std::array<double, 3>>;

inline Vectors download(const Stream& stream, const VectorArray& array) {
  Vectors vectors;
  for (const auto& [x, y, z] : array.download(stream)) vectors.push_back({x, y, z});
  return vectors;
}

// On the particles of `set`, by `sources`, a tree over `particles`.
inline void add_forces(const ForceLaw& law, const WalkOptions& walk, TreeSet& set, Octree& sources,
                       const SourceParticle* particles, bool add, VectorArray& acceleration) {
  if (sources.cells == 0) return;
  InteractionLists lists;
  walk_tree(set.stream, sources, walk, set.all_groups(), lists);
  SourceView view{particles, sources.moments.data(), sources.first.data(), sources.count.data()};
  if (particles != set.particles.source.data()) view.targets = set.particles.source.data();
  evaluate_lists(set.stream, law, true, view, set.view(lists), {acceleration.view(), nullptr, add});
}

}  // namespace maki::testing
