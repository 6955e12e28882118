// A snapshot file on the device, for commands that only look at it.
#pragma once

#include <string>

#include "src/run/products.hpp"

namespace maki {

// Reads the set, of many ranks each its share, and puts it on the usual device of the rank (CPU: on its threads). What
// the reader has to say, the first rank prints.
// Collective. Throws Error.
class LoadedSet {
 public:
  explicit LoadedSet(const std::string& path, const Communicator& ranks = Communicator::world());
  const Communicator& ranks() const { return ranks_; }
  DeviceSet set() const { return {stream_, particles_.source, frame_, header_}; }
  // For what sorts the particles.
  const Stream& stream() const { return stream_; }
  Particles& particles() { return particles_; }
  const Frame& frame() const { return frame_; }
  const SnapshotHeader& header() const { return header_; }
  // Where the products of this file say they come from.
  Provenance provenance() const;

 private:
  Communicator ranks_;
  std::string path_;
  SnapshotHeader header_;
  Stream stream_;
  Frame frame_;
  Particles particles_;
};

}  // namespace maki
