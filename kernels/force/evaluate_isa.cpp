// List evaluation and direct sum on the CPU for every force law, compiled once for each instruction set, in a namespace
// of its name. No templates of the standard library here.
#include "kernels/force/evaluate_cpu.hpp"
#include "kernels/force/vectors_cpu.hpp"

namespace maki::MAKI_INSTRUCTION_SET {
namespace {

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
template <class Law, class V>
void direct_on(const PairParameters& k, const SourceParticle* sources, unsigned n, const TargetBits& b, Targets& t,
               unsigned lane) {
  using At = Coordinates<V>;
  const At tx = At::load(b.x + lane), ty = At::load(b.y + lane), tz = At::load(b.z + lane);
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
  for (; lane + Wide::kLanes <= t.padded; lane += Wide::kLanes) direct_on<Law, Wide>(k, sources, n, b, t, lane);
  for (; lane < t.padded; lane += Half::kLanes) direct_on<Law, Half>(k, sources, n, b, t, lane);
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

template <class Exact>
Kernels kernels_of(bool refine) {
  if constexpr (kHasCoarseRoot) {
    using Coarse = PairLaw<Exact::kSplit, Exact::kOrder, Exact::kSoftening, Exact::kPotential, false>;
    if (!refine) return kernels_of_law<Coarse, Exact>();
  }
  (void)refine;
  return kernels_of_law<Exact, Exact>();
}

inline Kernels choose_kernels(const PairParameters& k, bool potential) {
  return with_law(k, potential, [&](auto law) { return kernels_of<decltype(law)>(k.refine_root); });
}

inline unsigned padded_count(unsigned count) { return (count + Half::kLanes - 1) / Half::kLanes * Half::kLanes; }

inline void clear_sums(Targets& t) {
  for (unsigned i = 0; i < t.padded; ++i) t.ax[i] = t.ay[i] = t.az[i] = t.p[i] = 0;
}

// Sources collected until a block is full.
template <unsigned kFloats, unsigned kBlock>
struct Block {
  alignas(64) float data[kFloats * (kBlock + 16)];  // gathering may write up to 15 records too many
  unsigned n = 0;
};

class GroupEvaluation {
 public:
  GroupEvaluation(const GroupParameters& all, const GroupTask& task, unsigned first, unsigned count)
      : all_(all), k_(all.points), task_(task), kernels_(choose_kernels(k_, task.potential != nullptr)), first_(first),
        count_(count) {
    centre_[0] = task.group.x, centre_[1] = task.group.y, centre_[2] = task.group.z;
    targets_.padded = padded_count(count);
    gather_particles(task.targets + first, count, centre_, k_.bits_to_unit, far_.data);
    for (unsigned i = 0; i < targets_.padded; ++i) {
      const float* s = far_.data + 4 * (i < count ? i : count - 1);
      targets_.x[i] = s[0], targets_.y[i] = s[1], targets_.z[i] = s[2];
    }
    clear_sums(targets_);
    if (spline_) set_reach();
  }

  void run() {
    const std::uint32_t* cells = task_.words;
    const std::uint32_t* leaves = task_.words + task_.list.cells;
    if (task_.quadrupoles)
      add_cells(cells);
    else
      add_cells_as_points(cells);
    add_leaves(leaves);
    store();
  }

 private:
  // Sets the distance from the group's centre, by axis, beyond which the spline softens nothing.
  void set_reach() {
    for (float& reach : reach_) reach = 0;
    for (unsigned i = 0; i < count_; ++i) {
      const float at[3] = {targets_.x[i], targets_.y[i], targets_.z[i]};
      for (int axis = 0; axis < 3; ++axis) {
        const float from_centre = __builtin_fabsf(at[axis]);
        if (reach_[axis] < from_centre) reach_[axis] = from_centre;
      }
    }
    for (float& reach : reach_) reach = (reach + 1 / k_.spline_inverse_h) * (1 + 0x1p-20f);
  }

  void add_cells(const std::uint32_t* words) {
    Block<kCellFloats, kCellBlock> far, near;
    const float moment_scale = 1 / (k_.unit * k_.unit);
    for (unsigned w = 0; w < task_.list.cells; ++w) {
      prefetch_cell(words, w);
      float* const cell = far.data + kCellFloats * far.n;
      gather_cell(task_.cells[words[w]], centre_, k_.bits_to_unit, moment_scale, cell);
      if (spline_ && is_within_reach(cell)) {
        __builtin_memcpy(near.data + kCellFloats * near.n, cell, kCellFloats * sizeof(float));
        if (++near.n == kCellBlock) flush(all_.cells, kernels_.near_cells, near);
      } else if (++far.n == kCellBlock) {
        flush(all_.cells, kernels_.cells, far);
      }
    }
    flush(all_.cells, kernels_.cells, far);
    flush(all_.cells, kernels_.near_cells, near);
  }

  void add_cells_as_points(const std::uint32_t* words) {
    SourceParticle points[16];
    for (unsigned w = 0; w < task_.list.cells;) {
      unsigned n = 0;
      for (; n < 16 && w < task_.list.cells; ++n, ++w) {
        prefetch_cell(words, w);
        const CellMoments& c = task_.cells[words[w]];
        points[n] = {c.x, c.y, c.z, c.mass};
      }
      add_particles(points, n, false);
    }
  }

  void add_leaves(const std::uint32_t* words) {
    for (unsigned w = 0; w < task_.list.leaves; ++w) {
      prefetch_leaf(words, w);
      const unsigned first = task_.cell_first[words[w]], count = task_.cell_count[words[w]];
      const bool overlap = task_.targets == task_.particles && first < first_ + count_ && first_ < first + count;
      const bool own = task_.potential && (task_.at_points || overlap);
      add_particles(task_.particles + first, count, own);
    }
    flush(k_, kernels_.particles, far_);
    flush(k_, kernels_.near, near_);
  }

  void prefetch_cell(const std::uint32_t* words, unsigned w) const {
    if (w + kAhead >= task_.list.cells) return;
    const CellMoments* next = task_.cells + words[w + kAhead];
    __builtin_prefetch(next);
    __builtin_prefetch(&next->qyz);  // a record may lie across two cache lines
  }

  void prefetch_leaf(const std::uint32_t* words, unsigned w) const {
    if (w + 2 * kAhead < task_.list.leaves) {
      __builtin_prefetch(task_.cell_first + words[w + 2 * kAhead]);
      __builtin_prefetch(task_.cell_count + words[w + 2 * kAhead]);
    }
    if (w + kAhead < task_.list.leaves) {
      const SourceParticle* next = task_.particles + task_.cell_first[words[w + kAhead]];
      for (int line = 0; line < 4; ++line) __builtin_prefetch(next + 4 * line);  // a typical leaf
    }
  }

  // own: the particles may include targets. Sixteen at a time, without a branch on their distance: two in ten leaves
  // are near, in an order that a processor cannot predict.
  void add_particles(const SourceParticle* from, unsigned count, bool own) {
    for (unsigned done = 0; done < count; done += 16) {
      const unsigned take = count - done < 16 ? count - done : 16;
      if (far_.n + take > kSourceBlock) flush(k_, kernels_.particles, far_);
      if (near_.n + take > kSourceBlock) flush(k_, kernels_.near, near_);
      float* const places[2] = {far_.data + 4 * far_.n, near_.data + 4 * near_.n};
      bool is_near = own;
      if (spline_)
        is_near |= gather_sixteen(from + done, take, centre_, k_.bits_to_unit, reach_, places);
      else
        gather_particles(from + done, take, centre_, k_.bits_to_unit, places[own ? 1 : 0]);
      far_.n += is_near ? 0 : take;
      near_.n += is_near ? take : 0;
    }
  }

  bool is_within_reach(const float* at) const {
    return __builtin_fabsf(at[0]) < reach_[0] && __builtin_fabsf(at[1]) < reach_[1] &&
           __builtin_fabsf(at[2]) < reach_[2];
  }

  template <class AnyBlock>
  void flush(const PairParameters& k, Kernel kernel, AnyBlock& block) {
    if (block.n > 0) kernel(k, block.data, block.n, targets_);
    block.n = 0;
  }

  void store() const {
    const float a = all_.force_scale / (k_.unit * k_.unit);
    store(targets_.ax, a, task_.ax);
    store(targets_.ay, a, task_.ay);
    store(targets_.az, a, task_.az);
    if (task_.potential) store(targets_.p, -all_.potential_scale / k_.unit, task_.potential);
  }

  void store(const float* sums, float scale, float* out) const {
    out += first_;
    if (task_.add) {
      for (unsigned i = 0; i < count_; ++i) out[i] += sums[i] * scale;
    } else {
      for (unsigned i = 0; i < count_; ++i) out[i] = sums[i] * scale;
    }
  }

  static constexpr unsigned kAhead = 8;  // list words between a prefetch and its use

  const GroupParameters& all_;
  const PairParameters& k_;  // of points
  const GroupTask& task_;
  const Kernels kernels_;
  const bool spline_ = k_.softening == Softening::kSpline;
  const unsigned first_, count_;
  alignas(16) std::uint32_t centre_[4] = {0, 0, 0, 0};  // three coordinates
  float reach_[4] = {0, 0, 0, 0};                       // three axes: set_reach
  Targets targets_;
  Block<4, kSourceBlock> far_, near_;
};

// Mean relative errors of the coarse root and of its cube, over all mantissas alike. (A static variable for them would
// bring symbols that the linker shares among the instruction sets.)
struct RootErrors {
  double one, cube;
};

RootErrors mean_root_errors() {
  RootErrors sum{0, 0};
  double weights = 0;
  constexpr int kPoints = 1 << 10;                // some microseconds
  constexpr double kGolden = 0.6180339887498949;  // even steps could coincide with those of the processor's table
  alignas(64) float x[Wide::kLanes], y[Wide::kLanes];
  for (int i = 0; i < kPoints; i += Wide::kLanes) {
    for (unsigned lane = 0; lane < Wide::kLanes; ++lane) {
      const double turns = kGolden * (i + static_cast<int>(lane));
      x[lane] = static_cast<float>(1 + 3 * (turns - static_cast<int>(turns)));
    }
    reciprocal_root(Wide::load(x), Root<!kHasCoarseRoot>{}).store(y);
    for (unsigned lane = 0; lane < Wide::kLanes; ++lane) {
      const double weight = 1 / static_cast<double>(x[lane]), root = y[lane] * __builtin_sqrt(x[lane]);
      weights += weight;
      sum.one += weight * (root - 1);
      sum.cube += weight * (root * root * root - 1);
    }
  }
  return {sum.one / weights, sum.cube / weights};
}

// Scales the polynomials, which are subtracted from the roots, by the roots' mean error there; the sums are scaled
// back. A point's force is the cube of a root less the polynomial; a cell's polynomial is multiplied by the root's
// square.
GroupParameters centred(const PairParameters& law) {
  GroupParameters k{law, law, 1, 1};
  if (!kHasCoarseRoot || law.refine_root) return k;
  const RootErrors mean = mean_root_errors();
  const double cube = 1 + mean.cube, one = 1 + mean.one;
  for (int j = 0; j <= kMaxSplitOrder; ++j) {
    k.points.force[j] = static_cast<float>(law.force[j] * cube);
    k.cells.force[j] = static_cast<float>(law.force[j] * cube / (one * one));
  }
  for (int j = 0; j <= kMaxSplitOrder + 1; ++j)
    k.points.potential[j] = k.cells.potential[j] = static_cast<float>(law.potential[j] * one);
  k.force_scale = static_cast<float>(1 / cube);
  k.potential_scale = static_cast<float>(1 / one);
  return k;
}

void evaluate_group(const GroupParameters& k, const GroupTask& task) {
  for (unsigned done = 0; done < task.group.count; done += kTargets) {
    const unsigned left = task.group.count - done;
    GroupEvaluation(k, task, task.group.first + done, left < kTargets ? left : kTargets).run();
  }
}

void direct_chunk(const PairParameters& k, const DirectTask& task, unsigned first, unsigned count) {
  const Kernels kernels = choose_kernels(k, task.potential != nullptr);
  TargetBits bits;
  Targets targets;
  targets.padded = padded_count(count);
  for (unsigned i = 0; i < targets.padded; ++i) {
    const SourceParticle& s = task.particles[task.first + first + (i < count ? i : count - 1)];
    bits.x[i] = s.x, bits.y[i] = s.y, bits.z[i] = s.z;
  }
  clear_sums(targets);
  for (std::uint32_t j = 0; j < task.n; j += kSourceBlock) {
    const unsigned left = task.n - j;
    kernels.direct(k, task.particles + j, left < kSourceBlock ? left : kSourceBlock, bits, targets);
  }
  const float a = k.bits_to_unit / (k.unit * k.unit), p = -1 / k.unit;
  for (unsigned i = 0; i < count; ++i) {
    task.ax[first + i] = targets.ax[i] * a;
    task.ay[first + i] = targets.ay[i] * a;
    task.az[first + i] = targets.az[i] * a;
    if (task.potential) task.potential[first + i] = targets.p[i] * p;
  }
}

void direct(const PairParameters& k, const DirectTask& task) {
  for (unsigned done = 0; done < task.count; done += kTargets) {
    const unsigned left = task.count - done;
    direct_chunk(k, task, done, left < kTargets ? left : kTargets);
  }
}

float loop(const PairParameters& k, const LoopTask& task) {
  const Kernels kernels = choose_kernels(k, task.potential);
  Targets targets;
  targets.padded = task.targets;
  for (unsigned i = 0; i < task.targets; ++i) {
    targets.x[i] = 0.001f * static_cast<float>(i % 7);
    targets.y[i] = 0.001f * static_cast<float>(i % 11);
    targets.z[i] = 0.001f * static_cast<float>(i % 13);
  }
  clear_sums(targets);
  const Kernel kernel = task.cells ? kernels.cells : kernels.particles;
  for (unsigned i = 0; i < task.repeat; ++i) kernel(k, task.sources, task.n, targets);
  float sum = 0;
  for (unsigned i = 0; i < task.targets; ++i) sum += targets.ax[i] + targets.p[i];
  return sum;
}

}  // namespace

const ForceKernels kForceKernels = {centred, evaluate_group, direct, loop};

}  // namespace maki::MAKI_INSTRUCTION_SET
