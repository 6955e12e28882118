// Three float arrays of one length: a vector for each particle, component by component.
#pragma once

#include "kernels/device/buffer.hpp"

namespace maki {

struct VectorView {
  float* x;
  float* y;
  float* z;
};

struct ConstVectorView {
  const float* x;
  const float* y;
  const float* z;
};

struct VectorArray {
  explicit VectorArray(const char* name) : x(name), y(name), z(name) {}
  void resize(std::size_t n) {
    x.resize(n);
    y.resize(n);
    z.resize(n);
  }
  void fill_zero(const Stream& stream) {
    x.fill_zero(stream);
    y.fill_zero(stream);
    z.fill_zero(stream);
  }
  VectorView view() { return {x.data(), y.data(), z.data()}; }
  ConstVectorView view() const { return {x.data(), y.data(), z.data()}; }
  std::size_t size() const { return x.size(); }

  DeviceBuffer<float> x, y, z;
};

}  // namespace maki
