#include "kernels/device/launch.cuh"

#include <algorithm>

#include "kernels/tree/octree.hpp"

namespace maki {

namespace {

// Extent of a set of points about a reference point, in units of the last bit.
struct Extent {
  std::int32_t lo[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
  std::int32_t hi[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
  MAKI_HD void include(int axis, std::int32_t low, std::int32_t high) {
    if (low < lo[axis]) lo[axis] = low;
    if (high > hi[axis]) hi[axis] = high;
  }
};

// Centre of [lo, hi] and half extent in sides, rounded up so that the box holds every point.
MAKI_HD void box_axis(std::uint32_t reference, std::int32_t lo, std::int32_t hi, std::uint32_t& centre, float& half) {
  const std::int64_t middle = (static_cast<std::int64_t>(lo) + hi) >> 1;
  centre = reference + static_cast<std::uint32_t>(static_cast<std::int32_t>(middle));
  const float h = static_cast<float>(hi - middle) * kUnitsToSide;
  half = h * 1.000001f;
}

MAKI_HD void store_box(const CellGeometryView& g, std::size_t cell, const Extent& e, float mass) {
  box_axis(g.x[cell], e.lo[0], e.hi[0], g.x[cell], g.hx[cell]);
  box_axis(g.y[cell], e.lo[1], e.hi[1], g.y[cell], g.hy[cell]);
  box_axis(g.z[cell], e.lo[2], e.hi[2], g.z[cell], g.hz[cell]);
  store_size(g, cell, mass);
}

// Rounds a displacement in sides to units of the last bit.
MAKI_HD std::uint32_t shifted(std::uint32_t reference, float sides) {
  return reference + static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<std::int64_t>(
                         sides * static_cast<float>(kSideToUnits) + (sides < 0 ? -0.5f : 0.5f))));
}

// Sums about the first of the points, in floats: off by some 1e-7 of their extent. Doubles would take a good part of a
// step on GPUs that have few units for them (bench/NOTES.md).
struct Moments {
  std::int32_t origin[3] = {};  // the first point, from the cell's reference point, in units of the last bit
  float mass = 0, x = 0, y = 0, z = 0, xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
  float excess = 0;  // of `mass`, which one place may have of 10^5 particles (Kahan's sum)
  // `d`: a point from the cell's reference point.
  MAKI_HD void add(float m, const std::int32_t d[3]) {
    if (mass == 0)
      for (int a = 0; a < 3; ++a) origin[a] = d[a];
    const float dx = sides(d[0], origin[0]), dy = sides(d[1], origin[1]), dz = sides(d[2], origin[2]);
    const float mx = m * dx, my = m * dy, mz = m * dz;
    const float missing = m - excess, total = mass + missing;
    excess = (total - mass) - missing;
    mass = total;
    x += mx;
    y += my;
    z += mz;
    xx += mx * dx;
    yy += my * dy;
    zz += mz * dz;
    xy += mx * dy;
    xz += mx * dz;
    yz += my * dz;
  }
  // The difference of two numbers of units, which may not fit into 32 bits, in sides.
  MAKI_HD static float sides(std::int32_t a, std::int32_t b) {
    const auto d = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
    const float s = static_cast<float>(d) * kUnitsToSide;
    if (((a ^ b) & (a ^ d)) >= 0) return s;
    return a < 0 ? s - 1 : s + 1;
  }
};

// Sums about the first point become moments about the centre of mass (parallel axes). rx, ry, rz: the reference point.
MAKI_HD CellMoments about_centre(const Moments& s, std::uint32_t rx, std::uint32_t ry, std::uint32_t rz) {
  const float inverse = s.mass > 0 ? 1 / s.mass : 0, cx = s.x * inverse, cy = s.y * inverse, cz = s.z * inverse;
  CellMoments m;
  m.x = shifted(rx + static_cast<std::uint32_t>(s.origin[0]), cx);
  m.y = shifted(ry + static_cast<std::uint32_t>(s.origin[1]), cy);
  m.z = shifted(rz + static_cast<std::uint32_t>(s.origin[2]), cz);
  m.mass = s.mass;
  m.qxx = s.xx - s.x * cx;
  m.qyy = s.yy - s.y * cy;
  m.qzz = s.zz - s.z * cz;
  m.qxy = s.xy - s.x * cy;
  m.qxz = s.xz - s.x * cz;
  m.qyz = s.yz - s.y * cz;
  return m;
}

// Leaves read particles and can all be processed at once; divided cells read their children, so they go level by level.
// A warp with both kinds would process one after the other; on the CPU one pass over a level's cells is as good.
template <bool kLeaves, bool kDivided>
struct SweepCells : TreeTopology {
  const SourceParticle* particles;
  CellMoments* moments;
  CellGeometryView g;
  std::uint32_t begin;
  const std::uint8_t* kind;  // null: all cells
  std::uint8_t wanted;

