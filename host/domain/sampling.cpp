#include "host/domain/sampling.hpp"

#include <Random123/philox.h>

#include <algorithm>

namespace maki {
namespace {

using Unsigned128 = unsigned __int128;

// a b / c without overflow; the result fits.
std::uint64_t scaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<std::uint64_t>(Unsigned128{a} * b / c);
}

// The strata of all ranks: `count` samples over `total`, of which rank r has those in [below[r], below[r + 1]).
struct Strata {
  std::uint64_t count, total, step;
  std::vector<std::uint64_t> below;

  // The first sample of rank r; r = ranks gives `count`.
  std::uint64_t first_of(std::size_t r) const {
    std::uint64_t low = 0, high = count;
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      if (sample_cost(middle, count, total, step) < below[r])
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// Samples [first[r], first[r + 1]) from each rank r, all of them to all: to blocks of equal length first, one a rank,
// so that an uneven start (everything on one rank) costs no more than an even one.
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

// Weight of all particles of each rank: its time where all ranks with costs give one, else its cost.
std::vector<std::uint64_t> weigh_ranks(const Communicator& communicator, std::uint64_t cost, double seconds) {
  constexpr double kNanoseconds = 1e9;
  struct Own {
    std::uint64_t cost, time;
  };
  const Own own{cost, seconds > 0 ? static_cast<std::uint64_t>(seconds * kNanoseconds) + 1 : 0};
  std::vector<Own> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(&own, all.data(), sizeof own);
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
                       const Costs& costs, std::uint64_t step, const SamplingRate& rate) {
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
  strata.count = std::min({rate.per_rank * ranks, rate.most, strata.total});
  samples.imbalance =
      static_cast<double>(std::ranges::max(weight)) * static_cast<double>(ranks) / static_cast<double>(strata.total);

  std::vector<std::uint64_t> first;
  for (std::size_t r = 0; r <= ranks; ++r) first.push_back(strata.first_of(r));
  std::vector<std::uint64_t> places;  // in this rank's cost
  for (std::uint64_t k = first[self]; k < first[self + 1]; ++k)
    places.push_back(
        scaled(sample_cost(k, strata.count, strata.total, step) - strata.below[self], sums.total(), weight[self]));
  samples.points = share(communicator, first, sums.particles_at(stream, particles.source.data(), places));
  return samples;
}

}  // namespace maki
