// A snapshot file on the device, for commands that only look at it.
#pragma once

#include <string>

#include "src/cli/products.hpp"

namespace maki {

// Reads the set and puts it on the first device (CPU: on all threads). Throws Error.
class LoadedSet {
 public:
  explicit LoadedSet(const std::string& path);
  DeviceSet set() const { return {stream_, particles_, frame_, header_}; }
  // Where the pictures and spectra of this file say they come from.
  Provenance provenance() const;

 private:
  std::string path_;
  SnapshotHeader header_;
  Stream stream_;
  Frame frame_;
  Particles particles_;
};

}  // namespace maki
