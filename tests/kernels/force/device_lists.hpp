// Groups, their lists and the sources that these name, on the host and on the device.
#pragma once

#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/force/force.hpp"

namespace maki::force_test {

struct HostLists {
  std::vector<SourceParticle> particles;
  std::vector<CellMoments> cells;
  std::vector<std::uint32_t> cell_first, cell_count;
  std::vector<Group> groups;
  std::vector<ListRange> ranges;
  std::vector<std::uint32_t> words;
};

// In buffers of exactly their size.
struct DeviceLists {
  DeviceLists(const Stream& stream, const HostLists& lists) {
    particles.upload(stream, lists.particles);
    cells.upload(stream, lists.cells);
    cell_first.upload(stream, lists.cell_first);
    cell_count.upload(stream, lists.cell_count);
    words.upload(stream, lists.words);
    groups.upload(stream, lists.groups);
    ranges.upload(stream, lists.ranges);
  }
  SourceView sources() { return {particles.data(), cells.data(), cell_first.data(), cell_count.data()}; }
  ListView all() {
    return {groups.data(), ranges.data(), words.data(), nullptr, static_cast<std::uint32_t>(groups.size())};
  }
  DeviceBuffer<SourceParticle> particles{"test.particles"};
  DeviceBuffer<CellMoments> cells{"test.cells"};
  DeviceBuffer<std::uint32_t> cell_first{"test.cell_first"}, cell_count{"test.cell_count"}, words{"test.words"};
  DeviceBuffer<Group> groups{"test.groups"};
  DeviceBuffer<ListRange> ranges{"test.ranges"};
};

}  // namespace maki::force_test
