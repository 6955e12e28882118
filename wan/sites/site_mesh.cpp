#include "wan/sites/site_mesh.hpp"

#include <chrono>
#include <exception>
#include <utility>

namespace maki::sites {
namespace {

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

bool SiteMesh::is_exclusive(int cells, int mesh, int plane) const {
  if (sites_.alone()) return true;
  constexpr double kCloud = 2.001;
  const double middle = plane - 0.5 * mesh, low = begin_ * cells + kCloud, high = end_ * cells - kCloud;
  const auto within = [&](double x) { return low <= x && x <= high; };
  return within(middle) || within(middle + cells) || within(middle - cells);
}

Plane SiteMesh::kind(const MeshBox& box, const MassUnit& unit, int mesh, int x, const std::uint64_t* counts) const {
  const std::size_t size = counted(box.extent[1]) * counted(box.extent[2]);
  const std::uint64_t* plane = counts + size * counted(x);
  if (std::all_of(plane, plane + size, [](std::uint64_t c) { return c == 0; })) return Plane::kEmpty;
  return unit.dropped_bits > 0 && is_exclusive(box.cells, mesh, box.origin[0] + x) ? Plane::kRounded : Plane::kExact;
}

// The chunks that are not empty altogether.
std::vector<MeshChunk> SiteMesh::chunks_of(const MeshBox& box, const MassUnit& unit, const Counts& counts) const {
  std::vector<MeshChunk> chunks;
  if (box.size() == 0) return chunks;
  const int thick = chunk_planes(box.extent[1], box.extent[2]);
  for (int x = 0; x < box.extent[0]; x += thick) {
    const int planes = std::min(thick, box.extent[0] - x);
    MeshChunk chunk{box.origin[0] + x, box.origin[1], {}, {}, {}};
    chunk.block = {planes, box.extent[1], box.extent[2], counts[1] ? 2 : 1, unit.dropped_bits, unit.shed_bits, {}};
    bool any = false;
    for (std::size_t mesh = 0; mesh < counted(chunk.block.meshes); ++mesh) {
      for (int i = 0; i < planes; ++i) chunk.block.kind[mesh].push_back(planes_[mesh][counted(x + i)].own);
      for (Plane kind : chunk.block.kind[mesh]) any = any || kind != Plane::kEmpty;
    }
    if (any) chunks.push_back(std::move(chunk));
  }
  return chunks;
}

void SiteMesh::encode_chunk(const MeshBox& box, const Counts& counts, MeshChunk& chunk) {
  const std::size_t first =
      counted(box.extent[1]) * counted(box.extent[2]) * counted(chunk.first_plane - box.origin[0]);
  chunk.bytes = encode(chunk.block, {counts[0] + first, counts[1] ? counts[1] + first : nullptr});
}

void SiteMesh::set_slabs(const Slabs& slabs, double stray) {
  const int me = sites_.me();
  begin_ = static_cast<double>(slabs.begin(me)) * 0x1p-32 + stray;
  end_ = static_cast<double>(slabs.end(me)) * 0x1p-32 - stray;
}

void SiteMesh::start_sum(const MeshBox& box, const MassUnit& unit, int meshes, const std::uint64_t* counts,
                         const std::uint64_t* shifted) {
  const Counts both = {counts, shifted};
  const MeshHeader header{box.cells, meshes, unit};
  std::vector<MeshChunk> chunks;
  {
    const Stopwatch watch(counters_.encoding);
    for (std::size_t mesh = 0; mesh < 2; ++mesh) {
      planes_[mesh].resize(counted(box.size() > 0 && mesh < counted(meshes) ? box.extent[0] : 0));
      for_each(planes_[mesh].size(), [&](std::size_t x) {
        const Plane own = kind(box, unit, static_cast<int>(mesh), static_cast<int>(x), both[mesh]);
        const bool rounded = own == Plane::kRounded;
        planes_[mesh][x] = {own, own == Plane::kEmpty ? 0 : 1, sites_.me(), rounded, rounded};
      });
    }
    if (sites_.count() > 1) chunks = chunks_of(box, unit, both);
  }
  const std::uint64_t number = kPiecesOfStep * sums_started_++;
  if (sites_.count() == 1) return;
  // Pieces of a bounded number of chunks, and so of bounded memory.
  std::size_t most = 1;
  if (!chunks.empty()) most = std::max<std::size_t>(1, piece_ / chunks.front().block.cells());
  const auto mine = std::max<std::uint64_t>(1, (chunks.size() + most - 1) / most);
  const std::uint64_t pieces = largest_of(sites_.ranks(), mine);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const std::size_t first = std::min(chunks.size(), i * most), last = std::min(chunks.size(), first + most);
    Message message;
    {
      const Stopwatch watch(counters_.encoding);
      for_each(last - first, [&](std::size_t c) { encode_chunk(box, both, chunks[first + c]); });
      message = pack(header, static_cast<std::uint32_t>(pieces), std::span(chunks).subspan(first, last - first));
      for (std::size_t c = first; c < last; ++c) chunks[c].bytes = {};
    }
    counters_.bytes += message.size();
    sites_.publish_parts(Phase::kMesh, number + i, message);
  }
}

void SiteMesh::mark_user(const MeshBox& box, const MeshChunk& chunk, int site) {
  for (std::size_t mesh = 0; mesh < counted(chunk.block.meshes); ++mesh) {
    for (int x = 0; x < chunk.block.planes; ++x) {
      const int plane = chunk.first_plane + x - box.origin[0];
      const Plane kind = chunk.block.kind[mesh][counted(x)];
      if (plane < 0 || plane >= box.extent[0] || kind == Plane::kEmpty) continue;
      PlaneUse& use = planes_[mesh][counted(plane)];
      if (std::exchange(use.last, site) != site) ++use.sites;
      use.rounded = use.rounded || kind == Plane::kRounded;
    }
  }
}

// Rounds this rank's counts, as they were sent, in planes where other sites have masses too. All other planes are
// rounded when their counts become masses.
void SiteMesh::round_own(const MeshBox& box, const MassUnit& unit, const Sums& sums) {
  const std::size_t plane = counted(box.extent[1]) * counted(box.extent[2]);
  for (std::size_t mesh = 0; mesh < 2; ++mesh) {
    for (std::size_t x = 0; x < planes_[mesh].size(); ++x) {
      if (planes_[mesh][x].sites < 2 || !std::exchange(planes_[mesh][x].to_round, false)) continue;
      for (std::size_t i = plane * x; i < plane * (x + 1); ++i) sums[mesh][i] = unit.rounded(sums[mesh][i]);
    }
  }
}

// Adds the cells of the part that are in the box.
void SiteMesh::add(const MeshBox& box, const MassUnit& unit, const MeshPart& part, int site, const Sums& sums) {
  std::vector<const MeshChunk*> overlapping;
  for (const MeshChunk& chunk : part.chunks) {
    const int x = std::max(chunk.first_plane, box.origin[0]), y = std::max(chunk.first_row, box.origin[1]);
    if (x < std::min(chunk.first_plane + chunk.block.planes, box.origin[0] + box.extent[0]) &&
        y < std::min(chunk.first_row + chunk.block.rows, box.origin[1] + box.extent[1]))
      overlapping.push_back(&chunk);
  }
  for (const MeshChunk* chunk : overlapping) mark_user(box, *chunk, site);
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

void SiteMesh::finish_sum(const MeshBox& box, const MassUnit& unit, int meshes, std::uint64_t* counts,
                          std::uint64_t* shifted) {
  const Sums sums = {counts, shifted};
  const MeshHeader header{box.cells, meshes, unit};
  const std::uint64_t number = kPiecesOfStep * sums_finished_++;
  for (int site = 0; site < sites_.count(); ++site) {
    if (site == sites_.me()) continue;
    std::uint32_t pieces = 1;
    for (std::uint32_t i = 0; i < pieces; ++i) {
      const std::vector<Message> parts = sites_.receive_parts(site, Phase::kMesh, number + i);
      const Stopwatch watch(counters_.decoding);
      try {
        for (const Message& message : parts) {
          const MeshPart part = unpack(header, message);
          if (i > 0 && part.pieces != pieces)
            throw Error("it is in " + std::to_string(part.pieces) + " pieces at once");
          pieces = part.pieces;
          add(box, unit, part, site, sums);
        }
      } catch (const Error& error) {
        throw Error("the mesh of site " + sites_.name(site) + " cannot be taken", error.what());
      }
    }
  }
  for (const auto& mesh : planes_)
    for (const PlaneUse& use : mesh) counters_.shared_planes += use.sites > 1 && use.rounded ? 1 : 0;
}

}  // namespace maki::sites
