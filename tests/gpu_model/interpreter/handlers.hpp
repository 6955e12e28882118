// The function that carries out an operation, chosen by its name's parts ("setp", "lt", "s32").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/gpu_model/interpreter/program.hpp"

namespace gpu_model {

using Words = std::vector<std::string_view>;
inline bool has(const Words& words, std::string_view w) {
  for (const auto& x : words)
    if (x == w) return true;
  return false;
}

// Each returns nullptr where the operation is not one of its own. They fill in what they need besides (extra, kind, ...).
Handler arithmetic(const Words& words, Instruction& i);         // arithmetic.cpp
Handler logic(const Words& words, Instruction& i);              // logic.cpp: bits, comparisons, selections, moves
Handler conversion(const Words& words, Instruction& i);         // convert.cpp
Handler access(const Words& words, Instruction& i);             // access.cpp: loads, stores, and the next two
Handler atomic(const Words& words, Instruction& i);             // atomics.cpp
Handler asynchronous_copy(const Words& words, Instruction& i);  // copies.cpp
Handler of_warp(const Words& words, Instruction& i);            // warp_operations.cpp

}  // namespace gpu_model
