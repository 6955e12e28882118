#include "host/let/ends.hpp"

namespace maki {
namespace {

// Fraction of the cutoff within which a cell touches a target, however distances are rounded.
constexpr float kTouch = 1e-3f;

}  // namespace

LetRule let_rule(const WalkOptions& walk, const LetOptions& options, int whole_cells) {
  if (whole_cells > 0) {
    WalkOptions touch = walk;  // targets have been grown, by grow_to_whole_cells()
    touch.r_cut *= kTouch;
    return {touch.rule(), 1, true, walk.small_cell, true};
  }
  WalkOptions longer = walk;
  longer.r_cut *= 1 + options.reach_skin;
  return {longer.rule(), 1 + options.skin, walk.r_cut > 0, walk.small_cell};
}

void LetReceiving::expect(const Stream& stream, const std::vector<BlockCounts>& counts, bool compress) {
  blocks = Blocks(stream, counts, compress);
  packed.resize(blocks.bytes(), 0.1);
}

void LetReceiving::unpack(const Stream& stream, bool with_shapes, bool particles_alone) {
  if (with_shapes)
    build_forest(stream, blocks, packed, make_domain_tree(static_cast<std::uint32_t>(blocks.size())), forest);
  fill_forest(stream, blocks, packed, with_shapes, forest, particles_alone);
}

}  // namespace maki
