// Chunks as HDF5's filters store them, made without the library: by many ranks, or by threads beside it.
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/io/hdf5_file.hpp"

namespace maki {

namespace {

using Bytes = std::vector<unsigned char>;

Bytes shuffle_and_deflate(const unsigned char* from, std::size_t count, std::size_t width, int level) {
  Bytes shuffled(count * width);  // the first bytes of all numbers, then the second ...
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t byte = 0; byte < width; ++byte) shuffled[byte * count + i] = from[i * width + byte];
  }
  uLongf bytes = compressBound(shuffled.size());
  Bytes stored(bytes);
  const int status = compress2(stored.data(), &bytes, shuffled.data(), shuffled.size(), level);
  if (status != Z_OK) throw Error("cannot compress a dataset", zError(status));
  stored.resize(bytes);
  return stored;
}

// Appends integers of a fixed number of bits, the highest bit first.
class BitWriter {
 public:
  explicit BitWriter(unsigned char* to) : to_(to) {}
  void put(std::uint64_t value, unsigned bits) {
    while (bits > 0) {
      const unsigned now = std::min(bits, 8 - used_);
      const auto piece = static_cast<unsigned>(value >> (bits - now)) & ((1u << now) - 1);
      *to_ = static_cast<unsigned char>(*to_ | piece << (8 - used_ - now));
      bits -= now;
      used_ += now;
      if (used_ == 8) ++to_, used_ = 0;
    }
  }

 private:
  unsigned char* to_;
  unsigned used_ = 0;  // bits of *to_
};

// The filter H5Z_FILTER_SCALEOFFSET for doubles without a fill value: 4 bytes with the number of bits of an integer, one
// with the size of what follows, 8 with the least number; from byte 21 on the integers (x - least) 10^decimals. The
// library reserves one byte more than these fill.
Bytes scale_and_offset(const double* numbers, std::size_t count, int decimals) {
  constexpr std::size_t kHeader = 21;
  const auto [least, most] = std::minmax_element(numbers, numbers + count);
  const double minimum = *least, scale = std::pow(10.0, decimals);
  const auto integer = [&](double x) { return static_cast<std::uint64_t>(std::llround(x * scale - minimum * scale)); };
  if (!((*most - minimum) * scale < 0x1p62))
    throw Error("cannot store a dataset", "its numbers have too wide a range for so many decimal digits");
  const auto bits = static_cast<std::uint32_t>(std::bit_width(integer(*most)));
  Bytes stored(kHeader + (count * bits) / 8 + 1);
  std::memcpy(stored.data(), &bits, sizeof bits);
  stored[4] = sizeof(minimum);
  std::memcpy(stored.data() + 5, &minimum, sizeof minimum);
  BitWriter writer(stored.data() + kHeader);
  for (std::size_t i = 0; i < count; ++i) writer.put(integer(numbers[i]), bits);
  return stored;
}

}  // namespace

Bytes filtered(const void* numbers, std::size_t count, std::size_t width, const Storage& storage) {
  if (storage.decimals) return scale_and_offset(static_cast<const double*>(numbers), count, *storage.decimals);
  return shuffle_and_deflate(static_cast<const unsigned char*>(numbers), count, width, storage.deflate);
}

hid_t hdf5_half_type() {
  static const H5Id type = [] {
    H5Id half(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
  }();
  return type;
}

std::uint16_t half_of(float value) {
  constexpr std::uint32_t kLeastNormal = 0x38800000u;  // 2^-14
  constexpr std::uint32_t kBiases = 112u << 23;        // difference of the exponents' biases
  const auto bits = std::bit_cast<std::uint32_t>(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude < kLeastNormal) return static_cast<std::uint16_t>(sign | std::lrint(std::fabs(value) * 0x1p24f));
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);  // to the nearest, halves to even
  return static_cast<std::uint16_t>(sign | (rounded - kBiases) >> 13);
}

}  // namespace maki
