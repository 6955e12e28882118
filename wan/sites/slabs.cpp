#include "wan/sites/slabs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"
#include "kernels/particles/types.hpp"

namespace maki::sites {
namespace {

constexpr std::uint64_t kWhole = std::uint64_t{1} << 40;  // the work of all sites

// Products of powers of two are exact, so that these are the same integers everywhere.
std::uint64_t fixed(double sides) {
  return static_cast<std::uint64_t>(std::clamp(sides, 0.0, 1.0) * static_cast<double>(kUnitsOfSide));
}

bool usable(double value) { return std::isfinite(value) && value > 0; }

// Integers in proportion to `values`, kWhole in total but for rounding. One rounded division each: nothing that a
// compiler could contract.
std::vector<std::uint64_t> shares_of(const std::vector<double>& values) {
  const double largest = *std::max_element(values.begin(), values.end());
  std::vector<std::uint64_t> parts;
  for (double v : values) parts.push_back(static_cast<std::uint64_t>(v / largest * 1073741824.0));
  const std::uint64_t sum = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  for (std::uint64_t& p : parts) p = static_cast<std::uint64_t>(static_cast<unsigned __int128>(p) * kWhole / sum);
  return parts;
}

std::vector<std::uint64_t> sums_before(const std::vector<std::uint64_t>& parts) {
  std::vector<std::uint64_t> sums(parts.size());
  std::exclusive_scan(parts.begin(), parts.end(), sums.begin(), std::uint64_t{0});
  return sums;
}

// The share of each site in proportion to its speed.
std::vector<std::uint64_t> speeds(std::span<const SiteWork> sites) {
  std::vector<std::uint64_t> known;
  std::vector<double> speed(sites.size(), 0.0);
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (usable(sites[i].force_cost) && usable(sites[i].work)) speed[i] = sites[i].work / sites[i].force_cost;
  if (!usable(*std::max_element(speed.begin(), speed.end()))) return std::vector(sites.size(), kWhole / sites.size());
  std::vector<std::uint64_t> parts = shares_of(speed);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (speed[i] > 0) known.push_back(parts[i]);
  const std::uint64_t mean = std::accumulate(known.begin(), known.end(), std::uint64_t{0}) / known.size();
  std::vector<double> all;
  for (std::size_t i = 0; i < parts.size(); ++i) all.push_back(static_cast<double>(speed[i] > 0 ? parts[i] : mean));
  return shares_of(all);
}

// The work done in each slab; the numbers of particles where no work is known. Empty where there is neither.
std::vector<std::uint64_t> loads(std::span<const SiteWork> sites) {
  std::vector<double> values;
  for (const SiteWork& s : sites) values.push_back(usable(s.work) ? s.work : 0);
  if (std::ranges::all_of(values, [](double v) { return v == 0; }))
    for (std::size_t i = 0; i < sites.size(); ++i) values[i] = static_cast<double>(sites[i].particles);
  if (std::ranges::all_of(values, [](double v) { return v == 0; })) return {};
  return shares_of(values);
}

// The fraction (in 256ths) of the way to the goal that boundaries move: it grows with the difference of the times; 0
// where they agree.
std::uint64_t gain(std::span<const SiteWork> sites) {
  double least = HUGE_VAL, most = 0;
  for (const SiteWork& s : sites) {
    if (!usable(s.force_cost) || !usable(s.work)) return 192;
    least = std::min(least, s.force_cost);
    most = std::max(most, s.force_cost);
  }
  const auto difference = 1024 - static_cast<std::uint64_t>(least / most * 1024.0);
  return difference <= 20 ? 0 : std::clamp<std::uint64_t>(difference * 3 / 2, 64, 192);
}

// Cumulative work up to a place in x. The work of a site is spread over its slab like its samples, evenly between two
// neighbouring samples.
class WorkBelow {
 public:
  WorkBelow(const Slabs& slabs, std::span<const SiteWork> sites, std::vector<std::uint64_t> loads)
      : loads_(std::move(loads)) {
    for (int i = 0; i < slabs.count(); ++i) knots_.push_back(knots(slabs, i, sites[static_cast<std::size_t>(i)].x));
  }

