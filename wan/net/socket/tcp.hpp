// TCP sockets, never blocking: addresses, options, connecting and listening.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "wan/net/descriptor.hpp"
#include "wan/net/settings.hpp"

namespace maki::wan {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  static Address any(sa_family_t family, std::uint16_t port);
  void set_port(std::uint16_t port);
  std::string text() const;  // "1.2.3.4:80", "[::1]:80"
  std::string host() const;  // without the port
  std::uint16_t port() const;
  std::string network() const;  // that one peer can hardly have several of: the IPv4 address, the /64 of an IPv6 one
};

// All addresses of a host, in the system's order of preference with alternating families (RFC 8305). Blocks during the
// name lookup. Throws Error.
std::vector<Address> resolve(const Endpoint& endpoint);
// For binding: an empty host gives the IPv6 wildcard (which also accepts IPv4), or IPv4's if there is no IPv6.
Address resolve_local(const Endpoint& endpoint);

// Applies PathSettings to a stream's socket: window, congestion control, pacing bound, TCP_NODELAY, a low mark for
// unsent data (TCP_NOTSENT_LOWAT: a stream is writable only while the network takes its data), keep-alive. To be called
// before connecting or listening for the window to apply. Throws Error if the kernel refuses (for an unknown congestion
// control it lists the available ones).
void apply_options(int descriptor, const PathSettings& settings);

// A connecting socket: writable when done, then connect_error() gives the result. Binds to the settings' local address
// and port range (tries the ports in turn). Throws Error if that is impossible.
Socket start_connect(const Address& address, const PathSettings& settings);
int connect_error(int descriptor);  // an errno, 0 for success

Socket listen_on(const Endpoint& local, const PathSettings& settings, int backlog = 1024);
// Not open if no connection waits. Throws Error if the process or the system is out of descriptors or memory: the
// caller should pause, since the connection stays in the queue.
Socket accept_from(int descriptor, Address& peer);
Address local_address(int descriptor);
Address peer_address(int descriptor);
bool within_this_machine(int descriptor);  // connected to one of this machine's own addresses

enum class IoStatus {
  kDone,      // bytes > 0 (of a channel's handshake: finished)
  kWantRead,  // wait until the socket is readable, then call again
  kWantWrite,
  kClosed,  // the peer or the network ended the connection
};

struct IoResult {
  std::size_t bytes = 0;
  IoStatus status = IoStatus::kDone;
};

// Reads what is available, at most the buffer. kClosed: errno is the reason, 0 for an orderly end.
IoResult read_some(int descriptor, std::span<std::byte> buffer);
// Writes `head`, then `body`, in one system call where possible, as much as fits now; kDone: all of it.
IoResult write_some(int descriptor, std::span<const std::byte> head, std::span<const std::byte> body = {});

// A fixed number of bytes, sent or received as the socket is ready: the messages of a greeting. To be called until
// kDone.
class Transfer {
 public:
  explicit Transfer(std::size_t size = 0) : bytes_(size) {}
  explicit Transfer(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  IoStatus send(int descriptor) {
    return go_on([=](auto rest) { return write_some(descriptor, rest); });
  }
  // Reads no byte beyond them.
  IoStatus receive(int descriptor) {
    return go_on([=](auto rest) { return read_some(descriptor, rest); });
  }
  // Over a Channel (secure/channel.hpp); sent: the kernel has all bytes.
  template <class Channel>
  IoStatus send_over(Channel& channel) {
    const IoStatus status = go_on([&](auto rest) { return channel.write(rest, {}); });
    return status == IoStatus::kDone ? channel.flush() : status;
  }
  template <class Channel>
  IoStatus receive_over(Channel& channel) {
    return go_on([&](auto rest) { return channel.read(rest); });
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class Step>
  IoStatus go_on(Step step) {
    while (done_ < bytes_.size()) {
      const IoResult result = step(std::span(bytes_).subspan(done_));
      done_ += result.bytes;
      if (result.status != IoStatus::kDone) return result.status;
      if (result.bytes == 0) return IoStatus::kClosed;
    }
    return IoStatus::kDone;
  }

  std::vector<std::byte> bytes_;
  std::size_t done_ = 0;
};

// Pacing of a stream by the kernel, besides that of the whole path (path/path_traffic.cpp). The kernel spaces packets
// by the stream's window. That helps long transfers, whose windows then grow further (64 MB over 270 ms in 0.80 s
// instead of 0.97), but data sent after a pause take a quarter of a round trip or more to leave.

// Whether the kernel paces this TCP socket in any case: with any version of BBR.
bool is_paced(int descriptor);

// Makes the kernel pace a socket, at `rate` bytes a second at most: the rate of the whole path, since the streams'
// shares change all the time. 0: no bound; but a socket once paced stays so.
void bound_pacing(int descriptor, double rate);

}  // namespace maki::wan
