// Packets as a TUN device gives them, each a VirtioHeader, then an IP packet; with TSO several TCP segments in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maki::testbed {

// As in <linux/virtio_net.h>, which C++ does not take.
struct VirtioHeader {
  std::uint8_t flags, gso_type;
  std::uint16_t header_bytes, gso_size, checksum_start, checksum_offset;
};
inline constexpr std::uint8_t kNeedsChecksum = 1, kNoGso = 0, kTcp4 = 1, kTcp6 = 4;

inline constexpr std::size_t kVirtioBytes = sizeof(VirtioHeader);
inline constexpr std::size_t kLargestPacket = kVirtioBytes + 65535 + 40;

// What a packet is on the wire: `count` IP packets of `headers` bytes and a share of `payload` each.
struct Segments {
  std::size_t count = 1;
  std::size_t headers = 0;    // IP and TCP of one; 0 where it is no super-packet
  std::size_t payload = 0;    // bytes of all (no super-packet: the whole IP packet)
  std::size_t size = 0;       // payload of each but the last
  std::size_t transport = 0;  // where TCP begins in the IP packet
  std::size_t wire_bytes(std::size_t segment) const;
  std::size_t wire_bytes() const { return count * headers + payload; }
};

// `packet` with its VirtioHeader. A super-packet that is not what a kernel makes counts as one packet.
Segments segments_of(std::span<const std::byte> packet);

// Writes the segments [first, last) of a super-packet as a packet of their own: lengths, sequence number, IP id, flags
// and checksums as if they had been sent so. `to` has room for kLargestPacket. Bytes written.
std::size_t write_segments(std::span<const std::byte> packet, const Segments& segments, std::size_t first,
                           std::size_t last, std::byte* to);

// Packets under way, first in, first out, in one stretch of memory: nothing is allocated for a packet.
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