  // The first place with at least `work` to its left.
  std::uint64_t place(std::uint64_t work) const {
    std::uint64_t low = 0, high = kUnitsOfSide;
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      if (below(middle) < work)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

 private:
  // The ends of the slab and the samples between them; samples outside of the slab count at the nearer end.
  static std::vector<std::uint64_t> knots(const Slabs& slabs, int site, const std::vector<std::uint32_t>& samples) {
    const std::uint64_t begin = slabs.begin(site), end = slabs.end(site);
    const auto half = static_cast<std::int64_t>((end - begin) / 2);
    const auto centre = static_cast<std::uint32_t>(begin + (end - begin) / 2);
    std::vector<std::uint64_t> places = {begin};
    for (std::uint32_t x : samples) {
      const std::int64_t offset = static_cast<std::int32_t>(x - centre);
      places.push_back(static_cast<std::uint64_t>(std::clamp(offset, -half, half) + static_cast<std::int64_t>(centre)));
    }
    std::sort(places.begin(), places.end());
    places.push_back(end);
    return places;
  }

  std::uint64_t below(std::uint64_t x) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < knots_.size(); ++i) sum += part(knots_[i], x, loads_[i]);
    return sum;
  }

  // Of the site's work, (2 k + 1) / (2 n) is to the left of sample k = 0 ... n - 1, which is knot k + 1.
  static std::uint64_t part(const std::vector<std::uint64_t>& knots, std::uint64_t x, std::uint64_t load) {
    if (x <= knots.front()) return 0;
    if (x >= knots.back()) return load;
    const std::size_t n = knots.size() - 2;
    const auto next = static_cast<std::size_t>(std::upper_bound(knots.begin(), knots.end(), x) - knots.begin());
    const std::uint64_t span = knots[next] - knots[next - 1], in = x - knots[next - 1];
    const auto twice = [n](std::size_t knot) { return knot == 0 ? 0 : knot > n ? 2 * n : 2 * knot - 1; };
    if (n == 0) return static_cast<std::uint64_t>(static_cast<unsigned __int128>(load) * in / span);
    const unsigned __int128 here = static_cast<unsigned __int128>(twice(next - 1)) * span +
                                   static_cast<unsigned __int128>(twice(next) - twice(next - 1)) * in;
    return static_cast<std::uint64_t>(here * load / (static_cast<unsigned __int128>(2 * n) * span));
  }

  std::vector<std::uint64_t> loads_;
  std::vector<std::vector<std::uint64_t>> knots_;
};

// The boundary moved towards `to`, within the limits.
std::uint64_t moved(const Slabs& now, int boundary, std::uint64_t to, std::uint64_t most, std::uint64_t finest) {
  const std::uint64_t from = now.begin(boundary);
  most = std::min({most, (from - now.begin(boundary - 1)) / 2, (now.end(boundary) - from) / 2});
  to = std::clamp(to, from - std::min(from, most), from + most);
  const std::uint64_t rounded = (to + finest / 2) / finest * finest;
  return rounded >= from - most && rounded <= from + most ? rounded : to;
}

// Pushes boundaries apart that are nearer than `thinnest`. None passes an old neighbour: the one that pushes has moved
// at most half an old slab, and no old slab is thinner.
void keep_thickness(std::vector<std::uint64_t>& starts, std::uint64_t thinnest) {
  std::uint64_t before = 0;
  for (std::size_t i = 1; i < starts.size(); ++i) before = starts[i] = std::max(starts[i], before + thinnest);
  std::uint64_t after = kUnitsOfSide;
  for (std::size_t i = starts.size(); i-- > 1;) after = starts[i] = std::min(starts[i], after - thinnest);
}

void refuse_thin(int count, double thinnest) {
  const double even = 1.0 / count;
  if (count < 2 || kUnitsOfSide / static_cast<std::uint64_t>(count) >= fixed(thinnest)) return;
  throw Error(fmt::format("slabs of {:.4g} sides are too thin", even),
              fmt::format("{} sites share the box, the short-range force reaches {:.4g} sides: r_cut with its margins",
                          count, thinnest),
              fmt::format("run on at most {} sites, or with a smaller r_cut (a finer gravity.mesh)",
                          std::max(1, static_cast<int>(1 / thinnest))));
}

}  // namespace

