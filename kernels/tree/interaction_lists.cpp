#include "kernels/tree/walk.hpp"

namespace maki {

void InteractionLists::reserve(const Stream& stream, std::uint64_t wanted) {
  if (wanted <= words.capacity()) return;
  constexpr double headroom = 0.15;
  if (used == 0) return words.resize(wanted, headroom);  // old and new need not stand side by side
  DeviceBuffer<std::uint32_t> larger(words.name());
  larger.resize(wanted, headroom);
  copy_on_device(stream, larger.data(), words.data(), used * sizeof(std::uint32_t));
  stream.synchronize();  // the old words end here
  words.swap(larger);
}

}  // namespace maki
