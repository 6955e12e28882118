// The walk of one group on the CPU, compiled once for each of two instruction sets, in a namespace of its name. Eight
// siblings are tested at once; vector extensions of the compiler carry the lanes.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/tree/walk_cpu.hpp"

namespace maki::MAKI_INSTRUCTION_SET {
namespace {

typedef float Float8 __attribute__((vector_size(32)));
typedef std::int32_t Int8 __attribute__((vector_size(32)));

inline Int8 load_integers(const std::uint32_t* from) {
  Int8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline Float8 load_floats(const float* from) {
  Float8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline unsigned lane_bits(Int8 mask) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#else
  unsigned bits = 0;
  for (int k = 0; k < 8; ++k) bits |= (mask[k] != 0 ? 1u : 0u) << k;
  return bits;
#endif
}

// |a - b| in units of the last bit, to the nearest image.
inline Float8 axis_distances(const std::uint32_t* a, std::uint32_t b) {
  const Float8 d = __builtin_convertvector(load_integers(a) - static_cast<std::int32_t>(b), Float8);
  return d < 0.0f ? -d : d;
}

inline unsigned lanes_within_reach(const WalkTree& tree, const WalkTarget& target, std::uint32_t begin) {
  return lane_bits(
      within_reach(tree.rule, box_gap_squared(target, BoxAway<Float8>{axis_distances(tree.g.x + begin, target.x),
                                                                      axis_distances(tree.g.y + begin, target.y),
                                                                      axis_distances(tree.g.z + begin, target.z),
                                                                      load_floats(tree.g.hx + begin),
                                                                      load_floats(tree.g.hy + begin),
                                                                      load_floats(tree.g.hz + begin)})));
}

inline unsigned lanes_far_enough(const WalkTree& tree, const WalkTarget& target, std::uint32_t begin) {
  const Float8 gap =
      point_gap_squared(target, axis_distances(tree.g.comx + begin, target.x),
                        axis_distances(tree.g.comy + begin, target.y), axis_distances(tree.g.comz + begin, target.z));
  const CellSize<Float8> cells = {load_floats(tree.g.size + begin),
                                  tree.g.error_length ? load_floats(tree.g.error_length + begin) : Float8{},
                                  load_floats(tree.g.offset + begin)};
  return lane_bits(far_enough(gap, opening_distance(tree.rule, target, cells)));
}

}  // namespace

bool walk_group(const WalkTree& tree, const Group& group, WalkOutput& out) {
  const WalkTarget target = walk_target(group);
  std::uint32_t stack[8 * 28];  // every level leaves at most seven siblings waiting
  int depth = 0;
  out.cell_words = out.leaf_words = 0;
  if (out.capacity < 8) return false;
  if (tree.child_count[0] == 0)
    out.leaves[out.leaf_words++] = 0;
  else
    stack[depth++] = 0;
  while (depth > 0) {
    const std::uint32_t parent = stack[--depth];
    const std::uint32_t begin = tree.first_child[parent];
    unsigned inside = (1u << tree.child_count[parent]) - 1;
    if (tree.cutoff) inside &= lanes_within_reach(tree, target, begin);
    if (inside == 0) continue;
    const unsigned far = lanes_far_enough(tree, target, begin);

    if (out.cell_words + 8 > out.capacity || out.leaf_words + 8 > out.capacity) return false;
    for (unsigned left = inside; left != 0; left &= left - 1) {
      const unsigned k = static_cast<unsigned>(__builtin_ctz(left));
      const std::uint32_t cell = begin + k;
      const std::uint32_t count = tree.count[cell];
      if (((far >> k & 1u) && count > tree.small_cell) || count == kClosedCell)
        out.cells[out.cell_words++] = cell;
      else if (tree.child_count[cell] == 0 || (far >> k & 1u))
        out.leaves[out.leaf_words++] = cell;
      else
        stack[depth++] = cell;
    }
  }
  return true;
}

}  // namespace maki::MAKI_INSTRUCTION_SET
