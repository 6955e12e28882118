#include "host/domain/sampling.hpp"

#include <Random123/philox.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>

#include <algorithm>
#include <ranges>

#include "kernels/device/launch.cuh"
#include "kernels/device/thrust.cuh"

namespace maki {

namespace {

struct CostOf {
  Costs costs;
  MAKI_HD std::uint64_t operator()(std::size_t i) const {
    const std::uint64_t own = costs.cost ? costs.cost[i] : costs.groups ? costs.groups[i].count : 1;
    return own + std::uint64_t{costs.each} * (costs.groups ? costs.groups[i].count : 1u);
  }
};

// Finds the group by bisection, and the particle in it by proportion.
struct FindParticle {
  Costs costs;
  const std::uint64_t* below;  // count + 1 entries
  const std::uint64_t* at;
  const SourceParticle* source;
  std::uint32_t* points;  // x, y, z of each
  MAKI_HD void operator()(std::size_t k) const {
    std::size_t i = interval_of(below, static_cast<std::uint32_t>(costs.count), at[k]);
    if (costs.groups) {
      const Group group = costs.groups[i];
      const std::uint64_t into = at[k] - below[i], whole = below[i + 1] - below[i];
      i = group.first + static_cast<std::size_t>(into * group.count / whole);
    }
    const SourceParticle p = source[i];
    points[3 * k] = p.x;
    points[3 * k + 1] = p.y;
    points[3 * k + 2] = p.z;
  }
};

}  // namespace

CostSums::CostSums(const Stream& stream, const Costs& costs, std::size_t particles) : costs_(costs) {
  if (!costs.cost && !costs.groups) costs_.count = particles;
  below_.resize(costs_.count + 1);
  below_.fill_zero(stream);
  if (costs_.count == 0) return;
  PoolAllocator allocator{"samples.scratch"};
  const auto cost = thrust::make_transform_iterator(thrust::counting_iterator<std::size_t>(0), CostOf{costs_});
  thrust::inclusive_scan(thrust_policy(stream, allocator), cost, cost + static_cast<std::ptrdiff_t>(costs_.count),
                         below_.data() + 1);
  copy_to_host(stream, &total_, below_.data() + costs_.count, sizeof total_);
}

std::vector<SamplePoint> CostSums::particles_at(const Stream& stream, const SourceParticle* source,
                                                const std::vector<std::uint64_t>& at) const {
  DeviceBuffer<std::uint64_t> places("samples.places");
  DeviceBuffer<std::uint32_t> packed("samples.points", 3 * at.size());
  places.upload(stream, at);
  launch(stream, "sample_particles", at.size(),
         FindParticle{costs_, below_.data(), places.data(), source, packed.data()});
  std::vector<SamplePoint> points(at.size());
  static_assert(sizeof(SamplePoint) == 3 * sizeof(std::uint32_t));
  copy_to_host(stream, points.data(), packed.data(), points.size() * sizeof(SamplePoint));
  return points;
}

namespace {

struct GroupCost {
  const std::uint32_t* cell_count;
  ListView lists;
  std::uint32_t cell_cost;
  std::uint32_t* cost;
  bool add;
  MAKI_HD void operator()(std::size_t i) const {
    const std::size_t g = lists.selected ? lists.selected[i] : i;
    const ListRange range = lists.ranges[g];
    const std::uint32_t* const leaves = lists.words + range.begin + range.cells;
    std::uint64_t sources = std::uint64_t{cell_cost} * range.cells;
    for (std::uint32_t k = 0; k < range.leaves; ++k) sources += cell_count[leaves[k]];
    const std::uint64_t product = sources * lists.groups[g].count + (add ? cost[g] : 0u);
    cost[g] = product < 0xffffffffu ? static_cast<std::uint32_t>(product) : 0xffffffffu;
  }
};

}  // namespace

void group_costs(const Stream& stream, const std::uint32_t* cell_count, const ListView& lists, std::uint32_t cell_cost,
                 std::uint32_t* cost, bool add) {
  launch(stream, "group_costs", lists.count, GroupCost{cell_count, lists, cell_cost, cost, add});
}

namespace {

using Unsigned128 = unsigned __int128;

// a b / c without overflow; the result fits.
std::uint64_t scaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<std::uint64_t>(Unsigned128{a} * b / c);
}

// The strata of all ranks: `count` samples over `total`; rank r has those in [below[r], below[r + 1]).
struct Strata {
  std::uint64_t count, total, step;
  std::vector<std::uint64_t> below;

