// Particles as their writers see them, wherever and however they are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/io/snapshot.hpp"

namespace maki {

// A rank's share of a set, in the numbers of a Snapshot. Read by one thread while others compute: it stays as it is.
class ParticleSource {
 public:
  virtual ~ParticleSource() = default;
  virtual const SnapshotHeader& header() const = 0;
  virtual std::size_t size() const = 0;
  virtual double position(std::size_t i, std::size_t axis) const = 0;
  virtual float velocity(std::size_t i, std::size_t axis) const = 0;
  virtual float mass(std::size_t i) const = 0;
  virtual std::uint64_t id(std::size_t i) const = 0;
};

// A Snapshot, which has to outlive it.
class SnapshotSource : public ParticleSource {
 public:
  explicit SnapshotSource(const Snapshot& set) : set_(set) {}
  const SnapshotHeader& header() const override { return set_.header; }
  std::size_t size() const override { return set_.size(); }
  double position(std::size_t i, std::size_t axis) const override { return set_.positions[i][axis]; }
  float velocity(std::size_t i, std::size_t axis) const override { return set_.velocities[i][axis]; }
  float mass(std::size_t i) const override { return set_.masses[i]; }
  std::uint64_t id(std::size_t i) const override { return set_.ids[i]; }

 private:
  const Snapshot& set_;
};

// Whether a particle is among this fraction of all: XXH3 (64 bits) of the eight bytes of its ID, little-endian, is below
// fraction 2^64. Subsets are the same at all times, and a smaller one lies within each larger one.
bool in_subset(std::uint64_t id, double fraction);

}  // namespace maki
