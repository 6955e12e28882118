// A copy of a run's particles on the host, with the same bits as on the device, for writing during later steps.
#pragma once

#include <memory>

#include "src/io/snapshot.hpp"
#include "src/simulation/gravity_field.hpp"
#include "src/simulation/simulation.hpp"

namespace maki {

// The same bits as OutputState::snapshot(); its escapers come last.
class StateCopy : public ParticleSource {
 public:
  static constexpr double kBytes = ParticleRows::kBytes;  // a particle
  explicit StateCopy(const OutputState& state);

  const SnapshotHeader& header() const override { return header_; }
  std::size_t size() const override { return rows_.size() + gone_.size(); }
  double position(std::size_t i, std::size_t axis) const override;
  float velocity(std::size_t i, std::size_t axis) const override;
  float mass(std::size_t i) const override;
  std::uint64_t id(std::size_t i) const override;

 private:
  SnapshotHeader header_;
  Frame frame_;
  double scale_factor_;
  ParticleRows rows_;
  Escapers gone_;
};

}  // namespace maki
