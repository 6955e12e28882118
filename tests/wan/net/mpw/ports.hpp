// Ports for programs that are told theirs: free ones, below those that the kernel gives away.
#pragma once

#include <initializer_list>
#include <random>
#include <stdexcept>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// A base such that base + offset is free for each of the offsets.
inline int free_ports(std::initializer_list<int> offsets) {
  static std::mt19937 random(std::random_device{}());
  for (int attempt = 0; attempt < 200; ++attempt) {
    const int base = std::uniform_int_distribution(12000, 32000)(random);
    try {
      for (const int offset : offsets) listen_on({"", static_cast<std::uint16_t>(base + offset)}, {});
      return base;
    } catch (const Error&) {
      // taken: others then
    }
  }
  throw std::runtime_error("no free ports");
}

}  // namespace maki::wan::test