  // The first sample of rank r; r = ranks gives `count`.
  std::uint64_t first_of(std::size_t r) const {
    const auto samples = std::views::iota(std::uint64_t{0}, count);
    const auto is_before = [&](std::uint64_t k) { return sample_cost(k, count, total, step) < below[r]; };
    return static_cast<std::uint64_t>(std::ranges::partition_point(samples, is_before) - samples.begin());
  }
};

// Gives samples [first[r], first[r + 1]) of each rank r to all ranks: first to blocks of equal length, one a rank, so
// that an uneven start (everything on one rank) costs no more than an even one.
std::vector<SamplePoint> share(const Communicator& communicator, const std::vector<std::uint64_t>& first,
                               const std::vector<SamplePoint>& mine) {
  const auto ranks = static_cast<std::uint64_t>(communicator.size());
  const auto self = static_cast<std::uint64_t>(communicator.rank());
  const std::uint64_t count = first.back(), length = (count + ranks - 1) / ranks;
  std::vector<SamplePoint> block(length), all(length * ranks);
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (std::uint64_t r = 0; r < ranks; ++r) {
    const auto overlap = [&](std::uint64_t owner, std::uint64_t holder) {
      const std::uint64_t begin = std::max(first[owner], holder * length);
      const std::uint64_t end = std::min(first[owner + 1], (holder + 1) * length);
      return std::pair(begin, begin < end ? end - begin : 0);
    };
    const auto [sent, to_send] = overlap(self, r);
    if (to_send > 0)
      out.push_back({static_cast<int>(r), mine.data() + (sent - first[self]), to_send * sizeof(SamplePoint)});
    const auto [got, to_get] = overlap(r, self);
    if (to_get > 0)
      in.push_back({static_cast<int>(r), block.data() + (got - self * length), to_get * sizeof(SamplePoint)});
  }
  communicator.exchange(out, in);
  communicator.all_gather(block.data(), all.data(), length * sizeof(SamplePoint));
  all.resize(count);
  return all;
}

// Total weight of each rank's particles: its time where all ranks with costs give one, else its cost.
std::vector<std::uint64_t> weigh_ranks(const Communicator& communicator, std::uint64_t cost, double seconds) {
  constexpr double kNanoseconds = 1e9;
  struct Own {
    std::uint64_t cost, time;
  };
  const Own own{cost, seconds > 0 ? static_cast<std::uint64_t>(seconds * kNanoseconds) + 1 : 0};
  const std::vector<Own> all = gathered(communicator, own);
  const bool timed = std::ranges::all_of(all, [](const Own& o) { return o.cost == 0 || o.time > 0; });
  std::vector<std::uint64_t> weights;
  for (const Own& o : all) weights.push_back(timed && o.cost > 0 ? o.time : o.cost);
  return weights;
}

}  // namespace

std::uint64_t sample_cost(std::uint64_t k, std::uint64_t count, std::uint64_t total, std::uint64_t step) {
  const std::uint64_t begin = scaled(k, total, count), end = scaled(k + 1, total, count);
  using Generator = r123::Philox4x32;
  const Generator::ctr_type counter{{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32),
                                     static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)}};
  const Generator::ctr_type random = Generator()(counter, Generator::key_type{{0x646f6d61u, 0x696e7321u}});
  const std::uint64_t fraction = std::uint64_t{random[1]} << 32 | random[0];  // of 2^64
  return begin + static_cast<std::uint64_t>(Unsigned128{fraction} * (end - begin) >> 64);
}

Samples gather_samples(const Stream& stream, const Communicator& communicator, const Particles& particles,
                       const Costs& costs, std::uint64_t step, std::uint64_t per_rank) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto self = static_cast<std::size_t>(communicator.rank());
  CostSums sums(stream, costs, particles.size());
  std::vector<std::uint64_t> weight = weigh_ranks(communicator, sums.total(), costs.seconds);
  if (std::ranges::max(weight) == 0) {
    sums = CostSums(stream, {}, particles.size());
    weight = weigh_ranks(communicator, sums.total(), 0);
  }
  Strata strata{0, 0, step, {0}};
  for (const std::uint64_t w : weight) strata.below.push_back(strata.below.back() + w);
  Samples samples;
  samples.cost = strata.total = strata.below.back();
  if (strata.total == 0) return samples;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 18, kLeastPerRank = 500;
  strata.count = std::min({per_rank * ranks, std::max(kMost, kLeastPerRank * ranks), strata.total});
  samples.imbalance =
      static_cast<double>(std::ranges::max(weight)) * static_cast<double>(ranks) / static_cast<double>(strata.total);

  std::vector<std::uint64_t> first;
  for (std::size_t r = 0; r <= ranks; ++r) first.push_back(strata.first_of(r));
  std::vector<std::uint64_t> places;  // as sums of this rank's cost
  for (std::uint64_t k = first[self]; k < first[self + 1]; ++k)
    places.push_back(
        scaled(sample_cost(k, strata.count, strata.total, step) - strata.below[self], sums.total(), weight[self]));
  samples.points = share(communicator, first, sums.particles_at(stream, particles.source.data(), places));
  return samples;
}

}  // namespace maki
