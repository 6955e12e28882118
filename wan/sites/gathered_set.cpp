#include "wan/sites/gathered_set.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace maki::sites {
namespace {

constexpr std::size_t kPieceParticles = std::size_t{1} << 19;  // particles of each rank in one message
constexpr std::uint64_t kWindow = 8;  // messages of a site in flight: sent, and not yet acknowledged by the receiver

// The particles of a rank or a site in numbers.
struct Summary {
  std::uint64_t particles = 0;
  std::uint64_t most = 0;  // particles on the fullest rank
  int ranks = 1;
  float mass = 0;                  // of the first particle
  std::uint32_t equal_masses = 1;  // 0: masses differ

  std::uint64_t pieces() const { return (most + kPieceParticles - 1) / kPieceParticles; }
  void add(const Summary& other) {
    if (other.particles > 0) {
      equal_masses = equal_masses != 0 && other.equal_masses != 0 && (particles == 0 || mass == other.mass) ? 1 : 0;
      if (particles == 0) mass = other.mass;
    }
    particles += other.particles;
    most = std::max(most, other.most);
  }
};

// Throws Error where the numbers are inconsistent; a rank has at most 2^32 particles.
Summary read_summary(const Message& message, const std::string& site) {
  Summary summary{0, 0, 0, 0, 0};
  if (message.size() == sizeof summary) summary = value_of<Summary>(message);
  const bool fits = summary.ranks >= 1 && static_cast<std::size_t>(summary.ranks) <= Sites::kMostRanks &&
                    summary.most <= summary.particles && summary.most <= UINT32_MAX &&
                    summary.particles <= summary.most * static_cast<std::uint64_t>(summary.ranks) &&
                    (summary.particles == 0 || summary.equal_masses == 0 || summary.mass >= 0);
  if (fits) return summary;
  throw Error("the numbers of particles that site " + site + " sends are inconsistent",
              std::to_string(summary.particles) + " on " + std::to_string(summary.ranks) + " ranks, " +
                  std::to_string(summary.most) + " on one",
              "run the same version at all sites");
}

// Particles from `first` on, kPieceParticles at most. They come to the host piece by piece, so that no second copy is
// made.
template <class T>
std::vector<T> piece_of(const Stream& stream, const DeviceBuffer<T>& from, std::size_t first) {
  std::vector<T> host(std::min(kPieceParticles, from.size() - std::min(from.size(), first)));
  copy_to_host(stream, host.data(), from.data() + first, host.size() * sizeof(T));
  return host;
}

Summary summary_of_rank(const Stream& stream, const DeviceBuffer<SourceParticle>& own) {
  Summary summary{own.size(), own.size(), 1, 0, 1};
  for (std::size_t first = 0; first < own.size() && summary.equal_masses != 0; first += kPieceParticles) {
    const auto piece = piece_of(stream, own, first);
    if (first == 0) summary.mass = piece.front().mass;
    const auto like_first = [&summary](const SourceParticle& p) { return p.mass == summary.mass; };
    summary.equal_masses = std::all_of(piece.begin(), piece.end(), like_first) ? 1 : 0;
  }
  return summary;
}

Summary summary_of_site(const Communicator& ranks, const Summary& mine) {
  Summary site;
  for (const Summary& one : gathered(ranks, mine)) site.add(one);
  site.ranks = ranks.size();
  return site;
}

Message packed(const std::vector<SourceParticle>& particles, bool with_mass) {
  const std::size_t bytes = with_mass ? 16 : 12;  // the mass is the last member
  Message message(bytes * particles.size());
  for (std::size_t i = 0; i < particles.size(); ++i) std::memcpy(message.data() + i * bytes, &particles[i], bytes);
  return message;
}

void unpack(const Message& message, float mass, std::vector<SourceParticle>& to) {
  const std::size_t bytes = mass > 0 ? 12 : 16;
  for (std::size_t at = 0; at < message.size(); at += bytes) {
    SourceParticle particle{0, 0, 0, mass};
    std::memcpy(&particle, message.data() + at, bytes);
    to.push_back(particle);
  }
}

// Sends each particle to the rank that owns its part of the box; parts are equally wide along x.
std::vector<SourceParticle> redistribute(const Communicator& ranks, const std::vector<SourceParticle>& particles) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const auto owner = [size](const SourceParticle& p) { return std::size_t{p.x} * size >> 32; };
  std::vector<std::vector<SourceParticle>> out(size);
  for (const SourceParticle& p : particles) out[owner(p)].push_back(p);
  return joined(exchange_all(ranks, std::move(out)));
}

// What all sites know of a gathering before it begins.
struct Gathering {
  std::vector<Summary> of_sites;
  Summary all;
  int place = 0;
  std::uint64_t number = 0;  // of its messages
};

