// The 256 bytes at the start of GADGET's binary files, types 1 and 2, and the records that frame all data: a 32-bit
// length before and after. Type 2 puts a record of 8 bytes, a label of four letters and the length of what follows,
// before each block. Records beyond 4 GiB keep the low 32 bits of their length, as in GADGET.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace maki::gadget {

struct BinaryHeader {
  std::int32_t counts[6];
  double mass_table[6];
  double time, redshift;
  std::int32_t flag_sfr, flag_feedback;
  std::uint32_t totals_low[6];
  std::int32_t flag_cooling, files;
  double box_size, omega0, omega_lambda, hubble;
  std::int32_t flag_age, flag_metals;
  std::uint32_t totals_high[6];
  std::int32_t flag_entropy, flag_double;
  unsigned char unused[56];
};
static_assert(sizeof(BinaryHeader) == 256 && offsetof(BinaryHeader, box_size) == 128);

inline constexpr std::uint32_t kLabelBytes = 8;

template <class T>
T byte_swapped(T value) {
  unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  std::reverse(bytes, bytes + sizeof(T));
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline void swap_header(BinaryHeader& h) {
  const auto swap = [](auto&... values) { ((values = byte_swapped(values)), ...); };
  for (int type = 0; type < 6; ++type) {
    swap(h.counts[type], h.mass_table[type], h.totals_low[type], h.totals_high[type]);
  }
  swap(h.time, h.redshift, h.flag_sfr, h.flag_feedback, h.flag_cooling, h.files, h.box_size, h.omega0, h.omega_lambda,
       h.hubble, h.flag_age, h.flag_metals, h.flag_entropy, h.flag_double);
}

}  // namespace maki::gadget
