#include "tests/testbed/packet.hpp"

#include <netinet/in.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "wan/net/error.hpp"

namespace maki::testbed {
namespace {

constexpr std::size_t kTcpSequence = 4, kTcpOffset = 12, kTcpFlags = 13, kTcpChecksum = 16;
constexpr unsigned kFin = 1, kPush = 8, kCwr = 128;

unsigned byte_at(const std::byte* p) { return std::to_integer<unsigned>(*p); }
std::uint16_t load16(const std::byte* p) { return static_cast<std::uint16_t>(byte_at(p) << 8 | byte_at(p + 1)); }
std::uint32_t load32(const std::byte* p) { return std::uint32_t{load16(p)} << 16 | load16(p + 2); }
void store16(std::byte* p, std::uint32_t v) { p[0] = std::byte(v >> 8 & 255), p[1] = std::byte(v & 255); }
void store32(std::byte* p, std::uint32_t v) { store16(p, v >> 16), store16(p + 2, v); }

std::uint32_t sum16(const std::byte* p, std::size_t bytes, std::uint32_t sum) {
  for (std::size_t i = 0; i + 1 < bytes; i += 2) sum += load16(p + i);
  return sum;
}

std::uint32_t fold(std::uint32_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

bool is_version(const std::byte* ip, unsigned version) { return byte_at(ip) >> 4 == version; }

// The sum over addresses, protocol and length that a kernel leaves in the checksum field for the rest to be added to.
std::uint32_t pseudo_header(const std::byte* ip, std::size_t tcp_bytes) {
  const std::uint32_t start = IPPROTO_TCP + static_cast<std::uint32_t>(tcp_bytes);
  return fold(is_version(ip, 4) ? sum16(ip + 12, 8, start) : sum16(ip + 8, 32, start));
}

void set_ip_length(std::byte* ip, std::size_t transport, std::size_t bytes, std::size_t first) {
  if (is_version(ip, 6)) {
    store16(ip + 4, static_cast<std::uint32_t>(bytes - 40));
    return;
  }
  store16(ip + 2, static_cast<std::uint32_t>(bytes));
  store16(ip + 4, load16(ip + 4) + static_cast<std::uint32_t>(first));
  store16(ip + 10, 0);
  store16(ip + 10, ~fold(sum16(ip, transport, 0)));
}

}  // namespace

std::size_t Segments::wire_bytes(std::size_t segment) const {
  return headers + std::min(size, payload - segment * size);
}

Segments segments_of(std::span<const std::byte> packet) {
  Segments s;
  s.payload = s.size = packet.size() - kVirtioBytes;
  VirtioHeader header;
  std::memcpy(&header, packet.data(), sizeof header);
  const std::byte* ip = packet.data() + kVirtioBytes;
  if (header.gso_type == kNoGso || header.gso_size == 0 || header.checksum_start + std::size_t{20} > s.payload)
    return s;
  const std::size_t headers = header.checksum_start + (byte_at(ip + header.checksum_start + kTcpOffset) >> 4) * 4u;
  if (headers >= s.payload) return s;
  s.transport = header.checksum_start;
  s.headers = headers;
  s.payload -= headers;
  s.size = header.gso_size;
  s.count = (s.payload + s.size - 1) / s.size;
  return s;
}

std::size_t write_segments(std::span<const std::byte> packet, const Segments& s, std::size_t first, std::size_t last,
                           std::byte* to) {
  const std::size_t begin = first * s.size, bytes = std::min(last * s.size, s.payload) - begin;
  std::memcpy(to, packet.data(), kVirtioBytes + s.headers);
  std::memcpy(to + kVirtioBytes + s.headers, packet.data() + kVirtioBytes + s.headers + begin, bytes);

  VirtioHeader header;
  std::memcpy(&header, to, sizeof header);
  header.header_bytes = static_cast<std::uint16_t>(s.headers);
  if (last - first == 1) header.gso_type = kNoGso, header.gso_size = 0;
  std::memcpy(to, &header, sizeof header);

  std::byte* ip = to + kVirtioBytes;
  std::byte* tcp = ip + s.transport;
  set_ip_length(ip, s.transport, s.headers + bytes, first);
  store32(tcp + kTcpSequence, load32(tcp + kTcpSequence) + static_cast<std::uint32_t>(begin));
  unsigned flags = byte_at(tcp + kTcpFlags);
  if (last < s.count) flags &= ~(kFin | kPush);
  if (first > 0) flags &= ~kCwr;
  tcp[kTcpFlags] = std::byte(flags);
  store16(tcp + kTcpChecksum, pseudo_header(ip, s.headers - s.transport + bytes));
  return kVirtioBytes + s.headers + bytes;
}

// ---- packets under way -----------------------------------------------------------------------------------------------

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
