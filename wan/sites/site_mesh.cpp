#include "wan/sites/site_mesh.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

#include "wan/sites/mesh_codec.hpp"

namespace maki::sites {
namespace {

constexpr std::size_t kPieceCells = std::size_t{1} << 23;
constexpr std::uint64_t kPiecesOfStep = std::uint64_t{1} << 20;

std::size_t counted(int n) { return static_cast<std::size_t>(n); }

// Work on each of n items by all threads; the first error is thrown when all are done.
template <class F>
void for_each(std::size_t n, const F& f) {
  std::exception_ptr problem;
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < n; ++i) {
    try {
      f(i);
    } catch (...) {
#pragma omp critical(maki_site_mesh)
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  double& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

struct SiteMesh::Parts {
  using Counts = std::array<const std::uint64_t*, 2>;
  using Sums = std::array<std::uint64_t*, 2>;

  explicit Parts(Sites& s) : sites(s) {}

  // Whether only this site has masses in a plane: the widest cloud reaches 2 cells, and rounding a little further.
  bool is_exclusive(int cells, int mesh, int plane) const;
  Plane kind(const MeshBox& box, const MassUnit& unit, int mesh, int x, const std::uint64_t* counts) const;
  std::vector<MeshChunk> chunks_of(const MeshBox& box, const MassUnit& unit, const Counts& counts) const;
  static void encode_chunk(const MeshBox& box, const Counts& counts, MeshChunk& chunk);
  void add(const MeshBox& box, const MassUnit& unit, const MeshPart& part, const Sums& sums);
  void mark_users(const MeshBox& box, const MeshChunk& chunk);
  void round_own(const MeshBox& box, const MassUnit& unit, const Sums& sums);
  void count_shared();

  Sites& sites;
  double begin = 1, end = 0;  // the part of the box in which only this site has particles, in sides; none at first
  bool only_site = false;
  std::size_t piece = kPieceCells;
  std::uint64_t sums_started = 0, sums_finished = 0;
  // One plane of this rank in the current sum: the number of sites with masses in it, and whether one of them rounded
  // its counts.
  struct Users {
    int sites = 0;
    bool rounded = false;
  };
  std::array<std::vector<Users>, 2> users,
      users_of_site;                            // by mesh and plane: of all sites so far, of the one that is added
  std::array<std::vector<Plane>, 2> own_kinds;  // planes of this rank as it sent them
  std::array<std::vector<std::uint8_t>, 2>
      to_round;  // 1: the plane was sent rounded, and its sums still hold exact counts
  Counters counters;
};

bool SiteMesh::Parts::is_exclusive(int cells, int mesh, int plane) const {
  if (only_site) return true;
  constexpr double kCloud = 2.001;
  const double middle = plane - 0.5 * mesh, low = begin * cells + kCloud, high = end * cells - kCloud;
  const auto within = [&](double x) { return low <= x && x <= high; };
  return within(middle) || within(middle + cells) || within(middle - cells);
}

Plane SiteMesh::Parts::kind(const MeshBox& box, const MassUnit& unit, int mesh, int x,
                            const std::uint64_t* counts) const {
  const std::size_t size = counted(box.extent[1]) * counted(box.extent[2]);
  const std::uint64_t* plane = counts + size * counted(x);
  if (std::all_of(plane, plane + size, [](std::uint64_t c) { return c == 0; })) return Plane::kEmpty;
  return unit.dropped_bits > 0 && is_exclusive(box.cells, mesh, box.origin[0] + x) ? Plane::kRounded : Plane::kExact;
}

// The chunks that are not empty altogether.
std::vector<MeshChunk> SiteMesh::Parts::chunks_of(const MeshBox& box, const MassUnit& unit,
                                                  const Counts& counts) const {
  std::vector<MeshChunk> chunks;
  if (box.size() == 0) return chunks;
  const int thick = chunk_planes(box.extent[1], box.extent[2]);
  for (int x = 0; x < box.extent[0]; x += thick) {
    const int planes = std::min(thick, box.extent[0] - x);
    MeshChunk chunk{box.origin[0] + x, box.origin[1], {}, {}, {}};
    chunk.block = {planes, box.extent[1], box.extent[2], counts[1] ? 2 : 1, unit.dropped_bits, unit.shed_bits, {}};
    bool any = false;
    for (std::size_t mesh = 0; mesh < counted(chunk.block.meshes); ++mesh) {
      for (int i = 0; i < planes; ++i) chunk.block.kind[mesh].push_back(own_kinds[mesh][counted(x + i)]);
      for (Plane kind : chunk.block.kind[mesh]) any = any || kind != Plane::kEmpty;
    }
    if (any) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

void SiteMesh::Parts::encode_chunk(const MeshBox& box, const Counts& counts, MeshChunk& chunk) {
  const std::size_t first =
      counted(box.extent[1]) * counted(box.extent[2]) * counted(chunk.first_plane - box.origin[0]);
  chunk.bytes = encode(chunk.block, {counts[0] + first, counts[1] ? counts[1] + first : nullptr});
}

SiteMesh::SiteMesh(Sites& sites) : parts_(std::make_unique<Parts>(sites)) { parts_->only_site = sites.count() == 1; }
SiteMesh::~SiteMesh() = default;
const SiteMesh::Counters& SiteMesh::counters() const { return parts_->counters; }
void SiteMesh::set_piece(std::size_t cells) { parts_->piece = std::max<std::size_t>(1, cells); }

void SiteMesh::set_slabs(const Slabs& slabs, double stray) {
  Parts& p = *parts_;
  const int me = p.sites.me();
  p.begin = static_cast<double>(slabs.begin(me)) * 0x1p-32 + stray;
  p.end = static_cast<double>(slabs.end(me)) * 0x1p-32 - stray;
  p.only_site = slabs.count() == 1;
}

void SiteMesh::start_sum(const MeshBox& box, const MassUnit& unit, int meshes, const std::uint64_t* counts,
                         const std::uint64_t* shifted) {
  Parts& p = *parts_;
  const Parts::Counts both = {counts, shifted};
  const MeshHeader header{box.cells, meshes, unit};
  std::vector<MeshChunk> chunks;
  {
    const Stopwatch watch(p.counters.encoding);
    for (std::size_t mesh = 0; mesh < counted(header.meshes); ++mesh) {
      p.own_kinds[mesh].resize(counted(box.size() > 0 ? box.extent[0] : 0));
      for_each(p.own_kinds[mesh].size(), [&](std::size_t x) {
        p.own_kinds[mesh][x] = p.kind(box, unit, static_cast<int>(mesh), static_cast<int>(x), both[mesh]);
      });
    }
    if (p.sites.count() > 1) chunks = p.chunks_of(box, unit, both);
  }
  const std::uint64_t number = kPiecesOfStep * p.sums_started++;
  if (p.sites.count() == 1) return;
  // Pieces of a bounded number of chunks, and so of bounded memory.
  std::size_t most = 1;
  if (!chunks.empty()) most = std::max<std::size_t>(1, p.piece / chunks.front().block.cells());
  const auto mine = std::max<std::uint64_t>(1, (chunks.size() + most - 1) / most);
  const std::uint64_t pieces = largest_of(p.sites.ranks(), mine);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const std::size_t first = std::min(chunks.size(), i * most), last = std::min(chunks.size(), first + most);
    Message message;
    {
      const Stopwatch watch(p.counters.encoding);
      for_each(last - first, [&](std::size_t c) { Parts::encode_chunk(box, both, chunks[first + c]); });
      message = pack(header, static_cast<std::uint32_t>(pieces), std::span(chunks).subspan(first, last - first));
      for (std::size_t c = first; c < last; ++c) chunks[c].bytes = {};
    }
    p.counters.bytes += message.size();
    p.sites.publish_parts(Phase::kMesh, number + i, message);
  }
}

void SiteMesh::Parts::mark_users(const MeshBox& box, const MeshChunk& chunk) {
  for (std::size_t mesh = 0; mesh < counted(chunk.block.meshes); ++mesh) {
    for (int x = 0; x < chunk.block.planes; ++x) {
      const int plane = chunk.first_plane + x - box.origin[0];
      const Plane kind = chunk.block.kind[mesh][counted(x)];
      if (plane < 0 || plane >= box.extent[0] || kind == Plane::kEmpty) continue;
      Users& u = users_of_site[mesh][counted(plane)];
      u.sites = 1;
      u.rounded = u.rounded || kind == Plane::kRounded;
    }
  }
}

// Rounds this rank's counts, as they were sent, in planes where other sites have masses too. All other planes are
// rounded when their counts become masses.
void SiteMesh::Parts::round_own(const MeshBox& box, const MassUnit& unit, const Sums& sums) {
  const std::size_t plane = counted(box.extent[1]) * counted(box.extent[2]);
  for (std::size_t mesh = 0; mesh < 2; ++mesh) {
    for (std::size_t x = 0; x < to_round[mesh].size(); ++x) {
      if (!to_round[mesh][x] || users_of_site[mesh][x].sites == 0) continue;
      to_round[mesh][x] = 0;
      for (std::size_t i = plane * x; i < plane * (x + 1); ++i) sums[mesh][i] = unit.rounded(sums[mesh][i]);
    }
  }
}

// Adds the cells of the part that are in the box.
void SiteMesh::Parts::add(const MeshBox& box, const MassUnit& unit, const MeshPart& part, const Sums& sums) {
  std::vector<const MeshChunk*> overlapping;
  for (const MeshChunk& chunk : part.chunks) {
    const int x = std::max(chunk.first_plane, box.origin[0]), y = std::max(chunk.first_row, box.origin[1]);
    if (x < std::min(chunk.first_plane + chunk.block.planes, box.origin[0] + box.extent[0]) &&
        y < std::min(chunk.first_row + chunk.block.rows, box.origin[1] + box.extent[1]))
      overlapping.push_back(&chunk);
  }
  for (const MeshChunk* chunk : overlapping) mark_users(box, *chunk);
  round_own(box, unit, sums);
  for_each(overlapping.size(), [&](std::size_t w) {
    const MeshChunk& chunk = *overlapping[w];
    decode(chunk.block, chunk.coded, [&](int mesh, int x, int y) -> std::uint64_t* {
      x += chunk.first_plane - box.origin[0];
      y += chunk.first_row - box.origin[1];
      if (x < 0 || x >= box.extent[0] || y < 0 || y >= box.extent[1]) return nullptr;
      return sums[counted(mesh)] + (counted(x) * counted(box.extent[1]) + counted(y)) * counted(box.cells);
    });
  });
}

void SiteMesh::Parts::count_shared() {
  for (const auto& mesh : users)
    for (const Users& u : mesh) counters.shared_planes += u.sites > 1 && u.rounded ? 1 : 0;
}

void SiteMesh::finish_sum(const MeshBox& box, const MassUnit& unit, int meshes, std::uint64_t* counts,
                          std::uint64_t* shifted) {
  Parts& p = *parts_;
  const Parts::Sums sums = {counts, shifted};
  const MeshHeader header{box.cells, meshes, unit};
  for (std::size_t mesh = 0; mesh < counted(header.meshes); ++mesh) {
    p.users[mesh].assign(p.own_kinds[mesh].size(), {});
    p.to_round[mesh].resize(p.own_kinds[mesh].size());
    for (std::size_t x = 0; x < p.own_kinds[mesh].size(); ++x) {
      const Plane kind = p.own_kinds[mesh][x];
      p.users[mesh][x] = {kind == Plane::kEmpty ? 0 : 1, kind == Plane::kRounded};
      p.to_round[mesh][x] = kind == Plane::kRounded ? 1 : 0;
    }
  }
  const std::uint64_t number = kPiecesOfStep * p.sums_finished++;
  for (int site = 0; site < p.sites.count(); ++site) {
    if (site == p.sites.me()) continue;
    for (std::size_t mesh = 0; mesh < 2; ++mesh) p.users_of_site[mesh].assign(p.own_kinds[mesh].size(), {});
    std::uint32_t pieces = 1;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::vector<Message> parts = p.sites.receive_parts(site, Phase::kMesh, number + i);
      const Stopwatch watch(p.counters.decoding);
      try {
        for (const Message& message : parts) {
          const MeshPart part = unpack(header, message);
          if (i > 0 && part.pieces != pieces)
            throw Error("it is in " + std::to_string(part.pieces) + " pieces at once");
          pieces = part.pieces;
          p.add(box, unit, part, sums);
        }
      } catch (const Error& error) {
        throw Error("the mesh of site " + p.sites.name(site) + " cannot be taken", error.what());
      }
    }
    for (std::size_t mesh = 0; mesh < counted(header.meshes); ++mesh) {
      for (std::size_t x = 0; x < p.users[mesh].size(); ++x) {
        p.users[mesh][x].sites += p.users_of_site[mesh][x].sites;
        p.users[mesh][x].rounded = p.users[mesh][x].rounded || p.users_of_site[mesh][x].rounded;
      }
    }
  }
  p.count_shared();
}

}  // namespace maki::sites
