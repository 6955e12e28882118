// List evaluation for the CPU, shared by the instruction-set units. Each includes it inside an unnamed namespace of its
// own, with Wide, Half (its vectors; Half for the last few targets), WideBits, HalfBits, gather_particles and
// gather_moments defined before. No templates of the standard library here.

inline constexpr unsigned kTargets = 256;      // targets at a time
inline constexpr unsigned kSourceBlock = 512;  // 8 KiB: with the targets well inside L1
inline constexpr unsigned kCellBlock = 192;    // 9 KiB
inline constexpr unsigned kCellFloats = 12;    // x y z mass xx yy zz xy xz yz trace 0

// Targets as arrays by component, padded with copies of the last to whole vectors, and their sums.
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

template <class V>
struct Sums {
  V ax{0.0f}, ay{0.0f}, az{0.0f}, p{0.0f};

  // A block's sum is small beside the total of a long list: added up apart, it keeps its digits.
  template <bool kPotential>
  void add_to(Targets& t, unsigned lane) const {
    (V::load(t.ax + lane) + ax).store(t.ax + lane);
    (V::load(t.ay + lane) + ay).store(t.ay + lane);
    (V::load(t.az + lane) + az).store(t.az + lane);
    if constexpr (kPotential) (V::load(t.p + lane) + p).store(t.p + lane);
  }
};

// kOwn: the block may hold the targets themselves, whose 1/s the potential leaves out.
template <class Law, bool kOwn, class V>
void particles_on(const PairParameters& k, const float* sources, unsigned n, Targets& t, unsigned lane) {
  const V tx = V::load(t.x + lane), ty = V::load(t.y + lane), tz = V::load(t.z + lane);
  Sums<V> sum;
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
  sum.template add_to<Law::kPotential>(t, lane);
}

template <class Law, class V>
void cells_on(const PairParameters& k, const float* cells, unsigned n, Targets& t, unsigned lane) {
  const V tx = V::load(t.x + lane), ty = V::load(t.y + lane), tz = V::load(t.z + lane);
  Sums<V> sum;
  for (const float *s = cells, *end = cells + kCellFloats * n; s != end; s += kCellFloats) {
    const V x = V(s[0]) - tx, y = V(s[1]) - ty, z = V(s[2]) - tz;
    const CellTerms<V> q{V(s[3]), V(s[4]), V(s[5]), V(s[6]), V(s[7]), V(s[8]), V(s[9]), V(s[10])};
    add_cell<Law>(k, x, y, z, q, sum.ax, sum.ay, sum.az, sum.p);
  }
  sum.template add_to<Law::kPotential>(t, lane);
}

// Differences of the fixed-point coordinates themselves: a pair's two separations are equal and opposite to the bit.
// Separations stay in last bits (r2 up to 2^64), the law sees units.
template <class Law, class V, class Bits>
void direct_on(const PairParameters& k, const SourceParticle* sources, unsigned n, const TargetBits& b, Targets& t,
               unsigned lane) {
  const Bits tx = Bits::load(b.x + lane), ty = Bits::load(b.y + lane), tz = Bits::load(b.z + lane);
  const V to_unit2(k.bits_to_unit * k.bits_to_unit);
  Sums<V> sum;
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
  sum.template add_to<Law::kPotential>(t, lane);
}

// All targets: whole vectors, then what is left with the narrow ones.
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
  for (; lane + Wide::kLanes <= t.padded; lane += Wide::kLanes) direct_on<Law, Wide, WideBits>(k, sources, n, b, t, lane);
  for (; lane < t.padded; lane += Half::kLanes) direct_on<Law, Half, HalfBits>(k, sources, n, b, t, lane);
}

struct Kernels {
  Kernel particles, own, cells;
  DirectKernel direct;
};

