// Leaves and cells of an octree, derived from sorted keys without building it from the top.
//
// A leaf that begins at particle i ends, and the next begins, where keys no longer share the leaf's levels. Let
// shared(a, b) be the number of whole octree levels that two keys share. The leaf at i begins as a child of a divided
// cell, at level top = 1 + shared(key[i-1], key[i]); a cell that begins at i is divided if key[i + leaf_size] shares
// its level. So the cells that begin at i have levels top to max(top, min_level, 1 + shared(key[i], key[i +
// leaf_size])); the last is the leaf. Any range of particles can be processed by itself.
#pragma once

#include <cstdint>

#include "kernels/particles/particles.hpp"

namespace maki {

// Number of levels (0 to 21) whose cells hold both keys.
MAKI_HD int shared_levels(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t difference = a ^ b;
  if (difference == 0) return kMortonLevels;
#if defined(__CUDA_ARCH__)
  return (__clzll(static_cast<long long>(difference)) - 1) / 3;
#else
  return (__builtin_clzll(difference) - 1) / 3;
#endif
}

// The end of the sorted keys from i on that share the first `level` levels with key[i]. `step`: the expected distance
// to it; the search costs log2(step), and more only where the end is farther.
MAKI_HD std::uint32_t cell_end(const std::uint64_t* keys, std::uint32_t n, std::uint32_t i, int level,
                               std::uint32_t step) {
  const int shift = 3 * (kMortonLevels - level);
  const std::uint64_t prefix = keys[i] >> shift;
  std::uint32_t last = i;  // shares the prefix
  while (n - last > step && keys[last + step] >> shift == prefix) {
    last += step;
    if (step < 1u << 30) step *= 2;
  }
  std::uint32_t length = (n - last < step ? n - last : step) - 1;  // of (last, last + length], where the end is
  while (length > 0) {
    const std::uint32_t half = (length + 1) / 2;
    const bool in = keys[last + half] >> shift == prefix;
    last = in ? last + half : last;
    length = in ? length - half : half - 1;
  }
  return last + 1;
}

// The leaves of the octree over n sorted keys (octree.hpp, build_octree()).
struct LeafWalk {
  const std::uint64_t* keys;  // sorted
  std::uint32_t n;
  std::uint32_t leaf_size;
  int min_level;

  // The level of the leaf that begins at particle i, whose first cell is of level `top`.
  MAKI_HD int leaf_level(std::uint32_t i, int top) const {
    int level = top > min_level ? top : min_level;
    if (n - i > leaf_size) {
      const int next = 1 + shared_levels(keys[i], keys[i + leaf_size]);
      level = next > level ? next : level;
    }
    return level < kMortonLevels ? level : kMortonLevels;
  }

  // The first particle from i on that begins a leaf. A cell that holds i is divided when any leaf_size + 1 consecutive
  // particles including i are all in it.
  MAKI_HD std::uint32_t first_leaf(std::uint32_t i) const {
    if (i == 0) return 0;
    int level = min_level;
    for (std::uint32_t w = i > leaf_size ? i - leaf_size : 0; w <= i && n - w > leaf_size; ++w) {
      const int next = 1 + shared_levels(keys[w], keys[w + leaf_size]);
      level = next > level ? next : level;
    }
    level = level < kMortonLevels ? level : kMortonLevels;
    return shared_levels(keys[i - 1], keys[i]) < level ? i : cell_end(keys, n, i, level, leaf_size);
  }

  // visit(first, end, top, level) for every leaf that begins in [begin, end): it holds particles [first, end) and has
  // level `level`; the cells that begin with it have levels `top` to `level`.
  template <class Visit>
  MAKI_HD void operator()(std::uint32_t begin, std::uint32_t end, Visit& visit) const {
    std::uint32_t i = first_leaf(begin);
    while (i < end) {
      const int top = i == 0 ? 0 : 1 + shared_levels(keys[i - 1], keys[i]);
      const int level = leaf_level(i, top);
      const std::uint32_t next = cell_end(keys, n, i, level, leaf_size);
      visit(i, next, top, level);
      i = next;
    }
  }
};

}  // namespace maki
