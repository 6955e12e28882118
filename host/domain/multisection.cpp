#include "host/domain/multisection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <parallel/algorithm>

#include "kernels/particles/types.hpp"

namespace maki {
namespace {

// The cut with `fraction` of the samples at coordinate `at` below it, as if these were spread halfway to the next
// coordinates with samples (or ends of the box), `before` and `after`: cuts then follow samples smoothly. In fact all
// of them lie on one side of the cut: below it from a fraction of 1/2 on.
std::uint32_t place_in_gap(std::uint64_t before, std::uint64_t at, std::uint64_t after, double fraction) {
  const std::uint64_t low = before + (at - before + 1) / 2;  // in (before, at], or 0
  const std::uint64_t high = at + (after - at + 1) / 2;      // in (at, after]
  const auto part_of = [](double part, std::uint64_t width) {
    return static_cast<std::uint64_t>(part * static_cast<double>(width));
  };
  if (fraction < 0.5) return static_cast<std::uint32_t>(low + part_of(2 * fraction, at - low));
  const std::uint64_t cut = at + 1 + part_of(2 * fraction - 1, high - at - 1);
  return static_cast<std::uint32_t>(std::min(cut, kUnitsOfSide - 1));
}

// starts[1..n) at the quantiles of `points` along `axis`; sorts the points.
void cut_axis(std::span<SamplePoint> points, std::size_t axis, std::span<std::uint32_t> starts) {
  const std::uint64_t parts = starts.size(), total = points.size();
  if (total == 0) {
    for (std::uint64_t k = 1; k < parts; ++k) starts[k] = static_cast<std::uint32_t>(k * kUnitsOfSide / parts);
    return;
  }
  __gnu_parallel::sort(points.begin(), points.end(),
                       [axis](const SamplePoint& a, const SamplePoint& b) { return a[axis] < b[axis]; });
  std::uint64_t part = 1, previous = 0;
  for (std::uint64_t i = 0; i < total && part < parts;) {
    const std::uint64_t at = points[i][axis], below = i;
    while (i < total && points[i][axis] == at) ++i;
    const std::uint64_t next = i < total ? points[i][axis] : kUnitsOfSide;
    // The parts whose target part/parts of the total lies in (below, i].
    while (part < parts && i * parts >= total * part) {
      const double fraction = static_cast<double>(total * part - below * parts) /
                              (static_cast<double>(i - below) * static_cast<double>(parts));
      starts[part++] = place_in_gap(previous, at, next, fraction);
    }
    previous = at;
  }
}

// Moves part of the way from the old starts to the new. Both ascend, and so does the result.
void follow(std::span<const std::uint32_t> old, double fraction, std::span<std::uint32_t> starts) {
  for (std::size_t k = 1; k < starts.size(); ++k) {
    const double wanted = fraction * (static_cast<double>(starts[k]) - static_cast<double>(old[k]));
    starts[k] = static_cast<std::uint32_t>(static_cast<std::int64_t>(old[k]) + std::llround(wanted));
    starts[k] = std::max(starts[k], starts[k - 1]);  // halves are rounded away from 0
  }
}

struct Window {
  std::uint32_t low, high;  // both inclusive
};

// Points below a cut and cuts by the points below them; the points are sorted along `axis`.
struct SortedPoints {
  std::span<const SamplePoint> points;
  std::size_t axis;

  std::uint64_t below(std::uint32_t cut) const {
    const auto first = std::ranges::lower_bound(points, cut, {}, [this](const SamplePoint& p) { return p[axis]; });
    return static_cast<std::uint64_t>(first - points.begin());
  }
  // The window of all cuts with `least` to `most` points below them; there must be one. Contains 0 only if no other cut
  // will do.
  Window cuts(std::uint64_t least, std::uint64_t most) const {
    const std::uint32_t low = least == 0 ? 1 : points[least - 1][axis] + 1;
    const std::uint32_t high =
        most >= points.size() ? static_cast<std::uint32_t>(kUnitsOfSide - 1) : points[most][axis];
    return {std::min(low, high), high};
  }
};

// The coordinate of the window with the most trailing zero bits. It is unique: between two with equally many lies one
// with more. Monotonic: a window with both ends not below another's has a result not below the other's.
std::uint32_t roundest(Window w) {
  if (w.low >= w.high) return w.high;
  const std::uint32_t highest_difference = std::bit_floor((w.low - 1) ^ w.high);
  return w.high & ~(highest_difference - 1);
}

// Cuts move only to faces of cells at least this many times as wide as their window. Every window contains a face of
// cells of about its own width; a cut there gains nothing, and divides the samples less evenly.
// Interactions times imbalance at 8 ranks and a rounding of 0.03, Plummer sphere, uniform and clumps of 60 000
// particles off the middle of the box, means of four: 1.241 1.192 1.156 with 0, 1.227 1.173 1.135 with 8, 1.228 1.174
// 1.138 without rounding.
constexpr std::uint32_t kWorthMoving = 8;

// The share of a part's samples by which each of its cuts may be off, on any axis.
double tolerance_of_a_cut(Factors f, double rounding) {
  std::uint32_t cuts = 0;  // of one domain
  for (const std::uint32_t parts : {f.x, f.y, f.z}) cuts += std::min(parts - 1, 2u);
  return cuts > 0 ? rounding / cuts : 0;
}

// Moves starts to round coordinates near their `quantiles`. Smoothed starts that are not yet within the tolerance of
// their quantiles stay unchanged: rounding does not hold them back.
void round_starts(const SortedPoints& sorted, std::span<const std::uint32_t> quantiles, double tolerance,
                  std::span<std::uint32_t> starts) {
  const auto most = static_cast<std::uint64_t>(tolerance * static_cast<double>(sorted.points.size()) /
                                               static_cast<double>(starts.size()));
  for (std::size_t k = 1; k < starts.size(); ++k) {
    const std::uint64_t middle = sorted.below(quantiles[k]), now = sorted.below(starts[k]);
    if (std::max(middle, now) - std::min(middle, now) <= most) {
      const Window window = sorted.cuts(middle > most ? middle - most : 0, middle + most);
      const std::uint32_t round = roundest(window);
      if ((round & -round) / kWorthMoving >= window.high - window.low) starts[k] = round;
    }
    starts[k] = std::max(starts[k], starts[k - 1]);  // one may have passed another that is still moving
  }
}

// Cuts along x first, then y and z: each axis by the samples in its parent after smoothing and rounding.
struct Cutter {
  const Domains* previous;  // nullptr: none
  Smoothing smoothing;
  Domains domains;

