// Particles in 6 bytes and multipoles in 40 in place of 16 and 64.
//
// Positions are 16 bits an axis of a box: a particle's of that of its leaf's parent, a centre of mass's of its cell's.
// The box's half extents keep 8 bits of mantissa, rounded up, and second moments are 16 bits of their bound
// m h_i h_j. So positions are wrong by up to 1.5e-5 of a half extent. Masses of particles do not change between
// rebuilds and are sent with those only.
#pragma once

#include <cstdint>
#include <cstring>

#include "host/let/blocks.hpp"

namespace maki {

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
  float half[3];  // sides; of 8 bits
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