Gathering begin_gathering(Sites& sites, const Summary& mine) {
  Gathering g;
  for (const Message& message : sites.gather(Phase::kOutput, sites.next_number(Phase::kOutput), as_bytes_of(mine))) {
    g.of_sites.push_back(read_summary(message, sites.name(static_cast<int>(g.of_sites.size()))));
    g.all.add(g.of_sites.back());
  }
  const auto most = std::max_element(g.of_sites.begin(), g.of_sites.end(),
                                     [](const Summary& a, const Summary& b) { return a.ranks < b.ranks; });
  g.place = static_cast<int>(most - g.of_sites.begin());
  g.number = sites.next_number(Phase::kOutput);
  return g;
}

// `piece(i)`: a rank's particles from i kPieceParticles on, kPieceParticles at most.
template <class Piece>
void send_pieces(Sites& sites, const Gathering& g, const Piece& piece) {
  const std::uint64_t pieces = g.of_sites[static_cast<std::size_t>(sites.me())].pieces();
  for (std::uint64_t i = 0; i < pieces; ++i) {
    if (i >= kWindow) sites.receive_parts(g.place, Phase::kOutput, g.number);
    sites.send_parts(g.place, Phase::kOutput, g.number, piece(i));
  }
}

// Throws Error, on all ranks, where a site has sent fewer particles than it has. `remaining`: by site, those that were
// to come and have not come to this rank.
void require_all(const Sites& sites, const Gathering& g, const std::vector<std::uint64_t>& remaining) {
  std::vector<std::uint64_t> come;
  for (std::size_t i = 0; i < remaining.size(); ++i) come.push_back(g.of_sites[i].particles - remaining[i]);
  sites.ranks().sum(std::span(come));
  for (std::size_t i = 0; i < come.size(); ++i)
    if (static_cast<int>(i) != sites.me() && come[i] != g.of_sites[i].particles)
      throw Error("site " + sites.name(static_cast<int>(i)) + " sends other particles than it has",
                  std::to_string(come[i]) + " have come of " + std::to_string(g.of_sites[i].particles),
                  "run the same version at all sites");
}

// Receives from all other sites, particles of so many bytes; `take(message)` for each message.
template <class Take>
void receive_pieces(Sites& sites, const Gathering& g, std::size_t particle_bytes, const Take& take) {
  std::uint64_t most = 0;
  for (const Summary& one : g.of_sites) most = std::max(most, one.pieces());
  std::vector<std::uint64_t> remaining;  // by site: particles that are still to come
  for (const Summary& one : g.of_sites) remaining.push_back(one.particles);
  for (std::uint64_t piece = 0; piece < most; ++piece) {
    for (int site = 0; site < sites.count(); ++site) {
      const std::uint64_t theirs = g.of_sites[static_cast<std::size_t>(site)].pieces();
      if (site == sites.me() || piece >= theirs) continue;
      for (const Message& message : sites.receive_shares(site, Phase::kOutput, g.number)) {
        std::uint64_t& remaining_there = remaining[static_cast<std::size_t>(site)];
        if (message.size() % particle_bytes != 0 || message.size() / particle_bytes > remaining_there)
          throw Error("site " + sites.name(site) + " sends other particles than it has",
                      std::to_string(message.size()) + " bytes, and " + std::to_string(remaining_there) +
                          " particles are to come",
                      "run the same version at all sites");
        remaining_there -= message.size() / particle_bytes;
        take(message);
      }
      if (piece + kWindow < theirs) sites.send_parts(site, Phase::kOutput, g.number, {});
    }
  }
  require_all(sites, g, remaining);
}

}  // namespace

GatheredSet::GatheredSet(Sites& sites, const Stream& stream, const DeviceBuffer<SourceParticle>& particles) {
  if (sites.alone()) {
    own_ = &particles;
    return;
  }
  const Communicator& ranks = sites.ranks();
  const std::size_t n = particles.size();
  const Gathering g = begin_gathering(sites, summary_of_site(ranks, summary_of_rank(stream, particles)));
  place_ = g.place;
  here_ = place_ == sites.me();
  const float mass = g.all.equal_masses ? g.all.mass : 0;
  if (!here_) {
    send_pieces(sites, g,
                [&](std::uint64_t i) { return packed(piece_of(stream, particles, i * kPieceParticles), mass == 0); });
    return;
  }
  std::vector<SourceParticle> set;
  // Room for this rank's share of all, unless the other sites claim far more than this rank has.
  const std::uint64_t share = g.all.particles / static_cast<std::uint64_t>(ranks.size()) + n / 8;
  set.reserve(std::min<std::uint64_t>(share, 8 * static_cast<std::uint64_t>(sites.count()) * (n + kPieceParticles)));
  set.resize(n);
  copy_to_host(stream, set.data(), particles.data(), n * sizeof(SourceParticle));
  receive_pieces(sites, g, mass > 0 ? 12 : 16, [&](const Message& message) { unpack(message, mass, set); });
  if (ranks.size() > 1) set = redistribute(ranks, set);
  share_.upload(stream, set);
}

