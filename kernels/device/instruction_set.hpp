// The instruction set of the CPU's loops: the best that the processor has, for all loops alike. The units that are
// compiled for one set (docs/design.md, "One source, two backends") call nothing here.
#pragma once

namespace maki {

// Each set holds those before it.
enum class InstructionSet { kScalar, kAvx2, kAvx512 };

inline const char* name_of(InstructionSet set) {
  constexpr const char* kNames[] = {"scalar", "avx2", "avx512"};
  return kNames[static_cast<int>(set)];
}

inline InstructionSet best_instruction_set() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return InstructionSet::kScalar;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return avx512 ? InstructionSet::kAvx512 : InstructionSet::kAvx2;
}

// The one in use.
inline InstructionSet& instruction_set() {
  static InstructionSet set = best_instruction_set();
  return set;
}

// For tests, while no loop runs: another set. False where the processor lacks it.
inline bool use_instruction_set(InstructionSet set) {
  if (set > best_instruction_set()) return false;
  instruction_set() = set;
  return true;
}

// The one of three objects or functions that was compiled for the set in use.
template <class T>
T& of_instruction_set(T& scalar, T& avx2, T& avx512) {
  if (instruction_set() == InstructionSet::kAvx512) return avx512;
  return instruction_set() == InstructionSet::kAvx2 ? avx2 : scalar;
}

}  // namespace maki
