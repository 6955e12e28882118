// Values in the device's memory.
#pragma once

#include <vector>

#include "kernels/device/buffer.hpp"
#include "kernels/particles/types.hpp"
#include "tests/test_stream.hpp"

namespace maki::test {

template <class T = SourceParticle>
struct OnDevice : DeviceBuffer<T> {
  explicit OnDevice(const std::vector<T>& values) : DeviceBuffer<T>("test.values") {
    this->upload(test_stream(), values);
  }
};

struct VectorsOnDevice : VectorArray {
  explicit VectorsOnDevice(std::size_t n) : VectorArray("test.vectors") { resize(n); }
};

}  // namespace maki::test
