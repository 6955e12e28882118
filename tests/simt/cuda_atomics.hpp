// Atomics of the types for which CUDA has them.
#pragma once

#include <bit>
#include <cstdint>

#include "tests/simt/cuda_language.hpp"
#include "tests/simt/cuda_warp.hpp"

namespace maki::simt {

enum class AtomicOp { add, sub, min, max, bit_and, bit_or, bit_xor, exchange, compare_exchange, increment, decrement };
enum class AtomicType { i32, u32, i64, u64, f32, f64 };

// Gives the old value's bits. compare_exchange: writes `value` where `compare` is found.
std::uint64_t atomic_operation(AtomicOp op, AtomicType type, void* address, std::uint64_t value,
                               std::uint64_t compare = 0);

}  // namespace maki::simt

#define MAKI_ATOMIC(name, op, type, kind)                                                                      \
  __forceinline__ type name(type* address, type value) {                                                       \
    return maki::simt::from_bits<type>(maki::simt::atomic_operation(                                           \
        maki::simt::AtomicOp::op, maki::simt::AtomicType::kind, address, maki::simt::to_bits(value)));         \
  }                                                                                                            \
  __forceinline__ type name##_block(type* address, type value) { return name(address, value); }
#define MAKI_ATOMIC_INTEGERS(name, op)             \
  MAKI_ATOMIC(name, op, int, i32)                  \
  MAKI_ATOMIC(name, op, unsigned, u32)             \
  MAKI_ATOMIC(name, op, unsigned long long, u64)

MAKI_ATOMIC_INTEGERS(atomicAdd, add)
MAKI_ATOMIC(atomicAdd, add, float, f32)
MAKI_ATOMIC(atomicAdd, add, double, f64)
MAKI_ATOMIC(atomicSub, sub, int, i32)
MAKI_ATOMIC(atomicSub, sub, unsigned, u32)
MAKI_ATOMIC_INTEGERS(atomicMin, min)
MAKI_ATOMIC(atomicMin, min, long long, i64)
MAKI_ATOMIC_INTEGERS(atomicMax, max)
MAKI_ATOMIC(atomicMax, max, long long, i64)
MAKI_ATOMIC_INTEGERS(atomicAnd, bit_and)
MAKI_ATOMIC_INTEGERS(atomicOr, bit_or)
MAKI_ATOMIC_INTEGERS(atomicXor, bit_xor)
MAKI_ATOMIC_INTEGERS(atomicExch, exchange)
MAKI_ATOMIC(atomicExch, exchange, float, f32)
MAKI_ATOMIC(atomicInc, increment, unsigned, u32)
MAKI_ATOMIC(atomicDec, decrement, unsigned, u32)
#undef MAKI_ATOMIC_INTEGERS
#undef MAKI_ATOMIC

#define MAKI_ATOMIC_CAS(type, kind)                                                                            \
  __forceinline__ type atomicCAS(type* address, type compare, type value) {                                    \
    return maki::simt::from_bits<type>(maki::simt::atomic_operation(                                           \
        maki::simt::AtomicOp::compare_exchange, maki::simt::AtomicType::kind, address,                         \
        maki::simt::to_bits(value), maki::simt::to_bits(compare)));                                            \
  }
MAKI_ATOMIC_CAS(int, i32)
MAKI_ATOMIC_CAS(unsigned, u32)
MAKI_ATOMIC_CAS(unsigned long long, u64)
#undef MAKI_ATOMIC_CAS
