#include "host/fft/shared_counts.hpp"

#include <string>

#include "kernels/device/async_copy.hpp"
#include "kernels/device/device.hpp"

namespace maki {

SharedCounts::SharedCounts(ParticleBrick& brick, const CellBox& box, bool interlaced, OutsideMasses& outside)
    : brick_(brick),
      box_(box),
      interlaced_(interlaced),
      outside_(outside),
      on_host_(std::string(backend_name()) == "cpu"),
      counts_{DeviceBuffer<std::uint64_t>("mesh.shared"), DeviceBuffer<std::uint64_t>("mesh.shared_shifted")} {}

void SharedCounts::give(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit) {
  brick_.take(stream, particles, n, unit);
  for (int which = 0; which < meshes(); ++which) {
    const auto w = static_cast<std::size_t>(which);
    DeviceBuffer<std::uint64_t>& counts = counts_[on_host_ ? w : 0];
    counts.resize(box_.size());
    brick_.count(stream, which == 1, counts.data());
    if (on_host_) {
      outside_.give(box_, which, unit, counts.data());
      continue;
    }
    host_[w].reserve(box_.size() * sizeof(std::uint64_t));
    queue_copy_to_host(stream, host_[w].data(), counts.data(), box_.size() * sizeof(std::uint64_t));
    stream.synchronize();
    outside_.give(box_, which, unit, reinterpret_cast<const std::uint64_t*>(host_[w].data()));
  }
  given_ = true;
}

void SharedCounts::take(const Stream& stream, const MassUnit& unit, float* mesh, float* shifted) {
  given_ = false;
  for (int which = 0; which < meshes(); ++which) {
    const auto w = static_cast<std::size_t>(which);
    DeviceBuffer<std::uint64_t>& counts = counts_[on_host_ ? w : 0];
    if (on_host_) {
      outside_.take(box_, which, unit, counts.data());
    } else {
      outside_.take(box_, which, unit, reinterpret_cast<std::uint64_t*>(host_[w].data()));
      queue_copy_to_device(stream, counts.data(), host_[w].data(), box_.size() * sizeof(std::uint64_t));
    }
    brick_.to_masses(stream, unit, counts.data(), which == 1 ? shifted : mesh);
  }
}

std::size_t SharedCounts::bytes() const {
  return (counts_[0].capacity() + counts_[1].capacity()) * sizeof(std::uint64_t);
}

}  // namespace maki
