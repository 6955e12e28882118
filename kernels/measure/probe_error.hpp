// Copies and compares the accelerations of a sample of groups.
#pragma once

#include <cstdint>

#include "kernels/device/stream.hpp"
#include "kernels/particles/vector_array.hpp"
#include "kernels/tree/types.hpp"

namespace maki {

struct GroupSample {
  const Group* groups;
  const std::uint32_t* indices;  // of the sampled groups
  const std::uint32_t* offsets;  // where a sampled group's members stand in the packed arrays
  std::uint32_t count;           // sampled groups
};

// Members' vectors, packed one group behind the other.
void pack_sample(const Stream& stream, const GroupSample& sample, ConstVectorView from, VectorView packed);

struct SampleError {
  double difference = 0;  // sum |a - reference|^2
  double reference = 0;   // sum |reference|^2
};
SampleError sample_error(const Stream& stream, const GroupSample& sample, ConstVectorView acceleration,
                         ConstVectorView packed_reference);

}  // namespace maki
