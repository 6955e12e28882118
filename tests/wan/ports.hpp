// Ports of this machine that nobody has, for programs that are told theirs.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// No two alike. The last hundred of a process stay bound, by sockets that do not listen: nobody else is given them, and
// a program that is told of one binds it too (SO_REUSEADDR, as listen_on() does).
inline std::vector<std::uint16_t> free_ports(int count) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static std::deque<Socket> held;
  std::vector<std::uint16_t> ports;
  const Address any = resolve_local({"127.0.0.1", 0});
  const int yes = 1;
  for (int i = 0; i < count; ++i) {
    const int socket = held.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).descriptor();
    if (setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
        bind(socket, reinterpret_cast<const sockaddr*>(&any.storage), any.length) != 0)
      throw std::system_error(errno, std::generic_category(), "no free port");
    ports.push_back(local_address(socket).port());
  }
  while (held.size() > 100) held.pop_front();
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
