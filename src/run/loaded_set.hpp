// A snapshot on the device, for measurements.
#pragma once

#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "src/run/products.hpp"

namespace maki {

// Copies a set, with many ranks each rank's share, to the rank's default device (CPU: its threads). Collective. Throws
// Error.
class LoadedSet {
 public:
  // From a file.
  explicit LoadedSet(const std::string& path, const Communicator& ranks = Communicator::world());
  // From memory; `origin` names the source in products.
  LoadedSet(const Snapshot& snapshot, const std::string& origin, const Communicator& ranks);

  const Communicator& ranks() const { return place_.ranks; }
  DeviceSet set() const { return {stream_, particles_.source, frame_, header_, *place_.sites}; }
  // For callers that sort the particles.
  const Stream& stream() const { return stream_; }
  Particles& particles() { return particles_; }
  const Frame& frame() const { return frame_; }
  const SnapshotHeader& header() const { return header_; }
  // The reader's report; empty for a set from memory.
  const ReadReport& report() const { return report_; }
  const std::vector<std::string>& notes() const { return report_.notes; }
  // Provenance for products of this set.
  Provenance provenance() const;

 private:
  void load(const Snapshot& snapshot);

  RunPlace place_;
  std::string origin_;
  SnapshotHeader header_;
  Stream stream_;
  Frame frame_;
  Particles particles_;
  ReadReport report_;
};

}  // namespace maki
