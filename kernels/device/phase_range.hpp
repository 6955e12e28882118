// Named ranges on the timeline of a profiler (NVTX): Nsight Systems shows the phases of a step beside the kernels that they
// queue. Without a profiler a call costs some nanoseconds, on the CPU nothing.
#pragma once

namespace maki {

// Ranges of one thread nest. `name` is copied where it is needed.
void begin_phase_range(const char* name);
void end_phase_range();
// Whether this binary has them: CUDA builds whose toolkit holds the header of NVTX 3.
bool has_phase_ranges();

}  // namespace maki
