#include "host/let/domain_tree.hpp"

#include <algorithm>

namespace maki {

DomainTree make_domain_tree(std::uint32_t roots) {
  DomainTree tree;
  tree.roots = roots;
  tree.level_begin.push_back(0);
  if (roots == 0) return tree;
  std::vector<std::uint32_t> sizes{roots};  // of levels, from the roots up
  do sizes.push_back((sizes.back() + 7) / 8);
  while (sizes.back() > 1);
  for (std::size_t level = sizes.size() - 1; level > 0; --level) {
    const std::uint64_t nodes = sizes[level], below = sizes[level - 1];
    const auto next = static_cast<std::uint32_t>(tree.level_begin.back() + nodes);
    for (std::uint64_t i = 0; i < nodes; ++i) {
      const auto begin = static_cast<std::uint32_t>(i * below / nodes);
      const auto end = static_cast<std::uint32_t>((i + 1) * below / nodes);
      tree.first_child.push_back(next + begin);
      tree.child_count.push_back(static_cast<std::uint8_t>(end - begin));
    }
    tree.level_begin.push_back(next);
  }
  return tree;
}

}  // namespace maki
