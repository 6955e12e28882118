#include "kernels/device/phase_range.hpp"

namespace maki {

void begin_phase_range(const char*) {}
void end_phase_range() {}
bool has_phase_ranges() { return false; }

}  // namespace maki
