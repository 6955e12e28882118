// TCP sockets, never blocking: addresses, options, connecting and listening.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki::wan {

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket();
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
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

// Sets what PathSettings says of a stream's socket: window, congestion control, pacing bound, no delay, a low mark for unsent data (TCP_NOTSENT_LOWAT: a
// stream is writable only while the network takes what it was given), keep-alive. Before connecting or listening for the window to count.
// Throws Error where the kernel refuses (an unknown congestion control names those that there are).
void apply_options(int descriptor, const PathSettings& settings, bool bulk = true);

// A socket that is connecting: writable when it is done, then connect_error() tells. Binds to the settings' local address and port range
// (tries the ports in turn). Throws Error where that cannot be had.
Socket start_connect(const Address& address, const PathSettings& settings);
int connect_error(int descriptor);  // an errno, 0 for success

Socket listen_on(const Endpoint& local, const PathSettings& settings, int backlog = 1024);
// Not open where nobody waits. Throws Error where the process or the system has no descriptor or memory left: the caller
// should pause, for the connection stays in the queue.
Socket accept_from(int descriptor, Address& peer);
Address local_address(int descriptor);
Address peer_address(int descriptor);
bool within_this_machine(int descriptor);  // connected to one of this machine's own addresses

}  // namespace maki::wan
