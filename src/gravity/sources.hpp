// A tree whose sources act on this rank's groups, and the lists over it.
#pragma once

#include "kernels/force/force.hpp"
#include "kernels/tree/octree.hpp"
#include "src/gravity/kept_lists.hpp"

namespace maki {

class TreeImports;

struct Sources {
  Octree& tree;
  SourceView view;
  KeptLists& lists;
  TreeImports* imports = nullptr;  // where the tree came from; null: the tree of own particles
  // Forces of imported trees are added to those of the own tree.
  bool imported() const { return imports != nullptr; }
};

}  // namespace maki