  MAKI_HD void add_particles(std::size_t cell, Moments& sum, Extent& extent) const {
    for (std::uint32_t p = first[cell]; p < first[cell] + count[cell]; ++p) {
      const SourceParticle s = particles[p];
      const std::int32_t d[3] = {signed_difference(s.x, g.x[cell]), signed_difference(s.y, g.y[cell]),
                                 signed_difference(s.z, g.z[cell])};
      for (int a = 0; a < 3; ++a) extent.include(a, d[a], d[a]);
      sum.add(s.mass, d);
    }
  }

  MAKI_HD static std::int32_t units(float sides) {
    const float u = sides * static_cast<float>(kSideToUnits);
    return u >= 0x1p31f ? INT32_MAX : static_cast<std::int32_t>(u);
  }

  // A box reaching more than half a side from the reference wraps to its other side: it takes the whole axis. Any box
  // may do so by a little, since extents are rounded up; particles do not.
  MAKI_HD void include_box(Extent& extent, int axis, std::uint32_t centre, std::uint32_t reference, float half) const {
    constexpr std::int64_t rounding = std::int64_t{1} << 16;  // units; 21 levels round up by 2e-6 sides, 9000 units
    const std::int64_t d = signed_difference(centre, reference), h = units(half), low = d - h, high = d + h;
    if (low < INT32_MIN - rounding || high > INT32_MAX + rounding) return extent.include(axis, INT32_MIN, INT32_MAX);
    extent.include(axis, static_cast<std::int32_t>(low < INT32_MIN ? INT32_MIN : low),
                   static_cast<std::int32_t>(high > INT32_MAX ? INT32_MAX : high));
  }

  MAKI_HD void add_children(std::size_t cell, Moments& sum, Extent& extent) const {
    for (std::uint32_t c = first_child[cell]; c < first_child[cell] + child_count[cell]; ++c) {
      const CellMoments m = moments[c];
      include_box(extent, 0, g.x[c], g.x[cell], g.hx[c]);
      include_box(extent, 1, g.y[c], g.y[cell], g.hy[c]);
      include_box(extent, 2, g.z[c], g.z[cell], g.hz[c]);
      const std::int32_t d[3] = {signed_difference(m.x, g.x[cell]), signed_difference(m.y, g.y[cell]),
                                 signed_difference(m.z, g.z[cell])};
      sum.add(m.mass, d);
      sum.xx += m.qxx;
      sum.yy += m.qyy;
      sum.zz += m.qzz;
      sum.xy += m.qxy;
      sum.xz += m.qxz;
      sum.yz += m.qyz;
    }
  }

  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t cell = begin + i;
    if (kind && kind[cell] != wanted) return;
    const bool leaf = child_count[cell] == 0;
    if (leaf ? !kLeaves || count[cell] == kClosedCell : !kDivided) return;
    Moments sum;
    Extent extent;
    if (leaf)
      add_particles(cell, sum, extent);
    else
      add_children(cell, sum, extent);
    const CellMoments m = about_centre(sum, g.x[cell], g.y[cell], g.z[cell]);
    moments[cell] = m;
    g.comx[cell] = m.x;
    g.comy[cell] = m.y;
    g.comz[cell] = m.z;
    store_box(g, cell, extent, m.mass);
  }
};

struct RefitGroup {
  const SourceParticle* particles;
  Group* groups;
  MAKI_HD void operator()(std::size_t i) const {
    Group g = groups[i];
    const SourceParticle reference = particles[g.first];
    Extent e;
    for (std::uint32_t p = g.first; p < g.first + g.count; ++p) {
      const SourceParticle s = particles[p];
      const std::int32_t d[3] = {signed_difference(s.x, reference.x), signed_difference(s.y, reference.y),
                                 signed_difference(s.z, reference.z)};
      for (int a = 0; a < 3; ++a) e.include(a, d[a], d[a]);
    }
    box_axis(reference.x, e.lo[0], e.hi[0], g.x, g.hx);
    box_axis(reference.y, e.lo[1], e.hi[1], g.y, g.hy);
    box_axis(reference.z, e.lo[2], e.hi[2], g.z, g.hz);
    groups[i] = g;
  }
};

}  // namespace

