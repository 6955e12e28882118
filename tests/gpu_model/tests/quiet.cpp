// Faults are what these tests are about: each looks at its own, and what none has taken the listener makes a failure
// of.
#include "tests/gpu_model/report.hpp"

namespace {
const int quiet = (gpu_model::write_faults(false), 0);
}
