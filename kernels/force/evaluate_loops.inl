// The loops over sources, for every force law. Each instruction-set unit includes this inside an unnamed namespace of
// its own, after its vectors: Wide, Half (for the last targets), WideBits, HalfBits and kHasCoarseRoot. No templates of
// the standard library here.

inline constexpr unsigned kTargets = 256;       // targets at a time
inline constexpr unsigned kSourceBlock = 1024;  // 16 KiB: fits L1 together with the targets
inline constexpr unsigned kCellBlock = 192;     // 9 KiB
inline constexpr unsigned kCellFloats = 12;     // x y z mass xx yy zz xy xz yz trace/2 0

// Targets as arrays by component, padded to whole vectors with copies of the last one, and their sums.
struct Targets {
  alignas(64) float x[kTargets], y[kTargets], z[kTargets];
  alignas(64) float ax[kTargets], ay[kTargets], az[kTargets], p[kTargets];
  unsigned padded;  // a multiple of Half::kLanes
};

struct TargetBits {
  alignas(64) std::uint32_t x[kTargets], y[kTargets], z[kTargets];
};

using Kernel = void (*)(const PairParameters&, const float* sources, unsigned n, Targets&);
using DirectKernel = void (*)(const PairParameters&, const SourceParticle* sources, unsigned n, const TargetBits&,
                              Targets&);

// A block's sum is small beside the total of a long list: summed apart, it loses no digits.
template <bool kPotential, class V>
void add_to(Targets& t, unsigned lane, const PairSums<V>& sum) {
  (V::load(t.ax + lane) + sum.ax).store(t.ax + lane);
  (V::load(t.ay + lane) + sum.ay).store(t.ay + lane);
  (V::load(t.az + lane) + sum.az).store(t.az + lane);
  if constexpr (kPotential) (V::load(t.p + lane) + sum.p).store(t.p + lane);
}

// kOwn: the block may hold the targets themselves; the potential leaves out their 1/s.
template <class Law, bool kOwn, class V>
void particles_on(const PairParameters& k, const float* sources, unsigned n, Targets& t, unsigned lane) {
  const V tx = V::load(t.x + lane), ty = V::load(t.y + lane), tz = V::load(t.z + lane);
  PairSums<V> sum;
#pragma GCC unroll 2
  for (const float *s = sources, *end = sources + 4 * n; s != end; s += 4) {
    const V x = V(s[0]) - tx, y = V(s[1]) - ty, z = V(s[2]) - tz;
    V mass_g, mass_p(0.0f);
    monopole<Law>(k, softened_square<Law>(k, x, y, z), V(s[3]), mass_g, mass_p);
    if constexpr (kOwn) {
      const auto apart = less(V(0.0f), x * x + (y * y + z * z));
      mass_p = where(apart, mass_p, V(s[3]) * own_potential<Law, V>(k));
    }
    sum.ax = sum.ax + mass_g * x;
    sum.ay = sum.ay + mass_g * y;
    sum.az = sum.az + mass_g * z;
    if constexpr (Law::kPotential) sum.p = sum.p + mass_p;
  }
  add_to<Law::kPotential>(t, lane, sum);
}

template <class Law, class V>
void cells_on(const PairParameters& k, const float* cells, unsigned n, Targets& t, unsigned lane) {
  const V tx = V::load(t.x + lane), ty = V::load(t.y + lane), tz = V::load(t.z + lane);
  PairSums<V> sum;
  for (const float *s = cells, *end = cells + kCellFloats * n; s != end; s += kCellFloats) {
    const V x = V(s[0]) - tx, y = V(s[1]) - ty, z = V(s[2]) - tz;
    const CellTerms<V> q{V(s[3]), V(s[4]), V(s[5]), V(s[6]), V(s[7]), V(s[8]), V(s[9]), V(s[10])};
    add_cell<Law>(k, x, y, z, q, sum);
  }
  add_to<Law::kPotential>(t, lane, sum);
}

