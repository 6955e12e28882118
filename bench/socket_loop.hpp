// The least that two processes can do over a socket: one writes blocks, the other reads them.
#pragma once

#include <cstddef>

namespace maki::bench {

// Bytes/s at the receiver over loopback with one connection.
double socket_loop(std::size_t block, double seconds);

}  // namespace maki::bench
