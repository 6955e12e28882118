// Packets under way, first in, first out, in one stretch of memory: nothing is allocated for a packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maki::testbed {

class PacketRing {
 public:
  // Room for packets of `bytes` together, at least; memory that is never used is never taken.
  explicit PacketRing(std::size_t bytes);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;

  // Where the next packet may be written, kLargestPacket bytes in one piece; nullptr where there is no room.
  std::byte* reserve();
  // The packet that was written there: to leave at `release` (nanoseconds), `wire_bytes` and `segments` to be counted.
  void commit(std::size_t bytes, std::int64_t release, std::uint32_t segments, std::uint32_t wire_bytes);

  struct Packet {
    std::size_t offset = 0;
    std::uint32_t bytes = 0, segments = 0, wire_bytes = 0;
    std::int64_t release = 0;
  };
  bool empty() const { return first_ == next_; }
  const Packet& front() const { return packets_[first_ & mask_]; }
  std::span<const std::byte> front_bytes() const { return {memory_ + front().offset, front().bytes}; }
  void pop() { ++first_; }
  std::uint64_t taken_out() const { return first_; }  // packets so far

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0, write_ = 0, mask_ = 0;
  std::uint64_t first_ = 0, next_ = 0;
  std::vector<Packet> packets_;
};

}  // namespace maki::testbed
