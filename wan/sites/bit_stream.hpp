// Bits in a row, and whole numbers in as few of them as suit their size.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/device/error.hpp"

namespace maki::sites {

class BitWriter {
 public:
  // The lowest `count` bits of `value`, count from 0 to 64; those above are 0.
  void put(std::uint64_t value, int count) {
    held_ |= value << used_;
    if (used_ + count < 64) {
      used_ += count;
      return;
    }
    words_.push_back(held_);
    const int written = 64 - used_;
    held_ = written < 64 ? value >> written : 0;
    used_ += count - 64;
  }
  std::vector<std::byte> finish() {
    if (used_ > 0) words_.push_back(held_);
    std::vector<std::byte> bytes(words_.size() * sizeof(std::uint64_t));
    if (!bytes.empty()) std::memcpy(bytes.data(), words_.data(), bytes.size());
    return bytes;
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint64_t held_ = 0;
  int used_ = 0;  // below 64
};

// Beyond its end come zeros; overrun() tells.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // The next kPeek bits at least, and zeros above what is known, without going on.
  static constexpr int kPeek = 57;
  std::uint64_t peek() const {
    const std::size_t first = at_ / 8;
    std::uint64_t value = 0;
    if (first + sizeof value <= bytes_.size())
      std::memcpy(&value, bytes_.data() + first, sizeof value);
    else if (first < bytes_.size())
      std::memcpy(&value, bytes_.data() + first, bytes_.size() - first);
    return value >> at_ % 8;
  }
  void skip(int count) { at_ += static_cast<std::size_t>(count); }
  std::uint64_t get(int count) {
    if (count > kPeek) {
      const std::uint64_t low = get(32);
      return low | get(count - 32) << 32;
    }
    const std::uint64_t value = peek() & ((std::uint64_t{1} << count) - 1);
    skip(count);
    return value;
  }
  bool overrun() const { return at_ > bytes_.size() * 8; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;  // bits
};

// Golomb-Rice: value / 2^parameter in ones and a zero, then the rest; what is far too large goes as it is.
inline constexpr int kMostOnes = 20;

inline void put_rice(BitWriter& bits, std::uint64_t value, int parameter) {
  const std::uint64_t ones = value >> parameter;
  if (ones < kMostOnes) {
    const int unary = static_cast<int>(ones) + 1;
    const std::uint64_t start = (std::uint64_t{1} << ones) - 1, rest = value & ((std::uint64_t{1} << parameter) - 1);
    if (unary + parameter < 64) return bits.put(start | rest << unary, unary + parameter);
    bits.put(start, unary);
    return bits.put(rest, parameter);
  }
  const int width = std::bit_width(value);  // not 0
  bits.put((std::uint64_t{1} << kMostOnes) - 1, kMostOnes);
  bits.put(static_cast<std::uint64_t>(width - 1), 6);
  bits.put(value, width);
}

inline std::uint64_t get_rice(BitReader& bits, int parameter) {
  const std::uint64_t next = bits.peek();
  const int ones = std::countr_one(next);
  if (ones < kMostOnes) {
    const int both = ones + 1 + parameter;
    bits.skip(both <= BitReader::kPeek ? both : ones + 1);
    if (both <= BitReader::kPeek)
      return static_cast<std::uint64_t>(ones) << parameter |
             (next >> (ones + 1) & ((std::uint64_t{1} << parameter) - 1));
    return static_cast<std::uint64_t>(ones) << parameter | bits.get(parameter);
  }
  bits.skip(kMostOnes);
  const int width = static_cast<int>(bits.get(6)) + 1;
  return bits.get(width);
}

}  // namespace maki::sites