Slabs::Slabs(int count, double thinnest) {
  if (count < 1) throw Error(fmt::format("{} sites cannot share a box", count));
  refuse_thin(count, thinnest);
  const auto slabs = static_cast<std::uint64_t>(count);
  for (std::uint64_t i = 0; i < slabs; ++i) starts_.push_back(static_cast<std::uint32_t>(kUnitsOfSide * i / slabs));
}

Slabs::Slabs(std::vector<std::uint32_t> starts) : starts_(std::move(starts)) {
  const bool rising = std::ranges::adjacent_find(starts_, std::greater_equal<>()) == starts_.end();
  if (starts_.empty() || starts_.front() != 0 || !rising)
    throw Error("boundaries of slabs have to begin at 0 and to rise");
}

int Slabs::site_of(std::uint32_t x) const {
  return static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), x) - starts_.begin()) - 1;
}

std::uint64_t Slabs::end(int site) const { return site + 1 < count() ? begin(site + 1) : kUnitsOfSide; }

double Slabs::thickness(int site) const {
  return static_cast<double>(end(site) - begin(site)) / static_cast<double>(kUnitsOfSide);
}

// Keeps boundaries distinct: where slabs are thinner than two last bits, the right one moves.
void Slabs::double_box() {
  for (std::size_t i = 1; i < starts_.size(); ++i)
    starts_[i] = std::max(static_cast<std::uint32_t>((starts_[i] + kUnitsOfSide / 2) / 2), starts_[i - 1] + 1);
}

Slabs cut(const Slabs& now, std::span<const SiteWork> sites, const SlabLimits& limits) {
  if (static_cast<int>(sites.size()) != now.count())
    throw Error(fmt::format("work of {} sites for {} slabs", sites.size(), now.count()));
  refuse_thin(now.count(), limits.thinnest);
  const std::uint64_t part = gain(sites);
  const std::vector<std::uint64_t> load = loads(sites);
  std::vector<std::uint64_t> starts(now.starts().begin(), now.starts().end());
  const std::uint64_t finest = std::max<std::uint64_t>(fixed(limits.finest), 1);
  if (part > 0 && !load.empty()) {
    const WorkBelow below(now, sites, load);
    const std::vector<std::uint64_t> is = sums_before(load), should_be = sums_before(speeds(sites));
    for (int b = 1; b < now.count(); ++b) {
      const auto i = static_cast<std::size_t>(b);
      const std::uint64_t goal = (is[i] * (256 - part) + should_be[i] * part) / 256;
      starts[i] = moved(now, b, below.place(goal), fixed(limits.move), finest);
    }
  }
  keep_thickness(starts, std::max<std::uint64_t>(fixed(limits.thinnest), 1));
  return Slabs(std::vector<std::uint32_t>(starts.begin(), starts.end()));
}

double waste(std::span<const SiteWork> sites) {
  double work = 0, speed = 0, slowest = 0;
  int known = 0;
  for (const SiteWork& site : sites) {
    if (!usable(site.force_cost) || !usable(site.work)) continue;
    work += site.work;
    speed += site.work / site.force_cost;
    slowest = std::max(slowest, site.force_cost);
    ++known;
  }
  if (known == 0) return 0;
  const double all = speed / known * static_cast<double>(sites.size());  // the others are as fast as these on average
  return std::max(0.0, slowest / (work / all) - 1);
}

