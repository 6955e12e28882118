#include "kernels/groups/cell_boxes.hpp"

#include "kernels/device/launch.cuh"

namespace maki {
namespace {

struct BoxOfCell {
  const SourceParticle* particles;
  const std::uint32_t *first, *count, *first_child;
  const std::uint8_t* child_count;
  std::uint32_t begin;  // of the level
  CellBox* boxes;

  MAKI_HD void operator()(std::size_t i) const {
    const std::uint32_t cell = begin + static_cast<std::uint32_t>(i);
    const std::uint32_t children = child_count[cell];
    CellBox box = children > 0 ? boxes[first_child[cell]] : box_of(particles[first[cell]]);
    for (std::uint32_t k = 1; k < children; ++k) grow(box, boxes[first_child[cell] + k]);
    for (std::uint32_t k = 1; children == 0 && k < count[cell]; ++k) grow(box, box_of(particles[first[cell] + k]));
    boxes[cell] = box;
  }
};

}  // namespace

void make_cell_boxes(const Stream& stream, const SourceParticle* particles, const Octree& tree,
                     DeviceBuffer<CellBox>& boxes) {
  boxes.resize(tree.cells);
  for (std::size_t level = tree.level_begin.size() - 1; level-- > 0;) {
    const std::uint32_t begin = tree.level_begin[level];
    launch(stream, "cell_boxes", tree.level_begin[level + 1] - begin,
           BoxOfCell{particles, tree.first.data(), tree.count.data(), tree.first_child.data(), tree.child_count.data(),
                     begin, boxes.data()});
  }
}

}  // namespace maki
