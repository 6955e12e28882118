#include "kernels/mesh/blocks_cpu.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

namespace maki {

BlockAxis::BlockAxis(const MeshBox& box, int axis) {
  const int extent = box.extent[axis], m = box.cells;
  const double wanted = static_cast<double>(extent) / ParticleBlocks::kBlockCells;
  count = extent == m ? 2 * std::max(1, static_cast<int>(std::lround(wanted / 2)))
                      : std::max(1, static_cast<int>(std::lround(wanted)));
  of_cell.resize(static_cast<std::size_t>(m), 0);
  for (int b = 0; b <= count; ++b) begin.push_back(static_cast<int>(static_cast<long>(b) * extent / count));
  for (int b = 0; b < count; ++b) {
    longest = std::max(longest, cells(b));
    for (int c = begin[b]; c < begin[b + 1]; ++c) of_cell[(box.origin[axis] + c) % m] = static_cast<std::uint32_t>(b);
  }
}

ParticleBlocks::ParticleBlocks(const MeshBox& box, Assignment cloud)
    : box_(box), cloud_(cloud), axes_{BlockAxis(box, 0), BlockAxis(box, 1), BlockAxis(box, 2)} {
  tile_side_ = std::max({axes_[0].longest, axes_[1].longest, axes_[2].longest}) + kTileMargin;
}

std::size_t ParticleBlocks::bytes() const {
  return tiles_.capacity() * sizeof(std::uint64_t) + (selected_.capacity() + places_.capacity()) * 4;
}

// Counting sort. Particles are nearly in Morton order, so both passes access memory nearly in order.
void ParticleBlocks::sort(const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  const auto threads = static_cast<std::size_t>(omp_get_max_threads());
  const std::size_t blocks = total();
  const auto m = static_cast<std::uint64_t>(box_.cells);
  const auto by = static_cast<std::uint32_t>(axes_[1].count), bz = static_cast<std::uint32_t>(axes_[2].count);
  const auto block_of = [&, x = axes_[0].of_cell.data(), y = axes_[1].of_cell.data(),
                         z = axes_[2].of_cell.data()](const SourceParticle& p) {
    return (x[p.x * m >> 32] * by + y[p.y * m >> 32]) * bz + z[p.z * m >> 32];
  };
  if (tiles_.size() < tile_size() * threads) {
    tiles_.resize(tile_size() * threads);
    tiles_.fill_zero(Stream());
  }
  selected_.resize(n, 0.05);
  places_.resize(threads * blocks);
  places_.fill_zero(Stream());
  block_begin_.resize(blocks + 1);
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const auto t = static_cast<std::size_t>(omp_get_thread_num());
    const std::size_t first = n * t / threads, last = n * (t + 1) / threads;
    std::uint32_t* mine = places_.data() + t * blocks;
    for (std::size_t i = first; i < last; ++i) ++mine[block_of(particles[i])];
#pragma omp barrier
#pragma omp single
    {
      std::uint32_t at = 0;
      for (std::size_t block = 0; block < blocks; ++block) {
        block_begin_[block] = at;
        for (std::size_t u = 0; u < threads; ++u) {
          std::uint32_t& place = places_.data()[u * blocks + block];
          const std::uint32_t held = place;
          place = at;
          at += held;
        }
      }
      block_begin_[blocks] = n;
    }
    for (std::size_t i = first; i < last; ++i)
      selected_.data()[mine[block_of(particles[i])]++] = static_cast<std::uint32_t>(i);
  }
  job_.particles = particles;
  job_.mesh_cells = static_cast<std::uint32_t>(box_.cells);
  job_.bits = unit.bits;
  job_.equal_units = unit.equal_units;
  job_.units_per_mass = unit.units_per_mass;
  job_.half = MassUnit::half_of(unit.shed_bits);
  job_.kept = MassUnit::kept_of(unit.shed_bits);
}

// An axis that is not held whole ends with the box: no cloud reaches beyond.
TileFlush ParticleBlocks::flush_of(const Block& block) const {
  TileFlush flush{};
  for (int a = 0; a < 3; ++a) {
    const int begin = axes_[a].begin[block[a]], extent = box_.extent[a];
    flush.origin[a] = begin;
    flush.begin[a] = 0;
    flush.end[a] = axes_[a].cells(block[a]) + kTileMargin;
    if (extent == box_.cells) continue;
    flush.begin[a] = begin == 0 ? 1 : 0;
    flush.end[a] = std::min(flush.end[a], extent - begin + 1);
  }
  flush.row = box_.extent[2];
  flush.mesh_cells = box_.cells;
  return flush;
}

void ParticleBlocks::gather_into(const Block& block, std::uint32_t half_cells, const TileFlush& given) {
  TileJob job = job_;
  job.count = block_begin_[id(block) + 1] - block_begin_[id(block)];
  if (job.count == 0) return;
  job.selected = selected_.data() + block_begin_[id(block)];
  job.half_cells = half_cells;
  for (int a = 0; a < 3; ++a) job.origin[a] = (box_.origin[a] + given.origin[a]) % box_.cells;
  job.tile = {tiles_.data() + tile_size() * static_cast<std::size_t>(omp_get_thread_num()), tile_side_};
  (job.half ? mesh_kernels().add_rounded_to_tile : mesh_kernels().add_to_tile)[static_cast<int>(cloud_) - 2](job);
  TileFlush flush = given;
  flush.tile = job.tile;
  mesh_kernels().flush_tile(flush);
}

}  // namespace maki
