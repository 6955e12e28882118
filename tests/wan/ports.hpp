// Ports of this machine that nobody has at this moment, for programs that are told theirs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <stdexcept>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// No two alike.
inline std::vector<std::uint16_t> free_ports(int count) {
  std::vector<Socket> held;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < count; ++i) {
    held.push_back(listen_on({"127.0.0.1", 0}, {}));
    ports.push_back(local_address(held.back().descriptor()).port());
  }
  return ports;
}

// A base such that base + offset is free for each of the offsets, below those that the kernel gives away.
inline int free_base(std::initializer_list<int> offsets) {
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
