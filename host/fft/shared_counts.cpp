#include "host/fft/shared_counts.hpp"

#include <string>
#include <utility>

#include "kernels/device/device.hpp"
#include "kernels/device/memory.hpp"

namespace maki {

SharedCounts::SharedCounts(ParticleBrick& brick, const MeshBox& box, bool interlaced, OutsideMasses& outside)
    : brick_(brick), box_(box), interlaced_(interlaced), outside_(outside),
      on_host_(std::string(backend_name()) == "cpu"), counts_{DeviceBuffer<std::uint64_t>("mesh.shared"),
                                                              DeviceBuffer<std::uint64_t>("mesh.shared_shifted")} {}

void SharedCounts::give(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  brick_.take(stream, particles, n, unit);
  for (int which = 0; which < meshes(); ++which) {
    DeviceBuffer<std::uint64_t>& counts = on_device(which);
    counts.resize(box_.size());
    brick_.count(stream, which == 1, counts.data(), std::exchange(zero_[static_cast<std::size_t>(which)], false));
    if (on_host_) continue;
    PinnedBuffer& host = host_[static_cast<std::size_t>(which)];
    host.reserve(bytes_of_mesh());
    queue_copy_to_host(stream, host.data(), counts.data(), bytes_of_mesh());
  }
  stream.synchronize();
  outside_.start_sum(box_, unit, on_host(0), interlaced_ ? on_host(1) : nullptr);
  given_ = true;
}

void SharedCounts::take(const Stream& stream, const MassUnit& unit, float* mesh, float* shifted) {
  given_ = false;
  outside_.finish_sum(box_, unit, on_host(0), interlaced_ ? on_host(1) : nullptr);
  for (int which = 0; which < meshes(); ++which) {
    std::uint64_t* counts = on_device(which).data();
    if (!on_host_) queue_copy_to_device(stream, counts, on_host(which), bytes_of_mesh());
    zero_[static_cast<std::size_t>(which)] = brick_.to_masses(stream, unit, counts, which == 1 ? shifted : mesh);
  }
}

std::size_t SharedCounts::bytes() const {
  return (counts_[0].capacity() + counts_[1].capacity()) * sizeof(std::uint64_t);
}

}  // namespace maki
