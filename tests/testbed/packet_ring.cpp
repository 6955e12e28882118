#include "tests/testbed/packet_ring.hpp"

#include <sys/mman.h>

#include <bit>

#include "tests/testbed/packet.hpp"
#include "wan/net/error.hpp"

namespace maki::testbed {

PacketRing::PacketRing(std::size_t bytes) : size_(bytes + 4 * kLargestPacket) {
  constexpr std::size_t kSmallPacket = 256;  // on average; smaller ones fill the table before the memory
  packets_.resize(std::bit_ceil(size_ / kSmallPacket));
  mask_ = packets_.size() - 1;
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw wan::Error("no memory for the packets of an emulated link");
  memory_ = static_cast<std::byte*>(memory);
}

PacketRing::~PacketRing() { munmap(memory_, size_); }

std::byte* PacketRing::reserve() {
  if (next_ - first_ == packets_.size()) return nullptr;
  if (empty()) write_ = 0;
  const std::size_t oldest = empty() ? size_ : front().offset;
  if (write_ >= oldest || empty()) {  // free: from here to the end, then from the start to the oldest packet
    if (write_ + kLargestPacket <= size_) return memory_ + write_;
    if (kLargestPacket >= oldest) return nullptr;
    write_ = 0;
    return memory_;
  }
  return write_ + kLargestPacket < oldest ? memory_ + write_ : nullptr;
}

void PacketRing::commit(std::size_t bytes, std::int64_t release, std::uint32_t segments, std::uint32_t wire_bytes) {
  packets_[next_++ & mask_] = {write_, static_cast<std::uint32_t>(bytes), segments, wire_bytes, release};
  write_ += bytes;
}

}  // namespace maki::testbed
