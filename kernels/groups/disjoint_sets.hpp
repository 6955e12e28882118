// Disjoint sets that many threads join at a time without locks.
//
// parent[i] <= i; the root of a set is its own parent, and the least member. Only a root's parent is ever made another
// set's, by compare-and-swap and only downwards, so the result does not depend on who comes first. Paths are split on
// the way up: that replaces the parent of what is no root, and never becomes one again, by one of its ancestors, so that
// stores of several threads at a time do no harm (Jayanti & Tarjan 2016, PODC, for the general case).
#pragma once

#include <cstdint>

#include "kernels/device/macros.hpp"

namespace maki {

struct DisjointSets {
  std::uint32_t* parent;

  MAKI_HD std::uint32_t load(std::uint32_t i) const {
#if defined(__CUDA_ARCH__)
    return *static_cast<volatile std::uint32_t*>(parent + i);
#else
    return __atomic_load_n(parent + i, __ATOMIC_RELAXED);
#endif
  }

  MAKI_HD void store(std::uint32_t i, std::uint32_t ancestor) const {
#if defined(__CUDA_ARCH__)
    *static_cast<volatile std::uint32_t*>(parent + i) = ancestor;
#else
    __atomic_store_n(parent + i, ancestor, __ATOMIC_RELAXED);
#endif
  }

  // Makes `below` the parent of the root `root`; false where it is no root any more.
  MAKI_HD bool hook(std::uint32_t root, std::uint32_t below) const {
#if defined(__CUDA_ARCH__)
    return atomicCAS(parent + root, root, below) == root;
#else
    std::uint32_t expected = root;
    return __atomic_compare_exchange_n(parent + root, &expected, below, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
  }

  // The root of i's set, as it is now.
  MAKI_HD std::uint32_t find(std::uint32_t i) const {
    std::uint32_t above = load(i);
    while (above != i) {
      const std::uint32_t next = load(above);
      if (next != above) store(i, next);
      i = above;
      above = next;
    }
    return i;
  }

  MAKI_HD bool joined(std::uint32_t a, std::uint32_t b) const { return find(a) == find(b); }

  MAKI_HD void join(std::uint32_t a, std::uint32_t b) const {
    for (;;) {
      a = find(a);
      b = find(b);
      if (a == b) return;
      const std::uint32_t high = a > b ? a : b, low = a > b ? b : a;
      if (hook(high, low)) return;
    }
  }
};

}  // namespace maki
