// A set of particles in the device's memory.
#pragma once

#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

struct OnDevice : DeviceBuffer<SourceParticle> {
  explicit OnDevice(const std::vector<SourceParticle>& set) : DeviceBuffer("test.source") {
    upload(test_stream(), set);
  }
};

}  // namespace maki::test