namespace {

// A particle with velocity and ID, in messages.
struct WholeParticle {
  std::uint32_t x, y, z;
  float mass, momentum[3];
  std::uint32_t id[2];  // low, high
};
static_assert(sizeof(WholeParticle) == 36);

std::vector<WholeParticle> piece_of(const Stream& stream, const Particles& particles, std::uint64_t number) {
  const std::size_t first = number * kPieceParticles;
  const auto source = piece_of(stream, particles.source, first);
  const auto x = piece_of(stream, particles.momentum.x, first), y = piece_of(stream, particles.momentum.y, first),
             z = piece_of(stream, particles.momentum.z, first);
  const auto id = piece_of(stream, particles.id, first);
  std::vector<WholeParticle> piece;
  for (std::size_t i = 0; i < source.size(); ++i)
    piece.push_back({source[i].x,
                     source[i].y,
                     source[i].z,
                     source[i].mass,
                     {x[i], y[i], z[i]},
                     {static_cast<std::uint32_t>(id[i]), static_cast<std::uint32_t>(id[i] >> 32)}});
  return piece;
}

void upload(const Stream& stream, const std::vector<WholeParticle>& all, Particles& particles) {
  particles.resize(all.size());
  particles.remainder.fill_zero(stream);
  std::vector<SourceParticle> source;
  std::vector<std::uint64_t> id;
  for (const WholeParticle& p : all) {
    source.push_back({p.x, p.y, p.z, p.mass});
    id.push_back(p.id[0] | std::uint64_t{p.id[1]} << 32);
  }
  particles.source.upload(stream, source);
  particles.id.upload(stream, id);
  DeviceBuffer<float>* const along[3] = {&particles.momentum.x, &particles.momentum.y, &particles.momentum.z};
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<float> momentum;
    for (const WholeParticle& p : all) momentum.push_back(p.momentum[k]);
    along[k]->upload(stream, momentum);
  }
}

}  // namespace

GatheredParticles::GatheredParticles(Sites& sites, const Stream& stream, const Particles& own) {
  if (sites.alone())
    particles_ = copy_of(stream, own);
  else
    gather(sites, stream, own);
}

GatheredParticles::GatheredParticles(Sites& sites, const Stream& stream, Particles&& own) {
  if (sites.alone())
    particles_ = std::move(own);
  else
    gather(sites, stream, own);
}

void GatheredParticles::gather(Sites& sites, const Stream& stream, const Particles& own) {
  const std::uint64_t n = own.size();
  const Gathering g = begin_gathering(sites, summary_of_site(sites.ranks(), {n, n, 1, 0, 0}));
  place_ = g.place;
  here_ = place_ == sites.me();
  if (!here_) {
    send_pieces(sites, g, [&](std::uint64_t i) {
      const std::vector<WholeParticle> piece = piece_of(stream, own, i);
      const auto bytes = std::as_bytes(std::span(piece));
      return Message(bytes.begin(), bytes.end());
    });
    return;
  }
  std::vector<WholeParticle> all;
  for (std::uint64_t i = 0; i * kPieceParticles < n; ++i) {
    const std::vector<WholeParticle> piece = piece_of(stream, own, i);
    all.insert(all.end(), piece.begin(), piece.end());
  }
  receive_pieces(sites, g, sizeof(WholeParticle), [&](const Message& message) {
    const std::size_t before = all.size();
    all.resize(before + message.size() / sizeof(WholeParticle));
    std::memcpy(all.data() + before, message.data(), message.size());
  });
  upload(stream, all, particles_);
}

Message from_site(Sites& sites, int from, Message mine) {
  Message come = from_site_to_first(sites, from, std::move(mine));
  std::uint64_t bytes = come.size();
  sites.ranks().broadcast(&bytes, sizeof bytes, 0);
  come.resize(bytes);
  sites.ranks().broadcast(come.data(), come.size(), 0);
  return come;
}

Message from_site_to_first(Sites& sites, int from, Message mine) {
  const std::uint64_t number = sites.next_number(Phase::kOutput);
  const bool first = sites.ranks().rank() == 0;
  if (!first) mine.clear();
  if (sites.me() == from) {
    sites.publish_parts(Phase::kOutput, number, mine);
    return mine;
  }
  std::vector<Message> parts = sites.receive_shares(from, Phase::kOutput, number);
  return first ? std::move(parts.front()) : Message();
}

}  // namespace maki::sites
