#include "wan/sites/gathered_set.hpp"

#include <algorithm>

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

// The particles of this rank, on the device. They come to the host piece by piece, so that no second copy is made.
struct RankParticles {
  const Stream& stream;
  const SourceParticle* particles;
  std::size_t n;

  std::vector<SourceParticle> piece(std::size_t number) const {
    const std::size_t first = std::min(n, number * kPieceParticles);
    std::vector<SourceParticle> host(std::min(kPieceParticles, n - first));
    copy_to_host(stream, host.data(), particles + first, host.size() * sizeof(SourceParticle));
    return host;
  }
};

Summary summary_of_rank(const RankParticles& own) {
  Summary summary{own.n, own.n, 1, 0, 1};
  for (std::size_t number = 0; number * kPieceParticles < own.n && summary.equal_masses != 0; ++number) {
    const auto piece = own.piece(number);
    if (number == 0) summary.mass = piece.front().mass;
    const auto like_first = [&summary](const SourceParticle& p) { return p.mass == summary.mass; };
    summary.equal_masses = std::all_of(piece.begin(), piece.end(), like_first) ? 1 : 0;
  }
  return summary;
}

Summary summary_of_site(const Communicator& ranks, const Summary& mine) {
  std::vector<Summary> all(static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(&mine, all.data(), sizeof mine);
  Summary site;
  for (const Summary& one : all) site.add(one);
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
  std::vector<std::uint64_t> bytes;
  for (const auto& one : out) bytes.push_back(one.size() * sizeof(SourceParticle));
  const std::vector<std::uint64_t> come = ranks.exchange_sizes(bytes);
  std::uint64_t total = 0;
  for (const std::uint64_t one : come) total += one;
  std::vector<SourceParticle> mine(total / sizeof(SourceParticle));
  std::vector<Communicator::Outgoing> outgoing;
  std::vector<Communicator::Incoming> incoming;
  auto* to = reinterpret_cast<std::byte*>(mine.data());
  for (std::size_t r = 0; r < size; to += come[r++]) {
    if (bytes[r] > 0) outgoing.push_back({static_cast<int>(r), out[r].data(), bytes[r]});
    if (come[r] > 0) incoming.push_back({static_cast<int>(r), to, come[r]});
  }
  ranks.exchange(outgoing, incoming);
  return mine;
}

void send_pieces(Sites& sites, int to, std::uint64_t number, std::uint64_t pieces, const RankParticles& own,
                 bool with_mass) {
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    if (piece >= kWindow) sites.receive_parts(to, Phase::kOutput, number);
    sites.send_parts(to, Phase::kOutput, number, packed(own.piece(piece), with_mass));
  }
}

// Receives from all other sites.
void receive_pieces(Sites& sites, std::uint64_t number, const std::vector<Summary>& of_sites, float mass,
                    std::vector<SourceParticle>& set) {
  std::uint64_t most = 0;
  for (const Summary& one : of_sites) most = std::max(most, one.pieces());
  const std::size_t particle_bytes = mass > 0 ? 12 : 16;
  std::vector<std::uint64_t> remaining;  // by site: particles that are still to come
  for (const Summary& one : of_sites) remaining.push_back(one.particles);
  for (std::uint64_t piece = 0; piece < most; ++piece) {
    for (int site = 0; site < sites.count(); ++site) {
      const std::uint64_t theirs = of_sites[static_cast<std::size_t>(site)].pieces();
      if (site == sites.me() || piece >= theirs) continue;
      for (const Message& message : sites.receive_shares(site, Phase::kOutput, number)) {
        std::uint64_t& remaining_there = remaining[static_cast<std::size_t>(site)];
        if (message.size() % particle_bytes != 0 || message.size() / particle_bytes > remaining_there)
          throw Error("site " + sites.name(site) + " sends other particles than it has",
                      std::to_string(message.size()) + " bytes, and " + std::to_string(remaining_there) +
                          " particles are to come",
                      "run the same version at all sites");
        remaining_there -= message.size() / particle_bytes;
        unpack(message, mass, set);
      }
      if (piece + kWindow < theirs) sites.send_parts(site, Phase::kOutput, number, {});
    }
  }
}

}  // namespace

GatheredSet::GatheredSet(Sites& sites, const Stream& stream, const SourceParticle* particles, std::size_t n) {
  const Communicator& ranks = sites.ranks();
  const Summary mine = summary_of_site(ranks, summary_of_rank({stream, particles, n}));
  std::vector<Summary> of_sites;
  Summary all;
  for (const Message& message : sites.gather(Phase::kOutput, sites.next_number(Phase::kOutput), as_bytes_of(mine))) {
    of_sites.push_back(read_summary(message, sites.name(static_cast<int>(of_sites.size()))));
    all.add(of_sites.back());
  }
  const auto most = std::max_element(of_sites.begin(), of_sites.end(),
                                     [](const Summary& a, const Summary& b) { return a.ranks < b.ranks; });
  place_ = static_cast<int>(most - of_sites.begin());
  here_ = place_ == sites.me();
  count_ = all.particles;
  const float mass = all.equal_masses ? all.mass : 0;
  const std::uint64_t number = sites.next_number(Phase::kOutput);
  if (!here_) {
    send_pieces(sites, place_, number, mine.pieces(), {stream, particles, n}, mass == 0);
    return;
  }
  std::vector<SourceParticle> set;
  // Room for this rank's share of all, unless the other sites claim far more than this rank has.
  const std::uint64_t share = count_ / static_cast<std::uint64_t>(ranks.size()) + n / 8;
  set.reserve(std::min<std::uint64_t>(share, 8 * static_cast<std::uint64_t>(sites.count()) * (n + kPieceParticles)));
  set.resize(n);
  copy_to_host(stream, set.data(), particles, n * sizeof(SourceParticle));
  receive_pieces(sites, number, of_sites, mass, set);
  if (ranks.size() > 1) set = redistribute(ranks, set);
  share_.upload(stream, set);
}

Message from_site(Sites& sites, int from, Message mine) {
  const std::uint64_t number = sites.next_number(Phase::kOutput);
  const bool first = sites.ranks().rank() == 0;
  if (sites.me() != from) {
    std::vector<Message> parts = sites.receive_parts(from, Phase::kOutput, number);
    return std::move(parts.front());
  }
  if (!first) mine.clear();
  sites.publish_parts(Phase::kOutput, number, mine);
  std::uint64_t bytes = mine.size();
  sites.ranks().broadcast(&bytes, sizeof bytes, 0);
  mine.resize(bytes);
  sites.ranks().broadcast(mine.data(), mine.size(), 0);
  return mine;
}

}  // namespace maki::sites
