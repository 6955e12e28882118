#include "host/domain/sampling.hpp"

#include <thrust/iterator/transform_iterator.h>
#include <thrust/scan.h>

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

// The group by bisection, and in it the particle in proportion.
struct FindParticle {
  Costs costs;
  const std::uint64_t* below;  // count + 1 entries
  const std::uint64_t* at;
  const SourceParticle* source;
  std::uint32_t* points;  // x, y, z of each
  MAKI_HD void operator()(std::size_t k) const {
    std::size_t low = 0, high = costs.count;  // below[low] <= at < below[high]
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      if (below[middle] <= at[k])
        low = middle;
      else
        high = middle;
    }
    std::size_t i = low;
    if (costs.groups) {
      const std::uint64_t into = at[k] - below[low], whole = below[low + 1] - below[low];
      i = costs.groups[low].first + static_cast<std::size_t>(into * costs.groups[low].count / whole);
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

}  // namespace maki