namespace {

Leavers find_leavers(const Stream& stream, const Sites& sites, const Slabs& slabs, const Particles& particles) {
  const auto count = static_cast<std::size_t>(slabs.count());
  std::vector<std::uint32_t> starts(2 * count, 0);  // each slab has one column of one cell, which begin at 0
  std::ranges::copy(slabs.starts(), starts.begin());
  DeviceBuffer<std::uint32_t> device("migrate.slabs");
  device.upload(stream, starts);
  const std::uint32_t* x = device.data();
  const DomainView view{x, x + count, x + count, static_cast<std::uint32_t>(count), 1, 1};
  return select_leavers(stream, particles.source, view, static_cast<std::uint32_t>(sites.me()));
}

// The distance (sides) of a position outside of the slab to the slab.
double beyond(const Slabs& slabs, int site, std::uint32_t x) {
  const std::uint32_t after = x - static_cast<std::uint32_t>(slabs.end(site) - 1), before = slabs.begin(site) - x;
  return std::min(after, before) / kSideToUnits;
}

// A message about particles that would leave for a site that is no neighbour; empty where there are none.
std::string far_leavers(const Stream& stream, const Sites& sites, const Slabs& slabs, const Particles& particles,
                        const Leavers& leavers) {
  std::uint64_t first = 0;
  for (int site = 0; site < sites.count(); ++site) {
    const std::uint64_t count = leavers.counts[static_cast<std::size_t>(site)];
    if (count > 0 && site != sites.left() && site != sites.right()) {
      std::uint32_t index = 0;
      std::uint64_t id = 0;
      SourceParticle p{};
      copy_to_host(stream, &index, leavers.index.data() + first, sizeof index);
      copy_to_host(stream, &id, particles.id.data() + index, sizeof id);
      copy_to_host(stream, &p, particles.source.data() + index, sizeof p);
      return fmt::format(
          "particle {} has left the slab of site {} for that of {}, which is no neighbour ({:.3g} sides beyond, and "
          "with it {} more): steps are too long for slabs so thin, choose a smaller time.eta or time.max_dlna, or "
          "fewer sites",
          id, sites.name(sites.me()), sites.name(site), beyond(slabs, sites.me(), p.x), count - 1);
    }
    first += count;
  }
  return "";
}

}  // namespace

SiteMigration::SiteMigration(Sites& sites, Reach reach)
    : sites_(sites), partners_(sites.partners(reach == Reach::kAll)) {}

void SiteMigration::begin(const Stream& stream, const Slabs& slabs, Particles& particles, ExtraArrays extra,
                          std::uint64_t number) {
  if (slabs.count() != sites_.count()) throw std::invalid_argument("migration: as many slabs as sites");
  for (const DeviceBuffer<float>* array : extra)
    if (array->size() != particles.size()) throw std::invalid_argument("migration: an extra array differs in length");
  leavers_ = find_leavers(stream, sites_, slabs, particles);
  if (static_cast<int>(partners_.size()) + 1 < sites_.count())
    throw_together(sites_.ranks(), far_leavers(stream, sites_, slabs, particles, leavers_));

  const BlockPlaces places(leavers_.counts, packed_bytes(extra.size()));
  counts_ = {places.particles(), 0, 0, 0};
  std::vector<std::byte> packed;
  if (counts_.sent > 0) packed = pack(stream, particles, extra, leavers_.index, places).download(stream);
  for (const int site : partners_) {
    const auto s = static_cast<std::size_t>(site);
    sites_.send_parts(site, Phase::kParticles, number, std::span(packed).subspan(places.begin[s], places.bytes(s)));
    ++counts_.messages;
    counts_.bytes += places.bytes(s);
  }
}

Migration SiteMigration::finish(const Stream& stream, Particles& particles, ExtraArrays extra, std::uint64_t number) {
  std::vector<Message> shares;
  std::vector<std::uint64_t> counts;
  const std::size_t particle_bytes = packed_bytes(extra.size());
  for (const int site : partners_) {
    for (Message& share : sites_.receive_shares(site, Phase::kParticles, number)) {
      if (share.size() % particle_bytes != 0)
        throw Error("particles of another kind came from site " + sites_.name(site),
                    std::to_string(share.size()) + " bytes for " + std::to_string(particle_bytes) + " each",
                    "run the same version at all sites");
      counts.push_back(share.size() / particle_bytes);
      shares.push_back(std::move(share));
    }
  }
  const BlockPlaces places(counts, particle_bytes);
  counts_.received = places.particles();
  const std::uint64_t together = particles.size() - counts_.sent + counts_.received;
  if (together > std::numeric_limits<std::uint32_t>::max())
    throw Error("too many particles for rank " + std::to_string(sites_.ranks().rank()),
                std::to_string(together) + ", and a rank holds less than 2^32", "start more ranks");
  if (counts_.sent == 0 && counts_.received == 0) return counts_;

  std::vector<std::byte> all(places.size());
  for (std::size_t k = 0; k < shares.size(); ++k) {
    if (!shares[k].empty()) std::memcpy(all.data() + places.begin[k], shares[k].data(), shares[k].size());
    shares[k] = Message();
  }
  DeviceBuffer<std::byte> arrived("migrate.packed");
  arrived.upload(stream, all);
  keep_and_append(stream, particles, extra, leavers_.kept(), arrived, places);
  leavers_ = {};
  return counts_;
}

}  // namespace maki::sites
