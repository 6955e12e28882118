// Atomics, those of CUDA and those of C++, and the order that fences give them.
#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "tests/simt/cuda_atomics.hpp"
#include "tests/simt/runtime.hpp"

namespace maki::simt {
namespace {

// A block's atomic after a fence: what it did until `phase` is released to whoever touches the word later.
struct Release {
  std::uint32_t phase;
  std::uint32_t warp;
};
// The block at hand has read the first `count` releases of a word, in one of its threads.
struct Acquire {
  const std::vector<Release>* releases;
  std::size_t count;
  std::uint32_t phase;
  unsigned thread;
};
struct Order {
  std::uint32_t launch = 0;
  std::uint64_t block = 0;
  std::unordered_map<std::uintptr_t, std::vector<Release>> releases;
  std::vector<Acquire> acquires;
};
Order& order() {
  static Order* instance = new Order;
  Order& o = *instance;
  if (o.launch != hot.launch_start) {
    o.releases.clear();
    o.acquires.clear();
    o.launch = hot.launch_start;
  }
  if (o.block != hot.block_serial) {
    o.acquires.clear();
    o.block = hot.block_serial;
  }
  return o;
}

void note_order(std::uintptr_t address) {
  Thread& self = *running.thread;
  if (!self.fenced) return;
  auto& releases = order().releases[address];
  if (!releases.empty()) order().acquires.push_back({&releases, releases.size(), hot.phase, self.index});
  releases.push_back({hot.phase, hot.warp});
}

template <class T>
T apply(AtomicOp op, T old, T value, T compare) {
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::bit_and: return old & value;
      case AtomicOp::bit_or: return old | value;
      case AtomicOp::bit_xor: return old ^ value;
      case AtomicOp::increment: return old >= value ? T{0} : static_cast<T>(old + 1);
      case AtomicOp::decrement: return old == 0 || old > value ? value : static_cast<T>(old - 1);
      case AtomicOp::compare_exchange: return old == compare ? value : old;
      case AtomicOp::add: {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
      }
      case AtomicOp::sub: {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(old) - static_cast<U>(value));
      }
      default: break;
    }
  }
  switch (op) {
    case AtomicOp::add: return old + value;
    case AtomicOp::min: return std::min(old, value);
    case AtomicOp::max: return std::max(old, value);
    default: return value;
  }
}

template <class T>
std::uint64_t operate(AtomicOp op, void* address, std::uint64_t value, std::uint64_t compare) {
  T old;
  std::memcpy(&old, address, sizeof old);
  const T now = apply<T>(op, old, from_bits<T>(value), from_bits<T>(compare));
  std::memcpy(address, &now, sizeof now);
  return to_bits(old);
}

}  // namespace

std::uint64_t atomic_operation(AtomicOp op, AtomicType type, void* address, std::uint64_t value,
                               std::uint64_t compare) {
  const bool wide = type == AtomicType::i64 || type == AtomicType::u64 || type == AtomicType::f64;
  if (hot.active) {
    check_atomic(address, wide ? 8 : 4, op != AtomicOp::exchange, place_of(__builtin_return_address(0)));
    const Pause pause;
    note_order(reinterpret_cast<std::uintptr_t>(address));
  }
  const Pause pause;
  switch (type) {
    case AtomicType::i32: return operate<std::int32_t>(op, address, value, compare);
    case AtomicType::u32: return operate<std::uint32_t>(op, address, value, compare);
    case AtomicType::i64: return operate<std::int64_t>(op, address, value, compare);
    case AtomicType::u64: return operate<std::uint64_t>(op, address, value, compare);
    case AtomicType::f32: return operate<float>(op, address, value, compare);
    case AtomicType::f64: return operate<double>(op, address, value, compare);
  }
  return 0;
}

void fence() {
  Thread& self = *running.thread;
  self.fenced = true;
}

bool acquired(const Slot& slot) {
  const Pause pause;
  for (const Acquire& a : order().acquires) {
    if (a.phase == hot.phase && a.thread != running.thread->index) continue;
    // Releases are in the order of phases: the last one of the slot's block, if any, is the one that counts.
    for (std::size_t i = a.count; i-- > 0;) {
      const Release& r = (*a.releases)[i];
      if (r.phase < slot.phase) break;
      if (block_of_phase(r.phase) != block_of_phase(slot.phase)) continue;
      if (slot.phase < r.phase || slot.warp == r.warp) return true;
    }
  }
  return false;
}

}  // namespace maki::simt

// ---- C++ atomics of instrumented code -----------------------------------------------------------------------------
namespace {
template <class T>
void check_word(const volatile T* p, bool reads, const void* from) {
  using namespace maki::simt;
  if (hot.active) check_atomic(const_cast<const T*>(p), sizeof(T), reads, place_of(from));
}
}  // namespace

#define MAKI_FROM __builtin_return_address(0)
#define MAKI_RMW(bits, T, name, op)                                            \
  T __tsan_atomic##bits##_##name(volatile T* p, T value, int) {                \
    check_word(p, true, MAKI_FROM);                                            \
    return op(p, value, __ATOMIC_SEQ_CST);                                     \
  }
#define MAKI_TSAN_ATOMICS(bits, T)                                                                             \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                                     \
    check_word(p, true, MAKI_FROM);                                                                            \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                            \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                                              \
    check_word(p, false, MAKI_FROM);                                                                           \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                              \
  }                                                                                                            \
  MAKI_RMW(bits, T, exchange, __atomic_exchange_n)                                                             \
  MAKI_RMW(bits, T, fetch_add, __atomic_fetch_add)                                                             \
  MAKI_RMW(bits, T, fetch_sub, __atomic_fetch_sub)                                                             \
  MAKI_RMW(bits, T, fetch_and, __atomic_fetch_and)                                                             \
  MAKI_RMW(bits, T, fetch_or, __atomic_fetch_or)                                                               \
  MAKI_RMW(bits, T, fetch_xor, __atomic_fetch_xor)                                                             \
  MAKI_RMW(bits, T, fetch_nand, __atomic_fetch_nand)                                                           \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T value, int, int) {           \
    check_word(p, true, MAKI_FROM);                                                                            \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
  }                                                                                                            \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T value, int, int) {             \
    check_word(p, true, MAKI_FROM);                                                                            \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
  }                                                                                                            \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T value, int, int) {                 \
    check_word(p, true, MAKI_FROM);                                                                            \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);               \
    return expected;                                                                                           \
  }

extern "C" {
MAKI_TSAN_ATOMICS(8, unsigned char)
MAKI_TSAN_ATOMICS(16, unsigned short)
MAKI_TSAN_ATOMICS(32, unsigned)
MAKI_TSAN_ATOMICS(64, unsigned long)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
}
