// The counts of a mesh that these ranks share with other sites: from particles to the lines of pencils, out to the
// other sites, and with their counts to masses.
#pragma once

#include <array>

#include "host/fft/particle_brick.hpp"
#include "host/fft/pencil_mesh.hpp"
#include "kernels/device/memory.hpp"

namespace maki {

class SharedCounts {
 public:
  // `box`: this rank's pencils. Both objects outlive this one.
  SharedCounts(ParticleBrick& brick, const MeshBox& box, bool interlaced, OutsideMasses& outside);

  // ParticleBrick::assign() in two halves, collective: this site's counts are given, then the sums over sites are
  // taken.
  void give(const Stream& stream, const SourceParticle* particles, std::size_t n, const MassUnit& unit);
  void take(const Stream& stream, const MassUnit& unit, float* mesh, float* shifted);
  bool given() const { return given_; }  // counts were given and not taken yet

  std::size_t bytes() const;  // on the device

 private:
  int meshes() const { return interlaced_ ? 2 : 1; }
  std::size_t bytes_of_mesh() const { return box_.size() * sizeof(std::uint64_t); }
  DeviceBuffer<std::uint64_t>& on_device(int which) { return counts_[on_host_ && which == 1 ? 1 : 0]; }
  std::uint64_t* on_host(int which) {
    return on_host_ ? on_device(which).data()
                    : reinterpret_cast<std::uint64_t*>(host_[static_cast<std::size_t>(which)].data());
  }

  ParticleBrick& brick_;
  MeshBox box_;
  bool interlaced_;
  OutsideMasses& outside_;
  bool on_host_;                                       // device memory is host memory
  std::array<DeviceBuffer<std::uint64_t>, 2> counts_;  // the second only where it is
  std::array<PinnedBuffer, 2> host_;                   // where it is not
  std::array<bool, 2> zero_{};                         // all counts of the mesh
  bool given_ = false;
};

}  // namespace maki
