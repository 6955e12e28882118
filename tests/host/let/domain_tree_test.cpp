#include "host/let/domain_tree.hpp"

#include <gtest/gtest.h>

namespace maki {
namespace {

TEST(DomainTree, HoldsEveryRootOnceInOrder) {
  for (const std::uint32_t roots : {1u, 2u, 7u, 8u, 9u, 15u, 63u, 64u, 65u, 511u, 513u, 4097u}) {
    const DomainTree tree = make_domain_tree(roots);
    ASSERT_EQ(tree.level_begin.front(), 0u);
    ASSERT_EQ(tree.level_begin[1], 1u);
    ASSERT_EQ(tree.level_begin.back(), tree.nodes());
    std::uint32_t next = 1;  // children follow each other, level after level
    for (std::uint32_t i = 0; i < tree.nodes(); ++i) {
      EXPECT_EQ(tree.first_child[i], next);
      EXPECT_GE(tree.child_count[i], 1);
      EXPECT_LE(tree.child_count[i], 8);
      next += tree.child_count[i];
    }
    EXPECT_EQ(next, tree.cells());
    EXPECT_LE(tree.nodes(), (roots + 6) / 7 + tree.level_begin.size());
  }
}

TEST(DomainTree, OfNoRootsHasNoNodes) {
  const DomainTree tree = make_domain_tree(0);
  EXPECT_EQ(tree.cells(), 0u);
  EXPECT_EQ(tree.level_begin, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace maki
