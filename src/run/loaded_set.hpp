// A snapshot on the device, for what only looks at it.
#pragma once

#include <string>
#include <vector>

#include "src/io/snapshot_io.hpp"
#include "src/run/products.hpp"

namespace maki {

// Puts a set, of many ranks each its share, on the usual device of the rank (CPU: on its threads).
// Collective. Throws Error.
class LoadedSet {
 public:
  // Of a file.
  explicit LoadedSet(const std::string& path, const Communicator& ranks = Communicator::world());
  // Of what is in memory; `origin` says in products where it came from.
  LoadedSet(const Snapshot& snapshot, const std::string& origin, const Communicator& ranks);

  const Communicator& ranks() const { return place_.ranks; }
  DeviceSet set() const { return {stream_, particles_.source, frame_, header_, *place_.sites}; }
  // For what sorts the particles.
  const Stream& stream() const { return stream_; }
  Particles& particles() { return particles_; }
  const Frame& frame() const { return frame_; }
  const SnapshotHeader& header() const { return header_; }
  // What the reader has to say; empty of a set in memory.
  const ReadReport& report() const { return report_; }
  const std::vector<std::string>& notes() const { return report_.notes; }
  // Where the products of this set say they come from.
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
