// Super-packets cut at a lost segment: each piece has to be what the sender's kernel would have sent.
#include "tests/testbed/packet.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace maki::testbed {
namespace {

using Packet = std::vector<std::byte>;

void put16(Packet& p, std::size_t at, unsigned v) {
  p[at] = std::byte(v >> 8 & 255);
  p[at + 1] = std::byte(v & 255);
}
unsigned get16(const Packet& p, std::size_t at) {
  return std::to_integer<unsigned>(p[at]) << 8 | std::to_integer<unsigned>(p[at + 1]);
}
unsigned long get32(const Packet& p, std::size_t at) { return get16(p, at) * 65536ul + get16(p, at + 2); }

// One's complement sum as RFC 1071 says, of bytes that may be odd in number.
unsigned internet_sum(const Packet& p, std::size_t begin, std::size_t end) {
  unsigned long sum = 0;
  for (std::size_t i = begin; i < end; i += 2)
    sum += std::to_integer<unsigned>(p[i]) * 256ul + (i + 1 < end ? std::to_integer<unsigned>(p[i + 1]) : 0);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<unsigned>(sum);
}

unsigned add(unsigned a, unsigned b) { return ((a + b) & 0xffff) + ((a + b) >> 16); }

constexpr std::size_t kIp = kVirtioBytes;
constexpr unsigned kId = 0xfffe, kMss = 1448;
constexpr unsigned long kSequence = 0xfffff000ul;

struct Shape {
  int version;
  std::size_t ip;  // bytes of the IP header
};

Packet super_packet(const Shape& shape, std::size_t payload) {
  const std::size_t tcp = kIp + shape.ip, headers = shape.ip + 32;
  Packet p(kVirtioBytes + headers + payload);
  const VirtioHeader virtio{kNeedsChecksum, shape.version == 4 ? kTcp4 : kTcp6,   static_cast<std::uint16_t>(headers),
                            kMss,           static_cast<std::uint16_t>(shape.ip), 16};
  std::memcpy(p.data(), &virtio, sizeof virtio);
  if (shape.version == 4) {
    p[kIp] = std::byte{0x45};
    put16(p, kIp + 2, static_cast<unsigned>(headers + payload));
    put16(p, kIp + 4, kId);
    p[kIp + 8] = std::byte{64}, p[kIp + 9] = std::byte{6};
  } else {
    p[kIp] = std::byte{0x60};
    put16(p, kIp + 4, static_cast<unsigned>(32 + payload));
    p[kIp + 6] = std::byte{6}, p[kIp + 7] = std::byte{64};
  }
  for (std::size_t i = shape.version == 4 ? kIp + 12 : kIp + 8; i < tcp; ++i) p[i] = std::byte(i * 37 & 255);
  put16(p, tcp, 6000), put16(p, tcp + 2, 7000);
  put16(p, tcp + 4, kSequence >> 16), put16(p, tcp + 6, kSequence & 0xffff);
  p[tcp + 12] = std::byte{0x80};
  p[tcp + 13] = std::byte{128 | 16 | 8 | 1};  // CWR, ACK, PSH, FIN
  for (std::size_t i = 0; i < payload; ++i) p[tcp + 32 + i] = std::byte(i * 101 >> 3 & 255);
  return p;
}

// Completes the checksum as a receiving device would, and verifies the packet as a receiver does.
void expect_valid(Packet p, const Shape& shape) {
  const std::size_t tcp = kIp + shape.ip, length = p.size() - tcp;
  EXPECT_EQ(shape.version == 4 ? get16(p, kIp + 2) : get16(p, kIp + 4) + 40, p.size() - kIp);
  if (shape.version == 4) {
    EXPECT_EQ(internet_sum(p, kIp, tcp), 0xffffu);
  }
  const std::size_t addresses = shape.version == 4 ? kIp + 12 : kIp + 8;
  const unsigned pseudo = add(internet_sum(p, addresses, tcp), add(6, static_cast<unsigned>(length)));
  EXPECT_EQ(get16(p, tcp + 16), pseudo);
  put16(p, tcp + 16, ~internet_sum(p, tcp, p.size()) & 0xffff);
  EXPECT_EQ(add(pseudo, internet_sum(p, tcp, p.size())), 0xffffu);
}

class SuperPacket : public testing::TestWithParam<int> {
 protected:
  Shape shape() const { return GetParam() == 4 ? Shape{4, 20} : Shape{6, 40}; }
};

TEST_P(SuperPacket, CountsWhatGoesOverTheWire) {
  const Packet p = super_packet(shape(), 5 * kMss + 7);
  const Segments s = segments_of(p);
  EXPECT_EQ(s.count, 6u);
  EXPECT_EQ(s.wire_bytes(0), shape().ip + 32 + kMss);
  EXPECT_EQ(s.wire_bytes(5), shape().ip + 32 + 7);
  EXPECT_EQ(s.wire_bytes(), 6 * (shape().ip + 32) + 5 * kMss + 7);
}

TEST_P(SuperPacket, PiecesAreWhatTheSenderWouldHaveSent) {
  const std::size_t payload = 5 * kMss + 7, tcp = kIp + shape().ip, data = tcp + 32;
  const Packet p = super_packet(shape(), payload);
  const Segments s = segments_of(p);
  const std::pair<std::size_t, std::size_t> pieces[] = {{0, 1}, {1, 4}, {4, 6}, {5, 6}};
  for (const auto& [first, last] : pieces) {
    Packet piece(kLargestPacket);
    piece.resize(write_segments(p, s, first, last, piece.data()));
    expect_valid(piece, shape());
    EXPECT_EQ(get32(piece, tcp + 4), (kSequence + first * kMss) & 0xfffffffful);
    const std::size_t bytes = std::min(last * kMss, payload) - first * kMss;
    ASSERT_EQ(piece.size(), data + bytes);
    EXPECT_EQ(std::memcmp(piece.data() + data, p.data() + data + first * kMss, bytes), 0);
    const unsigned flags = std::to_integer<unsigned>(piece[tcp + 13]);
    EXPECT_EQ(flags & 128, first == 0 ? 128u : 0u);
    EXPECT_EQ(flags & 9, last == 6 ? 9u : 0u);
    if (shape().version == 4) {
      EXPECT_EQ(get16(piece, kIp + 4), (kId + first) & 0xffff);
    }
    EXPECT_EQ(segments_of(piece).count, last - first);
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, SuperPacket, testing::Values(4, 6));

TEST(SuperPacketHeader, NonsenseCountsAsOnePacket) {
  Packet p = super_packet({4, 20}, 3 * kMss);
  p[kIp + 20 + 12] = std::byte{0xf0};
  p.resize(kVirtioBytes + 60);
  EXPECT_EQ(segments_of(p).count, 1u);
  EXPECT_EQ(segments_of(p).wire_bytes(), 60u);
}

TEST(PacketRing, GivesBackWhatCameInOrder) {
  PacketRing ring(0);  // the smallest: wraps often, is full often
  unsigned written = 0, read = 0, refused = 0;
  const auto bytes_of = [](unsigned i) { return 20 + i * 7919 % 60000; };
  const auto pop = [&] {
    const auto bytes = ring.front_bytes();
    ASSERT_EQ(bytes.size(), bytes_of(read));
    EXPECT_EQ(bytes.front(), std::byte(read & 255));
    EXPECT_EQ(bytes.back(), std::byte(read & 255));
    ring.pop();
    ++read;
  };
  while (written < 3000) {
    std::byte* slot = ring.reserve();
    if (!slot) {
      ++refused;
      for (int i = 0; i < 3 && !ring.empty(); ++i) pop();
      continue;
    }
    std::memset(slot, static_cast<int>(written & 255), bytes_of(written));
    ring.commit(bytes_of(written), written, 1, bytes_of(written));
    if (++written % 3 == 0) pop();
  }
  while (!ring.empty()) pop();
  EXPECT_EQ(read, written);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace maki::testbed
