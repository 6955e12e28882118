// Peers made by hand, for tests: blocking sockets that say what a test wants.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <string>

#include "wan/net/error.hpp"
#include "wan/net/path/wire.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan::test {

inline constexpr int kRawPatience = 20000;  // milliseconds

inline bool wait_ready(int descriptor, short events, int milliseconds = kRawPatience) {
  pollfd one{descriptor, events, 0};
  return poll(&one, 1, milliseconds) == 1;
}

// A connection; every call waits, but not for ever.
class RawPeer {
 public:
  explicit RawPeer(Socket socket) : socket_(std::move(socket)) {}

  static RawPeer connect_to(const Endpoint& endpoint) {
    Socket socket = start_connect(resolve(endpoint).front(), {});
    if (!wait_ready(socket.descriptor(), POLLOUT) || connect_error(socket.descriptor()) != 0)
      throw Error("no connection for the test");
    return RawPeer(std::move(socket));
  }

  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto sent = send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (sent < 0 && (errno != EAGAIN || !wait_ready(socket_.descriptor(), POLLOUT))) return false;
    }
    return true;
  }
  bool write(const std::string& text) { return write(std::as_bytes(std::span(text))); }

  // False where the connection ended before.
  bool read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      if (!wait_ready(socket_.descriptor(), POLLIN)) return false;
      const auto got = recv(socket_.descriptor(), bytes.data(), bytes.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
      if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
  }

  // Waits for the other side to end it; false where it sends something instead, or nothing at all.
  bool closed() {
    char byte;
    if (!wait_ready(socket_.descriptor(), POLLIN)) return false;
    return recv(socket_.descriptor(), &byte, 1, 0) <= 0;
  }
  bool quiet(int milliseconds) { return !wait_ready(socket_.descriptor(), POLLIN, milliseconds); }

  std::optional<Hello> read_hello() {
    std::array<std::byte, kHelloBytes> bytes;
    if (!read(bytes)) return std::nullopt;
    return decode_hello(bytes);
  }
  std::optional<Welcome> read_welcome() {
    std::array<std::byte, kWelcomeBytes> bytes;
    if (!read(bytes)) return std::nullopt;
    return decode_welcome(bytes);
  }
  std::optional<Welcome> greet(const Hello& hello) {
    if (!write(encode(hello))) return std::nullopt;
    return read_welcome();
  }

  int descriptor() const { return socket_.descriptor(); }
  void close() { socket_ = Socket(); }

 private:
  Socket socket_;
};

class RawListener {
 public:
  RawListener() : socket_(listen_on({"127.0.0.1", 0}, {})) {}
  Address address() const { return local_address(socket_.descriptor()); }
  RawPeer accept() { return RawPeer(accept_socket()); }
  Socket accept_socket(int milliseconds = kRawPatience) {
    Address peer;
    wait_ready(socket_.descriptor(), POLLIN, milliseconds);
    Socket socket = accept_from(socket_.descriptor(), peer);
    if (!socket.open()) throw Error("nobody came to the test");
    return socket;
  }

 private:
  Socket socket_;
};

inline Hello hello_of(std::uint32_t stream, std::uint32_t epoch, const SessionId& session = {}) {
  Hello hello;
  hello.session = session;
  hello.stream = stream;
  hello.epoch = epoch;
  hello.streams = 4;
  hello.unmatched_limit = 1 << 20;
  hello.message_limit = 1 << 30;
  hello.patience = 600;
  hello.name = "raw";
  return hello;
}

}  // namespace maki::wan::test
