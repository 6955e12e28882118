#include "host/let/blocks.hpp"

#include "kernels/device/algorithms.hpp"
#include "kernels/device/launch.cuh"

namespace maki {
namespace {

constexpr std::uint64_t kBlockAlignment = 16;

}  // namespace

Blocks::Blocks(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress)
    : compress_(compress), counts_(counts), begin_(1, 0) {
  const std::size_t entries = counts.size() + 1;
  std::vector<std::uint64_t> starts(4 * entries, 0);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    total_.particles += counts[b].particles;
    total_.multipoles += counts[b].multipoles;
    total_.cells += counts[b].cells;
    begin_.push_back((begin_.back() + message_bytes(b) + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
    const std::uint64_t next[4] = {total_.particles, total_.multipoles, total_.cells, begin_.back()};
    for (std::size_t k = 0; k < 4; ++k) starts[k * entries + b + 1] = next[k];
  }
  starts_.upload(stream, starts);
}

std::uint64_t Blocks::payload_bytes(std::size_t block) const { return BlockSections(counts_[block], compress_).shapes; }

std::uint64_t Blocks::message_bytes(std::size_t block, bool with_shapes) const {
  return with_shapes ? BlockSections(counts_[block], compress_).end : payload_bytes(block);
}

BlocksView Blocks::view() const {
  const std::size_t entries = counts_.size() + 1;
  const std::uint64_t* at = starts_.data();
  const auto n = static_cast<std::uint32_t>(counts_.size());
  return {at, at + entries, at + 2 * entries, at + 3 * entries, n, compress_};
}

namespace {

struct CountShape {
  const std::uint32_t* shapes;
  std::uint32_t* children;
  std::uint32_t* multipoles;
  std::uint32_t* particles;
  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t shape = shapes[i];
    children[i] = is_divided(shape) ? shape - kDividedCell : 0;
    multipoles[i] = is_leaf(shape) ? 0 : 1;
    particles[i] = is_leaf(shape) ? shape : 0;
  }
};

// A divided cell registers itself as parent of the particles of its leaf children.
struct TellParents {
  BlocksView blocks;
  const std::uint32_t* shapes;
  const std::uint32_t* children;
  const std::uint32_t* multipoles;
  const std::uint64_t* particles;
  std::uint32_t* parents;
  MAKI_HD void operator()(std::size_t i) const {
    if (!is_divided(shapes[i])) return;
    const std::uint64_t root = blocks.cell[blocks.block_of_cell(i)];
    const std::uint64_t first = root + 1 + (children[i] - children[root]);
    for (std::uint64_t c = first; c < first + (shapes[i] - kDividedCell); ++c)
      for (std::uint64_t p = particles[c]; p < particles[c + 1]; ++p) parents[p] = multipoles[i];
  }
};

}  // namespace

ShapeSums sum_shapes(const Stream& stream, const DeviceBuffer<std::uint32_t>& shapes) {
  const std::size_t n = shapes.size();
  DeviceBuffer<std::uint32_t> children("let.scratch", n), multipoles("let.scratch", n), particles("let.scratch", n);
  launch(stream, "let_count_shapes", n,
         CountShape{shapes.data(), children.data(), multipoles.data(), particles.data()});
  ShapeSums sums;
  sums.children.resize(n + 1);
  sums.multipoles.resize(n + 1);
  sums.particles.resize(n + 1);
  exclusive_scan(stream, children.data(), sums.children.data(), n);
  exclusive_scan(stream, multipoles.data(), sums.multipoles.data(), n);
  exclusive_scan(stream, particles.data(), sums.particles.data(), n);
  return sums;
}

void find_parents(const Stream& stream, const Blocks& blocks, const DeviceBuffer<std::uint32_t>& shapes,
                  const ShapeSums& sums, DeviceBuffer<std::uint32_t>& parents) {
  parents.resize(blocks.total().particles, 0.1);
  launch(stream, "let_parents", shapes.size(),
         TellParents{blocks.view(), shapes.data(), sums.children.data(), sums.multipoles.data(), sums.particles.data(),
                     parents.data()});
}

}  // namespace maki
