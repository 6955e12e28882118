// The domain decomposition among sites: slabs in x, whose boundaries follow the speed of the sites, and the migration
// of particles to the sites that own them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/domain/migrate.hpp"
#include "wan/sites/sites.hpp"

namespace maki::sites {

// Measures of one site's evaluations of forces.
struct SiteWork {
  // t_calc of SUSHI's eq. 1: of lists and their evaluation since the last cut, seconds of the slowest rank, or (in
  // deterministic runs) interactions.
  double force_cost = 0;
  double work = 0;  // interactions in that time, independent of the site's speed
  std::uint64_t particles = 0;
  std::vector<std::uint32_t> x;  // sampled positions (fixed point), each of which stands for work / x.size()
};

struct SlabLimits {
  double thinnest = 0;  // sides: r_cut with its margins; slabs are never thinner
  double move = 0.1;    // sides: how far a boundary moves at once; never more than half the thinner slab beside it
  double finest = 1.0 / 16384;  // sides: what boundaries are rounded to, a power of two
};

class Slabs {
 public:
  // Even slabs. Throws Error with the numbers where they are thinner than `thinnest` (sides).
  Slabs(int count, double thinnest);
  explicit Slabs(std::vector<std::uint32_t> starts);

  int count() const { return static_cast<int>(starts_.size()); }
  int site_of(std::uint32_t x) const;
  std::uint32_t begin(int site) const { return starts_[static_cast<std::size_t>(site)]; }
  std::uint64_t end(int site) const;  // up to 2^32
  double thickness(int site) const;   // sides
  // Slab i is [starts[i], starts[i + 1]); the first begins at 0.
  std::span<const std::uint32_t> starts() const { return starts_; }
  // Keeps the boundaries in place after the box of an isolated set has doubled about its middle (double_box() of the
  // particles).
  void double_box();
  bool operator==(const Slabs&) const = default;

 private:
  std::vector<std::uint32_t> starts_;
};

// New boundaries from the sites' last times, by SUSHI's eq. 1, N_i ~ N (1/t_i) / sum (1/t_j), which gives a site its
// share by its speed. Applied literally to times of unequal loads it would oscillate. So the speed here is work done a
// second, v_i = work_i / force_cost_i, and slab i gets the share v_i / sum v_j of the sampled work. At the fixed point
// times are equal, as with eq. 1. A boundary goes three quarters of the way if times differ much, a quarter if they
// hardly do (mostly noise), not at all if they agree within 2 %, but at most limits.move; it is rounded to
// limits.finest where that leaves it within the limits. Integer arithmetic: every site gets the same. A site without
// times (no particles) is taken to be as fast as the others on average; if none has any (a first cut), shares are
// equal. A particle of slab i, even one that has strayed by less than half of `thinnest`, is then in slab i - 1, i or i
// + 1.
Slabs cut(const Slabs& now, std::span<const SiteWork> sites, const SlabLimits& limits);

// The slowest site's time over the time with work shared by the sites' speeds, less 1: 0.5 is half as long again. 0
// without times.
double waste(std::span<const SiteWork> sites);

// Particles of this rank outside of the site's slab are sent to the neighbours; particles that arrive go to any rank of
// the site. One message to each neighbour, empty or not; the wait is half a round trip. begin() sends and leaves the
// particles unchanged; finish() receives, removes the particles sent and appends those received: by site in the order
// of the ring, then by rank, then in their order there. Between the two, particles may be read. `extra` as in
// migrate().
// Throws Error, on all ranks, where a particle belongs to a site that is no neighbour: it has moved further than a slab
// is thick. With Reach::kAll every other site gets a message and no distance is too long, for the thin slabs of
// isolated sets. The counts returned are of this rank; messages are one for each neighbour.
class SiteMigration {
 public:
  enum class Reach { kNeighbours, kAll };
  explicit SiteMigration(Sites& sites, Reach reach = Reach::kNeighbours);
  void begin(const Stream& stream, const Slabs& slabs, Particles& particles,
             std::span<DeviceBuffer<float>* const> extra, std::uint64_t number);
  Migration finish(const Stream& stream, Particles& particles, std::span<DeviceBuffer<float>* const> extra,
                   std::uint64_t number);

 private:
  Sites& sites_;
  std::vector<int> partners_;  // sites, in the order of the ring
  Leavers leavers_;
  Migration counts_;
};

}  // namespace maki::sites