template <Split kSplit, int kOrder, Softening kSoftening, bool kPotential>
Kernels kernels_of(bool refine) {
  using Exact = PairLaw<kSplit, kOrder, kSoftening, kPotential, true>;
  if constexpr (kHasCoarseRoot && kSoftening == Softening::kPlummer) {
    using Coarse = PairLaw<kSplit, kOrder, kSoftening, kPotential, false>;
    if (!refine)
      return {particle_kernel<Coarse, false>, particle_kernel<Coarse, kPotential>, cell_kernel<Coarse>,
              direct_kernel<Exact>};
  }
  (void)refine;
  return {particle_kernel<Exact, false>, particle_kernel<Exact, kPotential>, cell_kernel<Exact>, direct_kernel<Exact>};
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

inline unsigned padded_count(unsigned count) { return (count + Half::kLanes - 1) / Half::kLanes * Half::kLanes; }

inline void clear_sums(Targets& t) {
  for (unsigned i = 0; i < t.padded; ++i) t.ax[i] = t.ay[i] = t.az[i] = t.p[i] = 0;
}

// Sources wait here until a block is full.
template <unsigned kFloats, unsigned kBlock>
struct Block {
  alignas(64) float data[kFloats * (kBlock + 4)];  // gathering may write a vector too much
  unsigned n = 0;
};

class GroupEvaluation {
 public:
  GroupEvaluation(const PairParameters& k, const GroupTask& task, unsigned first, unsigned count)
      : k_(k), task_(task), kernels_(choose_kernels(k, task.potential != nullptr)), first_(first), count_(count) {
    centre_[0] = task.group.x, centre_[1] = task.group.y, centre_[2] = task.group.z;
    targets_.padded = padded_count(count);
    for (unsigned i = 0; i < targets_.padded; ++i) {
      const SourceParticle& s = task.particles[first + (i < count ? i : count - 1)];
      targets_.x[i] = relative(s.x, centre_[0]);
      targets_.y[i] = relative(s.y, centre_[1]);
      targets_.z[i] = relative(s.z, centre_[2]);
    }
    clear_sums(targets_);
  }

  void run() {
    const std::uint32_t* cells = task_.words;
    const std::uint32_t* leaves = task_.words + task_.cell_words;
    if (task_.quadrupoles)
      add_cells(cells);
    else
      add_cells_as_points(cells);
    add_leaves(leaves);
    store();
  }

 private:
  float relative(std::uint32_t to, std::uint32_t from) const {
    return static_cast<float>(static_cast<std::int32_t>(to - from)) * k_.bits_to_unit;
  }

  void add_cells(const std::uint32_t* words) {
    Block<kCellFloats, kCellBlock> block;
    const float moment_scale = 1 / (k_.unit * k_.unit);
    for (unsigned w = 0; w < task_.cell_words; ++w) {
      if (w + kAhead < task_.cell_words) __builtin_prefetch(task_.cells + words[w + kAhead]);
      gather_cell(task_.cells[words[w]], centre_, k_.bits_to_unit, moment_scale, block.data + kCellFloats * block.n);
      if (++block.n == kCellBlock) flush(kernels_.cells, block);
    }
    flush(kernels_.cells, block);
  }

  void add_cells_as_points(const std::uint32_t* words) {
    for (unsigned w = 0; w < task_.cell_words; ++w) {
      if (w + kAhead < task_.cell_words) __builtin_prefetch(task_.cells + words[w + kAhead]);
      const CellMoments& c = task_.cells[words[w]];
      const SourceParticle point{c.x, c.y, c.z, c.mass};
      add_particles(points_, kernels_.particles, &point, 1);
    }
  }

  void add_leaves(const std::uint32_t* words) {
    for (unsigned w = 0; w < task_.leaf_words; ++w) {
      prefetch_leaf(words, w);
      const unsigned first = task_.cell_first[words[w]], count = task_.cell_count[words[w]];
      const bool own = task_.potential && first < first_ + count_ && first_ < first + count;
      if (own)
        add_particles(own_, kernels_.own, task_.particles + first, count);
      else
        add_particles(points_, kernels_.particles, task_.particles + first, count);
    }
    flush(kernels_.particles, points_);
    flush(kernels_.own, own_);
  }

  void prefetch_leaf(const std::uint32_t* words, unsigned w) const {
    if (w + 2 * kAhead < task_.leaf_words) {
      __builtin_prefetch(task_.cell_first + words[w + 2 * kAhead]);
      __builtin_prefetch(task_.cell_count + words[w + 2 * kAhead]);
    }
    if (w + kAhead < task_.leaf_words) {
      const SourceParticle* next = task_.particles + task_.cell_first[words[w + kAhead]];
      __builtin_prefetch(next);
      __builtin_prefetch(next + 4);
    }
  }

  void add_particles(Block<4, kSourceBlock>& block, Kernel kernel, const SourceParticle* from, unsigned count) {
    while (count > 0) {
      const unsigned room = kSourceBlock - block.n, take = count < room ? count : room;
      gather_particles(from, take, centre_, k_.bits_to_unit, block.data + 4 * block.n);
      block.n += take;
      from += take;
      count -= take;
      if (block.n == kSourceBlock) flush(kernel, block);
    }
  }

  template <class AnyBlock>
  void flush(Kernel kernel, AnyBlock& block) {
    if (block.n > 0) kernel(k_, block.data, block.n, targets_);
    block.n = 0;
  }

  void store() const {
    const float a = 1 / (k_.unit * k_.unit), p = -1 / k_.unit;
    for (unsigned i = 0; i < count_; ++i) {
      task_.ax[first_ + i] = targets_.ax[i] * a;
      task_.ay[first_ + i] = targets_.ay[i] * a;
      task_.az[first_ + i] = targets_.az[i] * a;
      if (task_.potential) task_.potential[first_ + i] = targets_.p[i] * p;
    }
  }

  static constexpr unsigned kAhead = 8;  // list words between a prefetch and its use

  const PairParameters& k_;
  const GroupTask& task_;
  const Kernels kernels_;
  const unsigned first_, count_;
  std::uint32_t centre_[3];
  Targets targets_;
  Block<4, kSourceBlock> points_, own_;
};

void evaluate_group(const PairParameters& k, const GroupTask& task) {
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
