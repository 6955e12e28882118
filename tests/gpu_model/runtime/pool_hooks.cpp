// Maki's pool hands out blocks of device memory. Its functions are linked through these (ld --wrap; the Makefile has
// the names), so that the model knows each block's place and name.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "tests/gpu_model/memory/address_space.hpp"
#include "tests/gpu_model/runtime/call.hpp"

using gpu_model::Address;
using gpu_model::Lock;

namespace {

// Living threads that have given blocks back.
std::atomic<int> threads = 0;
struct Counted {
  Counted() { ++threads; }
  ~Counted() { --threads; }
};

// Another thread may take the block before this one waits for the work that uses it.
void let_others_take_it() {
  thread_local const Counted counted;
  if (threads > 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace

extern "C" {

void* __real__ZN4maki13pool_allocateEPKcm(const char* name, std::size_t bytes);
void __real__ZN4maki12pool_releaseEPv(void* block) noexcept;
void __real__ZN4maki15pool_set_extentEPvm(void* block, std::size_t bytes) noexcept;

void* __wrap__ZN4maki13pool_allocateEPKcm(const char* name, std::size_t bytes) {
  void* const block = __real__ZN4maki13pool_allocateEPKcm(name, bytes);
  if (!block) return block;
  const Lock lock;
  gpu_model::pool_block_made(reinterpret_cast<Address>(block), bytes, name);
  return block;
}

void __wrap__ZN4maki12pool_releaseEPv(void* block) noexcept {
  if (block) {
    const Lock lock;
    gpu_model::pool_block_gone(reinterpret_cast<Address>(block));
  }
  __real__ZN4maki12pool_releaseEPv(block);
  if (block) let_others_take_it();
}

void __wrap__ZN4maki15pool_set_extentEPvm(void* block, std::size_t bytes) noexcept {
  if (block) {
    const Lock lock;
    gpu_model::pool_block_extent(reinterpret_cast<Address>(block), bytes);
  }
  __real__ZN4maki15pool_set_extentEPvm(block, bytes);
}
}