  void cut(std::span<SamplePoint> points, int axis, std::uint32_t parent) {
    const std::span<std::uint32_t> starts = domains.axis(axis, parent);
    cut_axis(points, static_cast<std::size_t>(axis), starts);
    const std::vector<std::uint32_t> quantiles(starts.begin(), starts.end());
    if (previous) follow(previous->axis(axis, parent), smoothing.fraction, starts);
    const double tolerance = tolerance_of_a_cut(domains.factors(), smoothing.rounding);
    if (tolerance > 0 && starts.size() > 1 && !points.empty())
      round_starts({points, static_cast<std::size_t>(axis)}, quantiles, tolerance, starts);
    if (axis == 2) return;
    const auto parts = static_cast<std::uint32_t>(starts.size());
    const SortedPoints sorted{points, static_cast<std::size_t>(axis)};
#pragma omp parallel for schedule(dynamic) if (axis == 0)
    for (std::uint32_t k = 0; k < parts; ++k) {
      const std::uint64_t first = k == 0 ? 0 : sorted.below(starts[k]);
      const std::uint64_t last = k + 1 == parts ? points.size() : sorted.below(starts[k + 1]);
      cut(points.subspan(first, last - first), axis + 1, parent * parts + k);
    }
  }
};

}  // namespace

Factors choose_factors(int ranks) {
  const auto n = static_cast<std::uint32_t>(ranks);
  Factors best{n, 1, 1};
  for (std::uint32_t z = 1; z * z <= n / z; ++z) {
    if (n % z != 0) continue;
    for (std::uint32_t y = z; y <= n / z / y; ++y)
      if (n / z % y == 0 && n / z / y + y + z < best.x + best.y + best.z) best = {n / z / y, y, z};
  }
  return best;
}

Domains::Domains(Factors factors) : factors_(factors) {
  starts_.resize(factors.x + factors.x * factors.y + factors.count());
  const std::uint32_t parents[3] = {1, factors.x, factors.x * factors.y};
  for (int a = 0; a < 3; ++a)
    for (std::uint32_t p = 0; p < parents[a]; ++p) cut_axis({}, static_cast<std::size_t>(a), axis(a, p));
}

DomainView Domains::view_of(const std::uint32_t* starts) const {
  const std::uint32_t* y = starts + factors_.x;
  return {starts, y, y + factors_.x * factors_.y, factors_.x, factors_.y, factors_.z};
}

std::span<const std::uint32_t> Domains::axis(int axis, std::uint32_t parent) const {
  const DomainView v = view();
  if (axis == 0) return {v.x, v.nx};
  if (axis == 1) return {v.y + parent * v.ny, v.ny};
  return {v.z + parent * v.nz, v.nz};
}

std::span<std::uint32_t> Domains::axis(int a, std::uint32_t parent) {
  const std::span<const std::uint32_t> s = static_cast<const Domains&>(*this).axis(a, parent);
  return {starts_.data() + (s.data() - starts_.data()), s.size()};
}

void Domains::double_box() {
  const std::uint32_t parents[3] = {1, factors_.x, factors_.x * factors_.y};
  for (int a = 0; a < 3; ++a)
    for (std::uint32_t p = 0; p < parents[a]; ++p)
      for (std::uint32_t& start : axis(a, p).subspan(1))
        start = static_cast<std::uint32_t>((std::uint64_t{start} + kUnitsOfSide / 2) / 2);
}

Domains multisect(std::span<const SamplePoint> samples, Factors factors, double rounding) {
  std::vector<SamplePoint> points(samples.begin(), samples.end());
  Cutter cutter{nullptr, {.rounding = rounding}, Domains(factors)};
  cutter.cut(points, 0, 0);
  return cutter.domains;
}

Domains multisect(std::span<const SamplePoint> samples, const Domains& previous, const Smoothing& smoothing) {
  std::vector<SamplePoint> points(samples.begin(), samples.end());
  Cutter cutter{&previous, smoothing, Domains(previous.factors())};
  if (imbalance(points, previous) > smoothing.jump_above) cutter.smoothing.fraction = 1;
  cutter.cut(points, 0, 0);
  return cutter.domains;
}

double imbalance(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0)) return 1;
  return *std::ranges::max_element(weights) * static_cast<double>(weights.size()) / sum;
}

double imbalance(std::span<const SamplePoint> samples, const Domains& domains) {
  std::vector<double> load(static_cast<std::size_t>(domains.count()));
  for (const SamplePoint& p : samples) load[domains.rank_of(p[0], p[1], p[2])] += 1;
  return imbalance(load);
}

}  // namespace maki
