// Peers made by hand, for tests: sockets that say what a test wants, with calls that wait, but not for ever.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

// ---- sockets --------------------------------------------------------------------------------------------------------

inline constexpr int kPatience = 60000;  // milliseconds: no test waits so long unless it fails

inline bool ready(int descriptor, short events, int milliseconds = kPatience) {
  pollfd one{descriptor, events, 0};
  return poll(&one, 1, milliseconds) == 1;
}

inline Socket connect_now(const Endpoint& endpoint, const PathSettings& settings = {}) {
  Socket socket = start_connect(resolve(endpoint).front(), settings);
  if (!ready(socket.descriptor(), POLLOUT) || connect_error(socket.descriptor()) != 0)
    throw Error("no connection for the test");
  return socket;
}

// All of it, or false where the other side has gone.
inline bool put(const Socket& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0 && !ready(socket.descriptor(), POLLOUT)) throw Error("nothing can be written");
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

// Up to `most` bytes, fewer where the other side ends.
inline std::vector<std::byte> get(const Socket& socket, std::size_t most) {
  std::vector<std::byte> bytes(most);
  std::size_t have = 0;
  while (have < most) {
    const ssize_t got = recv(socket.descriptor(), bytes.data() + have, most - have, 0);
    if (got < 0 && errno == EAGAIN) {
      if (!ready(socket.descriptor(), POLLIN)) throw Error("nothing comes");
      continue;
    }
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

inline bool ended(const Socket& socket) { return get(socket, 1).empty(); }

class RawListener {
 public:
  explicit RawListener(int backlog = 1024) : socket_(listen_on({"127.0.0.1", 0}, {}, backlog)) {}
  Address address() const { return local_address(socket_.descriptor()); }
  Endpoint endpoint() const { return {"127.0.0.1", address().port()}; }
  int descriptor() const { return socket_.descriptor(); }
  Socket accept(int milliseconds = kPatience) {
    Address peer;
    ready(socket_.descriptor(), POLLIN, milliseconds);
    Socket socket = accept_from(socket_.descriptor(), peer);
    if (!socket.open()) throw Error("nobody came to the test");
    return socket;
  }

 private:
  Socket socket_;
};

// A listener whose queue is full answers no one: a stand-in for an address into the void.
class SilentListener : public RawListener {
 public:
  SilentListener() : RawListener(0) {
    for (int i = 0; i < 4; ++i) fill_.push_back(start_connect(address(), {}));
    const auto has_come = [](const Socket& one) { return ready(one.descriptor(), POLLOUT, 10); };
    while (std::ranges::none_of(fill_, has_come)) {
    }
  }
  void make_room() { fill_.clear(); }

 private:
  std::vector<Socket> fill_;
};

// ---- greetings ------------------------------------------------------------------------------------------------------

inline Hello hello_of(std::uint32_t stream, std::uint32_t epoch, const SessionId& session = {}) {
  return {.session = session,
          .stream = stream,
          .epoch = epoch,
          .streams = 4,
          .unmatched_limit = 1 << 20,
          .message_limit = 1 << 30,
          .patience = 600,
          .name = "raw"};
}

inline Welcome welcome_of(Answer answer) {
  Welcome welcome;
  welcome.answer = answer;
  welcome.session.fill(std::byte{7});
  welcome.unmatched_limit = welcome.message_limit = 1 << 20;
  welcome.patience = 60;
  if (answer != Answer::kWelcome) welcome.reason = "because of the test";
  return welcome;
}

}  // namespace maki::wan::test
