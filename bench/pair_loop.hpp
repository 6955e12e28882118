// The pair formula alone, as a yardstick of list evaluation: on the CPU a loop whose data stay in L1 (on all threads in
// use), on a GPU one whose data stay in registers.
#pragma once

#include "kernels/device/stream.hpp"
#include "kernels/force/split.hpp"

namespace maki::bench {

// Pairs a second. `cells`: with quadrupoles.
double loop_rate(const Stream& stream, const ForceLaw& law, bool cells, bool potential);

}  // namespace maki::bench
