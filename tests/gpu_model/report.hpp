// Faults: what the model finds wrong with a program. Each is written to standard error when it is found (the same one,
// at the same line, once), kept for tests that expect it, and makes the program end with exit code 86 unless it was
// taken.
#pragma once

#include <string>
#include <vector>

namespace gpu_model {

struct Fault {
  std::string kind;   // "out of bounds", "race in a block", ...; README.md lists them
  std::string where;  // kernel, block, thread, source line; or the call
  std::string text;   // what happened
};

inline std::string to_string(const Fault& f) { return f.kind + ": " + f.where + ": " + f.text; }

void report(Fault fault);
// Thrown after report() where a kernel cannot go on: the launch ends, and the program gets cudaErrorLaunchFailure or
// the like.
struct Stopped {
  int code = 719;  // a cudaError_t
};
inline constexpr int kIllegalAddress = 700;

// Whether faults are also written to stderr, as they are found; at first they are.
void write_faults(bool yes);

// All that were found since the last call, in order.
std::vector<Fault> take_faults();

}  // namespace gpu_model
