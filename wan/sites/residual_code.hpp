// What is left of cells after prediction, in bits.
//
// A number is its token, which says between which bounds it lies, and the bits of where it lies between them. Tokens
// have Huffman codes, of a table chosen by what is expected to be left: a power of two k, by which numbers are divided,
// and four steps between powers; where little is expected k = 0, and each step has its table.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maki::sites {

class ResidualCode {
 public:
  static constexpr int kTokens = 29;  // 16 of one number, 8 of four to sixteen, 4 of octaves, and what is beyond
  static constexpr int kBeyond = 28;
  static constexpr int kLongest = 10;  // bits of a token
  static constexpr int kLow = 24;      // tables with k = 0
  static constexpr int kTables = kLow + 4;
  static constexpr int kMostBits = 52;  // of a number

  // k, at most 28, plus the table times 2^kTableShift, for a number that is expected to be so large.
  static constexpr int kTableShift = 18;
  static std::uint32_t code_of(float expected) {
    constexpr float kLeast = 0x1p-4f, kMost = 0x1p30f;
    const float bounded = expected < kMost ? expected : kMost;
    const auto bits = std::bit_cast<std::int32_t>(bounded > kLeast ? bounded : kLeast);
    const std::int32_t step = (bits >> 21) - 4 * 123, above = step > kLow ? step - kLow : 0, k = above >> 2;
    return static_cast<std::uint32_t>((step - 4 * k) << kTableShift | k);
  }
};

// Four streams of bits, cell i in number i mod 4: nothing waits for the cell before.
inline constexpr int kLanes = 4;

struct WriteLane {
  std::byte* at = nullptr;
  std::uint64_t held = 0;
  std::uint64_t used = 0;  // below 8

  void put(std::uint64_t value, std::uint64_t count) {  // at most 56 bits; writes eight bytes
    held |= value << used;
    std::memcpy(at, &held, sizeof held);
    used += count;
    at += used >> 3;
    held >>= used & ~std::uint64_t{7};
    used &= 7;
  }
};

// Room for kMostBits a cell and eight bytes has to be there.
void put_residuals(const std::uint32_t* left, const std::uint32_t* codes, int cells, WriteLane* lanes);
// `at`: bits of each lane from `bytes`, of which as many as put_residuals() writes at most have to be there, whatever
// they are.
void get_residuals(const std::byte* bytes, std::uint64_t* at, const std::uint32_t* codes, int cells,
                   std::uint32_t* left);

// The lowest `count` bits (at most 31) of cells, as they are.
void put_low(const std::uint64_t* values, int count, int cells, WriteLane* lanes);
void get_low(const std::byte* bytes, std::uint64_t* at, int count, int cells, std::uint64_t* values);

}  // namespace maki::sites
