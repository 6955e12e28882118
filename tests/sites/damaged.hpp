// Messages as a broken or hostile site may send them: those of an honest one, damaged.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>

#include "wan/sites/ring.hpp"

namespace maki::sites::test {

using Random = std::mt19937_64;

// Sizes, counts and places as nobody expects them.
inline std::uint64_t wild_number(Random& random) {
  switch (random() % 6) {
    case 0: return random() % 4;
    case 1: return std::uint64_t{1} << random() % 64;
    case 2: return (std::uint64_t{1} << random() % 64) - 1;
    case 3: return ~std::uint64_t{0} - random() % 64;
    case 4: return random() % 100'000;
    default: return random();
  }
}

// One number of 1, 2, 4 or 8 bytes at a multiple of its size from the front or the back, where what counts stands.
inline void change_number(Message& message, Random& random) {
  const std::size_t bytes = std::size_t{1} << random() % 4;
  if (message.size() < bytes) return;
  std::size_t at = random() % (message.size() / bytes) * bytes;
  if (random() % 4 != 0) at %= 64;
  if (random() % 3 == 0 && at + bytes <= message.size()) at = message.size() - bytes - at;
  if (at + bytes > message.size()) return;
  const std::uint64_t value = wild_number(random);
  std::memcpy(message.data() + at, &value, bytes);
}

inline void damage(Message& message, Random& random) {
  for (auto changes = 1 + random() % 3; changes > 0; --changes) {
    switch (random() % 8) {
      case 0:
        if (!message.empty()) message[random() % message.size()] ^= static_cast<std::byte>(1 << random() % 8);
        break;
      case 1:
        if (!message.empty()) message[random() % message.size()] = static_cast<std::byte>(random());
        break;
      case 2: message.resize(random() % (message.size() + 20)); break;
      case 3:
        message.resize(random() % 300);
        for (std::byte& b : message) b = static_cast<std::byte>(random());
        break;
      default: change_number(message, random);
    }
  }
}

}  // namespace maki::sites::test
