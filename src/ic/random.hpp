// Counter-based random numbers: each is a function of seed and counters, so that neither the order of evaluation nor
// the number of threads matters. Philox4x32-10 (Salmon et al. 2011, SC11).
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cstdint>

namespace maki {

// The use of the numbers; uses with the same seed are independent of each other.
enum class RandomStream : std::uint32_t { kModes, kPlummer, kSphere, kDisk };

class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, RandomStream stream)
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
        stream_(static_cast<std::uint32_t>(stream)) {}

  // Two numbers for three counters, uniform in the open interval (0, 1) with 52 bits.
  std::array<double, 2> uniform(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const r123::Philox4x32::ctr_type words = r123::Philox4x32()({{a, b, c, stream_}}, key_);
    return {to_unit(words[0], words[1]), to_unit(words[2], words[3])};
  }

  // Two numbers for draw number `draw` of particle `index`.
  std::array<double, 2> for_particle(std::uint64_t index, std::uint32_t draw) const {
    return uniform(static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), draw);
  }

 private:
  static double to_unit(std::uint32_t high, std::uint32_t low) {
    const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
  }

  r123::Philox4x32::key_type key_;
  std::uint32_t stream_;
};

}  // namespace maki
