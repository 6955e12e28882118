// Registers that hold what nobody has written. Copies of structures take their padding along, so that reading such bytes is
// no fault yet: they are followed through moves, and reported where they are used: in arithmetic with real numbers, as an
// address, to decide a branch.
#pragma once

#include "tests/gpu_model/interpreter/warp.hpp"

namespace gpu_model {

// For a warp with tainted == true, before the instruction is carried out by its active lanes.
void pass_taint(Warp& w, const Instruction& i);
void check_guard(Warp& w, const Instruction& i);
void check_address(Warp& w, const Instruction& i);
// Lanes whose register is (or is not) what nobody has written; `part`: of a 64-bit row the lower or upper half.
Lanes& taint_of(Warp& w, Row r, unsigned part);
void set_taint(Warp& w, Row r, unsigned bits, Lanes lanes, Lanes undefined_low, Lanes undefined_high);

// Subnormal numbers are zero while it lives, as in Maki's kernels (-ftz=true).
class FlushToZero {
 public:
  FlushToZero();
  ~FlushToZero();

 private:
  unsigned before_ = 0;
};

}  // namespace gpu_model
