// For tests: two channels joined by a TCP connection within this machine, and what it takes to run both in one thread.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/secure/channel.hpp"

namespace maki::wan::test {

// Connected, non-blocking; the first is the side that connected. `buffer`: SO_SNDBUF and SO_RCVBUF, 0 leaves them.
inline std::pair<Socket, Socket> socket_pair(int buffer = 0) {
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Socket connecting(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer > 0) {
    for (const int descriptor : {listener.descriptor(), connecting.descriptor()})
      for (const int option : {SO_SNDBUF, SO_RCVBUF})
        ::setsockopt(descriptor, SOL_SOCKET, option, &buffer, sizeof buffer);
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.descriptor(), any, length), 0);
  EXPECT_EQ(::listen(listener.descriptor(), 1), 0);
  EXPECT_EQ(::getsockname(listener.descriptor(), any, &length), 0);
  EXPECT_EQ(::connect(connecting.descriptor(), any, length), 0);
  Socket accepted(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  EXPECT_EQ(::fcntl(connecting.descriptor(), F_SETFL, O_NONBLOCK), 0);
  return {std::move(connecting), std::move(accepted)};
}

struct Outcome {
  bool done = false;
  std::string error;  // what was thrown, or "closed"
};

// True while it wants to go on.
inline bool step(Channel& channel, Outcome& outcome) {
  try {
    const IoStatus status = channel.handshake();
    if (status == IoStatus::kDone) outcome.done = true;
    if (status == IoStatus::kClosed) outcome.error = "closed";
  } catch (const SecurityError& e) {
    outcome.error = e.what();
  }
  return !outcome.done && outcome.error.empty();
}

// Runs both handshakes to their ends.
inline std::pair<Outcome, Outcome> shake_hands(Channel& connecting, Channel& listening) {
  std::pair<Outcome, Outcome> out;
  bool first = true, second = true;
  // A side that is done or has failed is not called again; an alert of the other side is then read by the caller.
  for (int turn = 0; (first || second) && turn < 1000; ++turn) {
    if (first) first = step(connecting, out.first);
    if (second) second = step(listening, out.second);
    // The kernel hands bytes over at once here, but it need not.
    if (first && !second) ready(connecting.descriptor(), POLLIN, 200);
    if (second && !first) ready(listening.descriptor(), POLLIN, 200);
    if (!out.first.error.empty() && second && turn > 20) break;
  }
  return out;
}

// One of them alone, as far as it gets while nothing more comes from the other side.
inline Outcome shake_alone(Channel& channel) {
  Outcome outcome;
  while (step(channel, outcome))
    if (!ready(channel.descriptor(), POLLIN, 200)) break;
  return outcome;
}

// Sends all and takes what comes at the other end until everything is there; fails the test where that does not go.
inline std::vector<std::byte> carry(Channel& from, Channel& to, std::span<const std::byte> head,
                                    std::span<const std::byte> body) {
  const std::size_t all = head.size() + body.size();
  std::vector<std::byte> got(all);
  std::size_t taken = 0, come = 0;
  int idle = 0;
  while (come < all) {
    if (taken < all) {
      const auto rest_of_head = head.subspan(std::min(taken, head.size()));
      const auto rest_of_body = body.subspan(taken > head.size() ? taken - head.size() : 0);
      const IoResult sent = from.write(rest_of_head, rest_of_body);
      taken += sent.bytes;
      EXPECT_TRUE(sent.status == IoStatus::kWantWrite || (sent.status == IoStatus::kDone && taken == all));
    } else {
      from.flush();
    }
    const IoResult read = to.read(std::span(got).subspan(come));
    come += read.bytes;
    if (read.status == IoStatus::kClosed) break;
    if (read.status == IoStatus::kDone) idle = 0;
    // Not for long: what is still with the sender has to be given another push.
    else if (!ready(to.descriptor(), POLLIN, 10) && ++idle > 3000)
      break;
  }
  EXPECT_EQ(come, all);
  EXPECT_EQ(from.flush(), IoStatus::kDone);
  return got;
}

// Reads once, waiting until something comes: bytes, "closed" or the message of what was thrown.
struct Reading {
  std::vector<std::byte> bytes;
  std::string error;
};

inline Reading read_some(Channel& channel) {
  Reading out;
  out.bytes.resize(1 << 20);
  try {
    while (true) {
      const IoResult result = channel.read(out.bytes);
      if (result.status == IoStatus::kClosed) out.error = "closed";
      if (result.status == IoStatus::kWantRead && !ready(channel.descriptor(), POLLIN, 30000))
        out.error = "nothing came";
      if (result.bytes == 0 && out.error.empty()) continue;
      out.bytes.resize(result.bytes);
      return out;
    }
  } catch (const SecurityError& e) {
    out.bytes.clear();
    out.error = e.what();
  }
  return out;
}

}  // namespace maki::wan::test
