// The small tree whose leaves are the roots of other ranks' trees.
#pragma once

#include <cstdint>
#include <vector>

namespace maki {

// Nodes stand level by level, the root at the front; the roots of the ranks' trees follow as its last level. Children
// stand side by side, at most 8 a node, in the order of ranks: neighbours in that order are neighbours in space
// (multisection.hpp).
struct DomainTree {
  std::vector<std::uint32_t> first_child;  // of the nodes
  std::vector<std::uint8_t> child_count;   // 1 to 8
  std::vector<std::uint32_t> level_begin;  // of the nodes' levels; ends with nodes()
  std::uint32_t roots = 0;                 // at [nodes(), nodes() + roots)

  std::uint32_t nodes() const { return static_cast<std::uint32_t>(first_child.size()); }
  std::uint32_t cells() const { return nodes() + roots; }
};

// Of no nodes where there are no roots, else of one at least. Nodes of a level have alike many children.
DomainTree make_domain_tree(std::uint32_t roots);

}  // namespace maki