// Differences of the fixed-point coordinates: the two separations of a pair are equal and opposite to the bit.
// Separations are in last bits (r2 up to 2^64), the law's lengths in units.
template <class Law, class V, class Bits>
void direct_on(const PairParameters& k, const SourceParticle* sources, unsigned n, const TargetBits& b, Targets& t,
               unsigned lane) {
  const Bits tx = Bits::load(b.x + lane), ty = Bits::load(b.y + lane), tz = Bits::load(b.z + lane);
  const V to_unit2(k.bits_to_unit * k.bits_to_unit);
  PairSums<V> sum;
  for (const SourceParticle *s = sources, *end = sources + n; s != end; ++s) {
    const V x = difference(s->x, tx), y = difference(s->y, ty), z = difference(s->z, tz);
    const V r2 = (x * x + (y * y + z * z)) * to_unit2;
    V mass_g, mass_p(0.0f);
    const V s2 = Law::kSpline ? larger(r2, V(k.softening2)) : r2 + V(k.softening2);
    monopole<Law>(k, s2, V(s->mass), mass_g, mass_p);
    if constexpr (Law::kPotential)
      sum.p = sum.p + where(less(V(0.0f), r2), mass_p, V(s->mass) * own_potential<Law, V>(k));
    sum.ax = sum.ax + mass_g * x;
    sum.ay = sum.ay + mass_g * y;
    sum.az = sum.az + mass_g * z;
  }
  add_to<Law::kPotential>(t, lane, sum);
}

// All targets: whole wide vectors, then narrow ones for the rest.
template <class Law, bool kOwn>
void particle_kernel(const PairParameters& k, const float* sources, unsigned n, Targets& t) {
  unsigned lane = 0;
  for (; lane + Wide::kLanes <= t.padded; lane += Wide::kLanes) particles_on<Law, kOwn, Wide>(k, sources, n, t, lane);
  for (; lane < t.padded; lane += Half::kLanes) particles_on<Law, kOwn, Half>(k, sources, n, t, lane);
}

template <class Law>
void cell_kernel(const PairParameters& k, const float* cells, unsigned n, Targets& t) {
  unsigned lane = 0;
  for (; lane + Wide::kLanes <= t.padded; lane += Wide::kLanes) cells_on<Law, Wide>(k, cells, n, t, lane);
  for (; lane < t.padded; lane += Half::kLanes) cells_on<Law, Half>(k, cells, n, t, lane);
}

template <class Law>
void direct_kernel(const PairParameters& k, const SourceParticle* sources, unsigned n, const TargetBits& b,
                   Targets& t) {
  unsigned lane = 0;
  for (; lane + Wide::kLanes <= t.padded; lane += Wide::kLanes)
    direct_on<Law, Wide, WideBits>(k, sources, n, b, t, lane);
  for (; lane < t.padded; lane += Half::kLanes) direct_on<Law, Half, HalfBits>(k, sources, n, b, t, lane);
}

// near: sources may be targets themselves, or softened by the spline. particles and cells: neither.
struct Kernels {
  Kernel particles, near, cells, near_cells;
  DirectKernel direct;
};

template <class Law, class Direct>
Kernels kernels_of_law() {
  using Beyond = typename Law::Beyond;
  return {particle_kernel<Beyond, false>, particle_kernel<Law, Law::kPotential>, cell_kernel<Beyond>, cell_kernel<Law>,
          direct_kernel<Direct>};
}

template <Split kSplit, int kOrder, Softening kSoftening, bool kPotential>
Kernels kernels_of(bool refine) {
  using Exact = PairLaw<kSplit, kOrder, kSoftening, kPotential, true>;
  if constexpr (kHasCoarseRoot) {
    using Coarse = PairLaw<kSplit, kOrder, kSoftening, kPotential, false>;
    if (!refine) return kernels_of_law<Coarse, Exact>();
  }
  (void)refine;
  return kernels_of_law<Exact, Exact>();
}

template <Softening kSoftening, bool kPotential>
Kernels kernels_by_split(const PairParameters& k) {
  const bool r = k.refine_root;
  if (k.split == Split::kNone) return kernels_of<Split::kNone, 0, kSoftening, kPotential>(r);
  if (k.split == Split::kS2) return kernels_of<Split::kS2, 0, kSoftening, kPotential>(r);
  switch (k.order) {
    case 3: return kernels_of<Split::kPolynomial, 3, kSoftening, kPotential>(r);
    case 4: return kernels_of<Split::kPolynomial, 4, kSoftening, kPotential>(r);
    case 5: return kernels_of<Split::kPolynomial, 5, kSoftening, kPotential>(r);
    case 6: return kernels_of<Split::kPolynomial, 6, kSoftening, kPotential>(r);
    default: return kernels_of<Split::kPolynomial, 8, kSoftening, kPotential>(r);
  }
}

inline Kernels choose_kernels(const PairParameters& k, bool potential) {
  if (k.softening == Softening::kSpline)
    return potential ? kernels_by_split<Softening::kSpline, true>(k) : kernels_by_split<Softening::kSpline, false>(k);
  return potential ? kernels_by_split<Softening::kPlummer, true>(k) : kernels_by_split<Softening::kPlummer, false>(k);
}
