// Barriers, shuffles, votes and reductions. The place of each call comes in through default arguments.
#pragma once

#include <bit>
#include <cstdint>

#include "tests/simt/cuda_language.hpp"

namespace maki::simt {

struct Site {
  const char* file;
  int line;
};

enum class BlockOp { sync, all, any, count };
enum class WarpOp {
  sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, any, all, match_any, match_all,
  add, min_signed, min_unsigned, max_signed, max_unsigned, bit_and, bit_or, bit_xor
};

// Wait for the others and give the result of the operation for this thread.
int block_barrier(BlockOp op, int predicate, Site site);
std::uint64_t warp_operation(WarpOp op, unsigned mask, std::uint64_t value, int argument, int width, Site site);

// Nothing to be ordered: the model's memory is sequentially consistent. A fence between blocks makes an atomic after
// it a release, and one before it an acquire.
void fence();
[[noreturn]] void trap(Site site);
void give_way();

template <class T>
__forceinline__ std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<std::uint32_t>(value);
  else
    return std::bit_cast<std::uint64_t>(value);
}
template <class T>
__forceinline__ T from_bits(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  else
    return std::bit_cast<T>(bits);
}

}  // namespace maki::simt

#define MAKI_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

__forceinline__ void __syncthreads(MAKI_SITE) { maki::simt::block_barrier(maki::simt::BlockOp::sync, 0, {file, line}); }
__forceinline__ int __syncthreads_and(int predicate, MAKI_SITE) {
  return maki::simt::block_barrier(maki::simt::BlockOp::all, predicate, {file, line});
}
__forceinline__ int __syncthreads_or(int predicate, MAKI_SITE) {
  return maki::simt::block_barrier(maki::simt::BlockOp::any, predicate, {file, line});
}
__forceinline__ int __syncthreads_count(int predicate, MAKI_SITE) {
  return maki::simt::block_barrier(maki::simt::BlockOp::count, predicate, {file, line});
}

__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu, MAKI_SITE) {
  maki::simt::warp_operation(maki::simt::WarpOp::sync, mask, 0, 0, 32, {file, line});
}
// Which lanes run together is the device's choice: here each runs alone.
__forceinline__ unsigned __activemask() { return 1u << (threadIdx.x % 32); }

#define MAKI_SHUFFLE(name, op, type)                                                                      \
  template <class T>                                                                                      \
  __forceinline__ T name(unsigned mask, T value, type argument, int width = 32, MAKI_SITE) {              \
    return maki::simt::from_bits<T>(maki::simt::warp_operation(maki::simt::WarpOp::op, mask,              \
                                                               maki::simt::to_bits(value),                \
                                                               static_cast<int>(argument), width, {file, line})); \
  }
MAKI_SHUFFLE(__shfl_sync, shuffle, int)
MAKI_SHUFFLE(__shfl_up_sync, shuffle_up, unsigned)
MAKI_SHUFFLE(__shfl_down_sync, shuffle_down, unsigned)
MAKI_SHUFFLE(__shfl_xor_sync, shuffle_xor, int)
#undef MAKI_SHUFFLE

__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate, MAKI_SITE) {
  return static_cast<unsigned>(
      maki::simt::warp_operation(maki::simt::WarpOp::ballot, mask, predicate != 0, 0, 32, {file, line}));
}
__forceinline__ int __any_sync(unsigned mask, int predicate, MAKI_SITE) {
  return static_cast<int>(
      maki::simt::warp_operation(maki::simt::WarpOp::any, mask, predicate != 0, 0, 32, {file, line}));
}
__forceinline__ int __all_sync(unsigned mask, int predicate, MAKI_SITE) {
  return static_cast<int>(
      maki::simt::warp_operation(maki::simt::WarpOp::all, mask, predicate != 0, 0, 32, {file, line}));
}
template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value, MAKI_SITE) {
  return static_cast<unsigned>(maki::simt::warp_operation(maki::simt::WarpOp::match_any, mask,
                                                          maki::simt::to_bits(value), 0, 32, {file, line}));
}
template <class T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all, MAKI_SITE) {
  const auto lanes = static_cast<unsigned>(maki::simt::warp_operation(
      maki::simt::WarpOp::match_all, mask, maki::simt::to_bits(value), 0, 32, {file, line}));
  *all = lanes != 0;
  return lanes;
}

#define MAKI_REDUCE(name, op, type)                                                                         \
  __forceinline__ type name(unsigned mask, type value, MAKI_SITE) {                                         \
    return maki::simt::from_bits<type>(maki::simt::warp_operation(                                          \
        maki::simt::WarpOp::op, mask, maki::simt::to_bits(value), 0, 32, {file, line}));                    \
  }
MAKI_REDUCE(__reduce_add_sync, add, unsigned)
MAKI_REDUCE(__reduce_add_sync, add, int)
MAKI_REDUCE(__reduce_min_sync, min_unsigned, unsigned)
MAKI_REDUCE(__reduce_min_sync, min_signed, int)
MAKI_REDUCE(__reduce_max_sync, max_unsigned, unsigned)
MAKI_REDUCE(__reduce_max_sync, max_signed, int)
MAKI_REDUCE(__reduce_and_sync, bit_and, unsigned)
MAKI_REDUCE(__reduce_or_sync, bit_or, unsigned)
MAKI_REDUCE(__reduce_xor_sync, bit_xor, unsigned)
#undef MAKI_REDUCE

__forceinline__ void __threadfence() { maki::simt::fence(); }
__forceinline__ void __threadfence_system() { maki::simt::fence(); }
__forceinline__ void __threadfence_block() {}
__forceinline__ void __nanosleep(unsigned) { maki::simt::give_way(); }
__forceinline__ void __trap(MAKI_SITE) { maki::simt::trap({file, line}); }
