// Local essential trees as bytes: one block for each rank, sent as one message.
//
// A block holds particles (16 bytes each), then multipoles (64 bytes each) of its divided and closed cells, then one
// shape (4 bytes) for each of its cells. A block begins at a multiple of 16. On a reuse step the block is sent without
// its shapes. Leaves have no multipoles: the receiver sweeps them from their particles.
//
// Compressed, particles have 6 bytes and multipoles 40 (PackedMultipole); the particles' masses (4 bytes each) follow
// the shapes. A block without multipoles, the particles of a single leaf, is not compressed.
//
// Cells are in breadth-first order, the root first; the children of a cell are contiguous, in the order of their
// parents. Particles are in the order of their leaves. So first children and first particles follow from prefix sums
// over the shapes.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "host/domain/multisection.hpp"
#include "kernels/device/buffer.hpp"
#include "kernels/tree/octree.hpp"

namespace maki {

// The shape of a cell: kClosedCell (kernels/tree/types.hpp), kDividedCell + number of children (1 to 8), or a leaf's
// number of particles.
inline constexpr std::uint32_t kDividedCell = 0xfffffff0u;
MAKI_HD bool is_leaf(std::uint32_t shape) { return shape < kDividedCell; }
MAKI_HD bool is_divided(std::uint32_t shape) { return shape > kDividedCell && shape < kClosedCell; }

// A cell as swept by its owner.
struct alignas(16) Multipole {
  CellMoments moments;
  std::uint32_t x, y, z;  // box, as in CellGeometryView
  float hx, hy, hz;
};
static_assert(sizeof(Multipole) == 64);

struct PackedParticle {
  std::uint16_t x, y, z;
};

struct PackedMultipole {
  std::uint32_t x, y, z;
  float mass;
  std::uint16_t hx, hy, hz;
  std::uint16_t centre[3];  // of mass
  std::int16_t q[6];        // xx, yy, zz, xy, xz, yz
};
static_assert(sizeof(PackedParticle) == 6 && sizeof(PackedMultipole) == 40);

struct BlockCounts {
  std::uint64_t particles = 0, multipoles = 0, cells = 0;
};

// The sections of a block, in bytes from its beginning.
struct BlockSections {
  bool compressed;
  std::uint64_t multipoles, shapes, masses, end;  // particles begin at 0; masses only if compressed

  MAKI_HD BlockSections(const BlockCounts& counts, bool compress) : compressed(compress && counts.multipoles > 0) {
    const std::uint64_t particles = counts.particles * particle_bytes();
    multipoles = (particles + 15) / 16 * 16;
    shapes = multipoles + counts.multipoles * multipole_bytes();
    masses = shapes + counts.cells * sizeof(std::uint32_t);
    end = masses + (compressed ? counts.particles * sizeof(float) : 0);
  }
  MAKI_HD std::uint64_t particle_bytes() const { return compressed ? sizeof(PackedParticle) : sizeof(SourceParticle); }
  MAKI_HD std::uint64_t multipole_bytes() const { return compressed ? sizeof(PackedMultipole) : sizeof(Multipole); }
};

// For kernels: arrays of n + 1 entries, the first particle, multipole, cell and byte of each block.
struct BlocksView {
  const std::uint64_t *particle, *multipole, *cell, *byte;
  std::uint32_t n;
  bool compress;

  MAKI_HD std::uint32_t block_of_particle(std::uint64_t i) const { return interval_of(particle, n, i); }
  MAKI_HD std::uint32_t block_of_multipole(std::uint64_t i) const { return interval_of(multipole, n, i); }
  MAKI_HD std::uint32_t block_of_cell(std::uint64_t i) const { return interval_of(cell, n, i); }
  MAKI_HD BlockSections sections(std::uint32_t b) const {
    return {{particle[b + 1] - particle[b], multipole[b + 1] - multipole[b], cell[b + 1] - cell[b]}, compress};
  }
  // The byte offset of one item of block b.
  MAKI_HD std::uint64_t particle_byte(std::uint32_t b, std::uint64_t i) const {
    return byte[b] + (i - particle[b]) * sections(b).particle_bytes();
  }
  MAKI_HD std::uint64_t multipole_byte(std::uint32_t b, std::uint64_t i) const {
    const BlockSections s = sections(b);
    return byte[b] + s.multipoles + (i - multipole[b]) * s.multipole_bytes();
  }
  MAKI_HD std::uint64_t shape_byte(std::uint32_t b, std::uint64_t i) const {
    return byte[b] + sections(b).shapes + (i - cell[b]) * sizeof(std::uint32_t);
  }
  MAKI_HD std::uint64_t mass_byte(std::uint32_t b, std::uint64_t i) const {
    return byte[b] + sections(b).masses + (i - particle[b]) * sizeof(float);
  }
};

// The begins of the blocks, on the host and on the device.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress = false);

  std::size_t size() const { return counts_.size(); }
  const BlockCounts& counts(std::size_t block) const { return counts_[block]; }
  const BlockCounts& total() const { return total_; }
  std::uint64_t begin(std::size_t block) const { return begin_[block]; }
  std::uint64_t bytes() const { return begin_.empty() ? 0 : begin_.back(); }
  bool compressed() const { return compress_; }
  std::uint64_t payload_bytes(std::size_t block) const;  // without shapes and masses
  std::uint64_t message_bytes(std::size_t block, bool with_shapes = true) const;

  BlocksView view() const;

 private:
  bool compress_ = false;
  std::vector<BlockCounts> counts_;
  BlockCounts total_;
  std::vector<std::uint64_t> begin_;
  DeviceBuffer<std::uint64_t> starts_{"let.blocks"};
};

