// For tests: two channels joined by a TCP connection within this machine, and what it takes to run both in one thread.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/wan/helpers.hpp"
#include "tests/wan/net/path/raw_peer.hpp"
#include "wan/net/secure/channel.hpp"

namespace maki::wan::test {

// The first is the side that connected. `window`: of both, 0 leaves it to the kernel.
inline std::pair<Socket, Socket> socket_pair(std::size_t window = 0) {
  PathSettings settings = streams(1);
  settings.window = window;
  const Socket listener = listen_on({"127.0.0.1", 0}, settings);
  Socket near = connect_now({"127.0.0.1", local_address(listener.descriptor()).port()}, settings);
  ready(listener.descriptor(), POLLIN);
  Address peer;
  return {std::move(near), accept_from(listener.descriptor(), peer)};
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

// One of them alone, as far as it gets while nothing more comes from the other side in so many milliseconds.
inline Outcome shake_alone(Channel& channel, int patience) {
  Outcome outcome;
  while (step(channel, outcome))
    if (!ready(channel.descriptor(), POLLIN, patience)) break;
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
