#include "wan/sites/site_migration.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "host/comm/communicator.hpp"
#include "kernels/error.hpp"

namespace maki::sites {
namespace {

Leavers find_leavers(const Stream& stream, const Sites& sites, const Slabs& slabs, const Particles& particles) {
  const auto count = static_cast<std::size_t>(slabs.count());
  std::vector<std::uint32_t> starts(2 * count, 0);  // each slab has one column of one cell, which begin at 0
  std::ranges::copy(slabs.starts(), starts.begin());
  DeviceBuffer<std::uint32_t> device("migrate.slabs");
  device.upload(stream, starts);
  const std::uint32_t* x = device.data();
  const DomainView view{x, x + count, x + count, static_cast<std::uint32_t>(count), 1, 1};
  return select_leavers(stream, particles, view, static_cast<std::uint32_t>(sites.me()));
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
      char sides[32];
      std::snprintf(sides, sizeof sides, "%.3g", beyond(slabs, sites.me(), p.x));
      return "particle " + std::to_string(id) + " has left the slab of site " + sites.name(sites.me()) +
             " for that of " + sites.name(site) + ", which is no neighbour (" + sides + " sides beyond, and with it " +
             std::to_string(count - 1) +
             " more): steps are too long for slabs so thin, choose a smaller time.eta or time.max_dlna, or fewer sites";
    }
    first += count;
  }
  return "";
}

}  // namespace

SiteMigration::SiteMigration(Sites& sites, Reach reach) : sites_(sites) {
  const bool all = reach == Reach::kAll;
  for (int site = 0; site < sites.count(); ++site)
    if (site != sites.me() && (all || site == sites.left() || site == sites.right())) partners_.push_back(site);
}

void SiteMigration::begin(const Stream& stream, const Slabs& slabs, Particles& particles, ExtraArrays extra,
                          std::uint64_t number) {
  if (slabs.count() != sites_.count()) throw std::invalid_argument("migration: as many slabs as sites");
  for (const DeviceBuffer<float>* array : extra)
    if (array->size() != particles.size()) throw std::invalid_argument("migration: an extra array differs in length");
  leavers_ = find_leavers(stream, sites_, slabs, particles);
  if (static_cast<int>(partners_.size()) + 1 < sites_.count())
    throw_together(sites_.ranks(), far_leavers(stream, sites_, slabs, particles, leavers_));

  const BlockPlaces places(leavers_.counts, extra.size());
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
  const std::size_t particle_bytes = BlockPlaces({}, extra.size()).particle_bytes;
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
  const BlockPlaces places(counts, extra.size());
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
