#include "kernels/device/phase_range.hpp"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define MAKI_NVTX 1
#endif

namespace maki {

#ifdef MAKI_NVTX
void begin_phase_range(const char* name) { nvtxRangePushA(name); }
void end_phase_range() { nvtxRangePop(); }
bool has_phase_ranges() { return true; }
#else
void begin_phase_range(const char*) {}
void end_phase_range() {}
bool has_phase_ranges() { return false; }
#endif

}  // namespace maki