// Prefix sums over the shapes of the blocks' cells, n + 1 entries each: the numbers of children, multipoles and leaf
// particles of all cells before a cell.
struct ShapeSums {
  DeviceBuffer<std::uint32_t> children{"let.scratch"}, multipoles{"let.scratch"};
  DeviceBuffer<std::uint64_t> particles{"let.scratch"};
};
ShapeSums sum_shapes(const Stream& stream, const DeviceBuffer<std::uint32_t>& shapes);

// By particle: the parent of its leaf, as an index of the blocks' multipoles; not set if the root is the leaf.
void find_parents(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::uint32_t>& shapes,
                  const ShapeSums& sums, DeviceBuffer<std::uint32_t>& parents);

// Compression: particles in 6 bytes and multipoles in 40, instead of 16 and 64.
//
// Positions have 16 bits an axis within a box: for a particle the box of its leaf's parent, for a centre of mass the
// box of its cell. So positions are wrong by up to 1.5e-5 of a half extent. The box's half extents h keep 8 bits of
// mantissa, rounded up. Second moments are 16-bit fractions of their bound m h_i h_j. Masses of particles do not change
// between rebuilds and are sent only with those.

// A float's upper half, rounded up; h >= 0.
MAKI_HD std::uint16_t pack_extent(float h) {
  std::uint32_t bits;
  std::memcpy(&bits, &h, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0xffffu) >> 16);
}
MAKI_HD float unpack_extent(std::uint16_t packed) {
  const std::uint32_t bits = static_cast<std::uint32_t>(packed) << 16;
  float h;
  std::memcpy(&h, &bits, sizeof h);
  return h;
}

struct PackingBox {
  std::uint32_t centre[3];
  float half[3];  // sides; with 8 bits of mantissa
};

MAKI_HD std::uint16_t pack_position(const PackingBox& box, int axis, std::uint32_t x) {
  const double reach = box.half[axis] * kSideToUnits;
  if (!(reach > 0)) return 0x8000;
  const double place = (signed_difference(x, box.centre[axis]) / reach + 1) * 32767.5 + 0.5;
  return static_cast<std::uint16_t>(place < 0 ? 0 : place > 65535 ? 65535 : place);
}
MAKI_HD std::uint32_t unpack_position(const PackingBox& box, int axis, std::uint16_t packed) {
  const double d = (packed / 32767.5 - 1) * (box.half[axis] * kSideToUnits);
  return box.centre[axis] +
         static_cast<std::uint32_t>(static_cast<std::int64_t>(box.half[axis] > 0 ? d + (d < 0 ? -0.5 : 0.5) : 0));
}

// q in [-bound, bound].
MAKI_HD std::int16_t pack_fraction(double q, double bound) {
  if (!(bound > 0)) return 0;
  const double place = q / bound * 32767;
  const double nearest = place + (place < 0 ? -0.5 : 0.5);
  return static_cast<std::int16_t>(nearest < -32767 ? -32767 : nearest > 32767 ? 32767 : nearest);
}

MAKI_HD PackingBox packing_box(const PackedMultipole& p) {
  return {{p.x, p.y, p.z}, {unpack_extent(p.hx), unpack_extent(p.hy), unpack_extent(p.hz)}};
}

MAKI_HD PackedMultipole pack_multipole(const Multipole& m) {
  PackedMultipole p{m.x, m.y, m.z, m.moments.mass, pack_extent(m.hx), pack_extent(m.hy), pack_extent(m.hz), {}, {}};
  const PackingBox box = packing_box(p);
  p.centre[0] = pack_position(box, 0, m.moments.x);
  p.centre[1] = pack_position(box, 1, m.moments.y);
  p.centre[2] = pack_position(box, 2, m.moments.z);
  const double x = box.half[0], y = box.half[1], z = box.half[2], mass = m.moments.mass;
  p.q[0] = pack_fraction(m.moments.qxx, mass * x * x);
  p.q[1] = pack_fraction(m.moments.qyy, mass * y * y);
  p.q[2] = pack_fraction(m.moments.qzz, mass * z * z);
  p.q[3] = pack_fraction(m.moments.qxy, mass * x * y);
  p.q[4] = pack_fraction(m.moments.qxz, mass * x * z);
  p.q[5] = pack_fraction(m.moments.qyz, mass * y * z);
  return p;
}

MAKI_HD Multipole unpack_multipole(const PackedMultipole& p) {
  const PackingBox box = packing_box(p);
  Multipole m{{}, p.x, p.y, p.z, box.half[0], box.half[1], box.half[2]};
  m.moments.x = unpack_position(box, 0, p.centre[0]);
  m.moments.y = unpack_position(box, 1, p.centre[1]);
  m.moments.z = unpack_position(box, 2, p.centre[2]);
  m.moments.mass = p.mass;
  const double x = box.half[0], y = box.half[1], z = box.half[2], unit = p.mass / 32767.0;
  m.moments.qxx = static_cast<float>(p.q[0] * unit * x * x);
  m.moments.qyy = static_cast<float>(p.q[1] * unit * y * y);
  m.moments.qzz = static_cast<float>(p.q[2] * unit * z * z);
  m.moments.qxy = static_cast<float>(p.q[3] * unit * x * y);
  m.moments.qxz = static_cast<float>(p.q[4] * unit * x * z);
  m.moments.qyz = static_cast<float>(p.q[5] * unit * y * z);
  return m;
}

}  // namespace maki
