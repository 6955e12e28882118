// For tests: two channels joined by a TCP connection within this machine, and what it takes to run both in one thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/secure/channel.hpp"

namespace maki::wan::test {

// Connected, non-blocking; the first is the side that connected. `buffer`: SO_SNDBUF and SO_RCVBUF, 0 leaves them.
std::pair<Socket, Socket> socket_pair(int buffer = 0);

struct Outcome {
  bool done = false;
  std::string error;  // what was thrown, or "closed"
};

// Runs both handshakes to their ends.
std::pair<Outcome, Outcome> shake_hands(Channel& connecting, Channel& listening);
// One of them alone, as far as it gets while nothing more comes from the other side.
Outcome shake_alone(Channel& channel);

// Sends all and takes what comes at the other end until everything is there; fails the test where that does not go.
std::vector<std::byte> carry(Channel& from, Channel& to, std::span<const std::byte> head,
                             std::span<const std::byte> body);
// Reads once, waiting until something comes: bytes, "closed" or the message of what was thrown.
struct Reading {
  std::vector<std::byte> bytes;
  std::string error;
};
Reading read_some(Channel& channel);

}  // namespace maki::wan::test