void sweep_octree(const Stream& stream, const SourceParticle* particles, Octree& tree, SweepOrder order,
                  const std::uint8_t* kind, std::uint8_t wanted) {
  const auto sweep = [&]<bool kLeaves, bool kDivided>(const char* name, std::uint32_t begin, std::uint32_t end) {
    launch(stream, name, end - begin,
           SweepCells<kLeaves, kDivided>{tree.topology(), particles, tree.moments.data(), tree.geometry.view(), begin,
                                         kind, wanted});
  };
  const bool leaves_first = order == SweepOrder::kLeavesFirst;
  if (leaves_first) sweep.template operator()<true, false>("sweep_leaves", 0, tree.cells);
  for (std::size_t level = tree.level_begin.size() - 1; level-- > 0;) {
    const std::uint32_t begin = tree.level_begin[level], end = tree.level_begin[level + 1];
    if (!leaves_first)
      sweep.template operator()<true, true>("sweep_level", begin, end);
    else if (end < tree.cells)  // the deepest level is all leaves
      sweep.template operator()<false, true>("sweep_divided", begin, end);
  }
}

void refit_groups(const Stream& stream, const SourceParticle* particles, DeviceBuffer<Group>& groups) {
  launch(stream, "refit_groups", groups.size(), RefitGroup{particles, groups.data()});
}

namespace {

// A cell size in sides, larger than any distance.
constexpr float kNeverFar = 1e6f;
// Boxes of cells below are rounded up, by 1e-6 of themselves at most: a cube still holds them.
constexpr float kRounding = 1.00001f;

struct OpenCoarse {
  CellGeometryView g;
  std::uint32_t begin;
  int level;

  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t cell = begin + i;
    g.x[cell] = cube_centre(g.x[cell], level);  // the middle of the cell's box lies in its cube
    g.y[cell] = cube_centre(g.y[cell], level);
    g.z[cell] = cube_centre(g.z[cell], level);
    g.hx[cell] = g.hy[cell] = g.hz[cell] = kRounding * 0.5f / static_cast<float>(1u << level);
    g.size[cell] = kNeverFar;
  }
};

}  // namespace

void open_coarse_cells(const Stream& stream, int level, Octree& tree) {
  const int levels = std::min(level, static_cast<int>(tree.level_begin.size()) - 1);
  for (int l = 0; l < levels; ++l) {
    const auto at = static_cast<std::size_t>(l);
    const std::uint32_t begin = tree.level_begin[at], end = tree.level_begin[at + 1];
    launch(stream, "coarse_cells", end - begin, OpenCoarse{tree.geometry.view(), begin, l});
  }
}

}  // namespace maki
