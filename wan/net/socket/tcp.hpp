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
  std::string network() const;  // whom one peer can hardly have several of: the IPv4 address, the /64 of an IPv6 one
};

// All addresses of a host, in the order of the system's preference with the families taking turns (RFC 8305). Blocks
// while the name is looked up. Throws Error.
std::vector<Address> resolve(const Endpoint& endpoint);
// For binding: an empty host gives the IPv6 wildcard (which takes IPv4 too), or IPv4's where there is no IPv6.
Address resolve_local(const Endpoint& endpoint);

// Sets what PathSettings says of a stream's socket: window, congestion control, pacing bound, no delay, a low mark for
// unsent data (TCP_NOTSENT_LOWAT: a stream is writable only while the network takes what it was given), keep-alive.
// Before connecting or listening for the window to count. Throws Error where the kernel refuses (an unknown congestion
// control names those that there are).
void apply_options(int descriptor, const PathSettings& settings);

// A socket that is connecting: writable when it is done, then connect_error() tells. Binds to the settings' local
// address and port range (tries the ports in turn). Throws Error where that cannot be had.
Socket start_connect(const Address& address, const PathSettings& settings);
int connect_error(int descriptor);  // an errno, 0 for success

Socket listen_on(const Endpoint& local, const PathSettings& settings, int backlog = 1024);
// Not open where nobody waits. Throws Error where the process or the system has no descriptor or memory left: the
// caller should pause, for the connection stays in the queue.
Socket accept_from(int descriptor, Address& peer);
Address local_address(int descriptor);
Address peer_address(int descriptor);
bool within_this_machine(int descriptor);  // connected to one of this machine's own addresses

enum class IoStatus {
  kDone,      // bytes > 0 (of a channel's handshake: finished)
  kWantRead,  // wait until the socket is readable, then call again
  kWantWrite,
  kClosed,  // the peer ended the connection, or the network did
};

struct IoResult {
  std::size_t bytes = 0;
  IoStatus status = IoStatus::kDone;
};

// As much as there is, at most the buffer. kClosed: errno says why, 0 where the peer has ended its writing.
IoResult read_some(int descriptor, std::span<std::byte> buffer);
// Of `head`, then of `body`, in one system call where it can be, as much as fits now; kDone: all of it.
IoResult write_some(int descriptor, std::span<const std::byte> head, std::span<const std::byte> body = {});

// Bytes of a known number, sent or received whenever the socket is ready: what a greeting consists of. Until kDone.
class Transfer {
 public:
  explicit Transfer(std::size_t size = 0) : bytes_(size) {}
  explicit Transfer(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  IoStatus send(int descriptor) {
    return go_on([=](auto rest) { return write_some(descriptor, rest); });
  }
  // Reads not one byte more.
  IoStatus receive(int descriptor) {
    return go_on([=](auto rest) { return read_some(descriptor, rest); });
  }
  // Over a Channel (secure/channel.hpp); sent: the kernel has all of it.
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

// Pacing of a stream by the kernel, beside that of the whole path (path/path_traffic.cpp). The kernel spaces what it sends by
// the stream's window: good for long transfers, whose windows grow further that way (64 MB over 270 ms in 0.80 s instead of
// 0.97), but what sets out after a pause takes a quarter of a round trip to leave, and more.

// Whether the kernel paces this TCP socket in any case: BBR, in each of its versions.
bool is_paced(int descriptor);

// Makes the kernel pace a socket, at `rate` bytes a second at most: that of the whole path, as how its streams share it
// changes from moment to moment. 0: no bound; but a socket that was paced stays so.
void bound_pacing(int descriptor, double rate);

}  // namespace maki::wan
