// Asynchronous copies: nothing moves before the wait.
#include <algorithm>
#include <cstring>

#include "tests/simt/cuda_language.hpp"
#include "tests/simt/runtime.hpp"

namespace maki::simt {

void copy_async(void* shared, const void* global, std::size_t bytes) {
  const std::uint32_t pc = place_of(__builtin_return_address(0));
  check_read(global, bytes, pc);
  check_issue(shared, bytes, pc);
  const Pause pause;
  Thread& self = *running.thread;
  self.copies.push_back({static_cast<char*>(shared), static_cast<const char*>(global), bytes, pc, self.batch});
}

void commit_copies() { ++running.thread->batch; }

void wait_copies(int pending) {
  Thread& self = *running.thread;
  const std::uint32_t limit = self.batch - std::min<std::uint32_t>(static_cast<std::uint32_t>(pending), self.batch);
  // Copies not committed yet belong to a batch that no wait speaks of.
  std::size_t landed = 0;
  for (; landed < self.copies.size() && self.copies[landed].batch < limit; ++landed) {
    const PendingCopy copy = self.copies[landed];
    check_read(copy.from, copy.bytes, copy.pc);
    check_landing(copy.to, copy.bytes, copy.pc);
    const Pause pause;
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
  const Pause pause;
  self.copies.erase(self.copies.begin(), self.copies.begin() + static_cast<std::ptrdiff_t>(landed));
}

}  // namespace maki::simt
