#include "kernels/tree/walk_cpu.hpp"

// Vectors of 32 bytes stay inside this file, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace maki::walk_scalar {
#include "kernels/tree/walk_group.inl"
}  // namespace maki::walk_scalar
