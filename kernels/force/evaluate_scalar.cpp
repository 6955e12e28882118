// List evaluation with instructions that every processor has.
#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/pair_formula.hpp"

namespace maki::scalar {
namespace {
// Vectors of 4 floats in the compiler's own notation, with the operations that pair_formula.hpp asks for.

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));

struct Mask4 {
  Int4 m;
};

struct Wide {
  static constexpr unsigned kLanes = 4;
  Float4 v;
  Wide() = default;
  Wide(Float4 value) : v(value) {}
  explicit Wide(float value) : v{value, value, value, value} {}
  static Wide load(const float* from) { return *reinterpret_cast<const Float4*>(from); }
  void store(float* to) const { *reinterpret_cast<Float4*>(to) = v; }
};

inline Wide operator+(Wide a, Wide b) { return a.v + b.v; }
inline Wide operator-(Wide a, Wide b) { return a.v - b.v; }
inline Wide operator*(Wide a, Wide b) { return a.v * b.v; }
inline Mask4 less(Wide a, Wide b) { return {a.v < b.v}; }
inline Wide where(Mask4 mask, Wide a, Wide b) { return mask.m ? a.v : b.v; }
inline Wide zero_unless(Mask4 mask, Wide a) { return reinterpret_cast<Float4>(mask.m & reinterpret_cast<Int4>(a.v)); }
inline Wide larger(Wide a, Wide b) { return a.v < b.v ? b.v : a.v; }
inline bool any(Mask4 mask) { return (mask.m[0] | mask.m[1] | mask.m[2] | mask.m[3]) != 0; }
inline Wide reciprocal_root(Wide x, Root<true>) {
  Float4 y;
  for (int i = 0; i < 4; ++i) y[i] = 1 / __builtin_sqrtf(x.v[i]);
  return y;
}

// Fixed-point coordinates. Their difference is exact, then rounded once.
struct WideBits {
  Int4 v;
  static WideBits load(const std::uint32_t* from) {
    WideBits bits;
    __builtin_memcpy(&bits.v, from, sizeof bits.v);
    return bits;
  }
};
inline Wide difference(std::uint32_t to, WideBits from) {
  Int4 d;
  for (int i = 0; i < 4; ++i) d[i] = static_cast<std::int32_t>(to - static_cast<std::uint32_t>(from.v[i]));
  return __builtin_convertvector(d, Float4);
}

using Half = Wide;
using HalfBits = WideBits;

inline constexpr bool kHasCoarseRoot = false;

inline float move_coordinate(std::uint32_t to, std::uint32_t from, float scale) {
  return static_cast<float>(static_cast<std::int32_t>(to - from)) * scale;
}

// `count` particles as x, y, z (relative to the centre, times `scale`) and mass.
inline void gather_particles(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                             float* to) {
  for (unsigned i = 0; i < count; ++i, to += 4) {
    to[0] = move_coordinate(from[i].x, centre[0], scale);
    to[1] = move_coordinate(from[i].y, centre[1], scale);
    to[2] = move_coordinate(from[i].z, centre[2], scale);
    to[3] = from[i].mass;
  }
}

// The same for count <= 16, written to two places. Returns whether any particle may be closer to the centre than
// reach[axis] on all axes.
inline bool gather_sixteen(const SourceParticle* from, unsigned count, const std::uint32_t* centre, float scale,
                           const float* reach, float* const (&to)[2]) {
  gather_particles(from, count, centre, scale, to[0]);
  __builtin_memcpy(to[1], to[0], count * 4 * sizeof(float));
  bool within[3] = {false, false, false};
  for (unsigned i = 0; i < count; ++i)
    for (unsigned axis = 0; axis < 3; ++axis)
      within[axis] = within[axis] || __builtin_fabsf(to[0][4 * i + axis]) < reach[axis];
  return within[0] && within[1] && within[2];
}

inline void gather_cell(const CellMoments& cell, const std::uint32_t* centre, float scale, float moment_scale,
                        float* to) {
  const SourceParticle point{cell.x, cell.y, cell.z, cell.mass};
  gather_particles(&point, 1, centre, scale, to);
  const float* q = &cell.qxx;
  for (int i = 0; i < 6; ++i) to[4 + i] = q[i] * moment_scale;
  to[10] = 0.5f * (to[4] + to[5] + to[6]);
}

#include "kernels/force/evaluate_cpu.inl"
}  // namespace

const CpuKernels kForceKernels = {centred, evaluate_group, direct, loop};

}  // namespace maki::scalar
