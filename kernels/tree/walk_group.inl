// Body of walk_group, included by each instruction set's translation unit inside its own namespace.
// Eight siblings are tested at once; vector extensions of the compiler carry the lanes.

typedef float Float8 __attribute__((vector_size(32)));
typedef std::int32_t Int8 __attribute__((vector_size(32)));

static inline Int8 load_integers(const std::uint32_t* from) {
  Int8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

static inline Float8 load_floats(const float* from) {
  Float8 v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

static inline unsigned lane_bits(Int8 mask) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#else
  unsigned bits = 0;
  for (int k = 0; k < 8; ++k) bits |= (mask[k] != 0 ? 1u : 0u) << k;
  return bits;
#endif
}

// |a - b| in sides, to the nearest image.
static inline Float8 distance(Int8 a, std::uint32_t b) {
  const Float8 d = __builtin_convertvector(a - static_cast<std::int32_t>(b), Float8) * kUnitsToSide;
  return d < 0.0f ? -d : d;
}

static inline Float8 positive(Float8 v) { return v > 0.0f ? v : Float8{}; }

bool walk_group(const WalkTree& tree, const Group& group, WalkOutput& out) {
  std::uint32_t stack[8 * 22];  // every level leaves at most seven siblings waiting
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
    const unsigned lanes = (1u << tree.child_count[parent]) - 1;

    const Float8 ex = positive(distance(load_integers(tree.x + begin), group.x) - group.hx - load_floats(tree.hx + begin));
    const Float8 ey = positive(distance(load_integers(tree.y + begin), group.y) - group.hy - load_floats(tree.hy + begin));
    const Float8 ez = positive(distance(load_integers(tree.z + begin), group.z) - group.hz - load_floats(tree.hz + begin));
    const unsigned inside = lanes & lane_bits(ex * ex + ey * ey + ez * ez < tree.r_cut_squared);
    if (inside == 0) continue;

    const Float8 dx = positive(distance(load_integers(tree.comx + begin), group.x) - group.hx);
    const Float8 dy = positive(distance(load_integers(tree.comy + begin), group.y) - group.hy);
    const Float8 dz = positive(distance(load_integers(tree.comz + begin), group.z) - group.hz);
    const Float8 open = load_floats(tree.size + begin) * tree.inverse_theta + load_floats(tree.offset + begin);
    const unsigned far = lane_bits(dx * dx + dy * dy + dz * dz > open * open);

    if (out.cell_words + 8 > out.capacity || out.leaf_words + 8 > out.capacity) return false;
    for (unsigned left = inside; left != 0; left &= left - 1) {
      const unsigned k = static_cast<unsigned>(__builtin_ctz(left));
      const std::uint32_t cell = begin + k;
      if ((far >> k & 1u) && tree.count[cell] > tree.small_cell)
        out.cells[out.cell_words++] = cell;
      else if (tree.child_count[cell] == 0 || (far >> k & 1u))
        out.leaves[out.leaf_words++] = cell;
      else
        stack[depth++] = cell;
    }
  }
  return true;
}
