// Messages as a broken or hostile peer may send them: those of an honest one, damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/wan/fuzz/rounds.hpp"

namespace maki::wan::fuzz {

// Sizes, counts and places as nobody expects them.
inline std::uint64_t wild_number(Random& random) {
  switch (below(random, 6)) {
    case 0: return below(random, 4);
    case 1: return std::uint64_t{1} << below(random, 64);
    case 2: return (std::uint64_t{1} << below(random, 64)) - 1;
    case 3: return ~std::uint64_t{0} - below(random, 64);
    case 4: return below(random, 100'000);
    default: return random();
  }
}

// One number of 1, 2, 4 or 8 bytes at a multiple of its size from the front or the back, where what counts stands.
inline void change_number(std::vector<std::byte>& message, Random& random) {
  const std::size_t bytes = std::size_t{1} << below(random, 4);
  if (message.size() < bytes) return;
  std::size_t at = below(random, message.size() / bytes) * bytes;
  if (!one_in(random, 4)) at %= 64;
  if (one_in(random, 3) && at + bytes <= message.size()) at = message.size() - bytes - at;
  if (at + bytes > message.size()) return;
  const std::uint64_t value = wild_number(random);
  std::memcpy(message.data() + at, &value, bytes);
}

inline void damage(std::vector<std::byte>& message, Random& random) {
  for (auto changes = 1 + below(random, 3); changes > 0; --changes) {
    switch (below(random, 8)) {
      case 0:
        if (!message.empty()) message[below(random, message.size())] ^= static_cast<std::byte>(1 << below(random, 8));
        break;
      case 1:
        if (!message.empty()) message[below(random, message.size())] = static_cast<std::byte>(random());
        break;
      case 2: message.resize(below(random, message.size() + 20)); break;
      case 3:
        message.resize(below(random, 300));
        for (std::byte& b : message) b = static_cast<std::byte>(random());
        break;
      default: change_number(message, random);
    }
  }
}

}  // namespace maki::wan::fuzz
