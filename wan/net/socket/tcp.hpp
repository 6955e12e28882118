// TCP sockets, never blocking: addresses, options, connecting, listening, and limits on callers.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "wan/net/settings.hpp"

namespace maki::wan {

// The owner of a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : descriptor_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    close();
    descriptor_ = other.release();
    return *this;
  }
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  void close() {
    if (open()) ::close(release());
  }
  int release() { return std::exchange(descriptor_, -1); }  // the caller closes it

 private:
  int descriptor_ = -1;
};

using Socket = Descriptor;

// The number of files that this process may have open (the largest integer: any), raised to at most `wanted` where the
// system lets it.
std::uint64_t open_files(std::uint64_t wanted = 0);

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

// The addresses of a host, which may change while connections to it are made for weeks. Copies share them. For any
// thread.
class HostAddresses {
 public:
  using LookUp = std::function<std::vector<Address>(const Endpoint&)>;

  HostAddresses() = default;  // of no host: none
  // Looks the name up, which blocks; throws Error as resolve().
  explicit HostAddresses(const Endpoint& endpoint, LookUp look_up = resolve);

  std::vector<Address> now() const;
  // After a connection failed: looks the name up again, on a thread of its own, at most once a second. Where that fails
  // the addresses stay.
  void look_up_again() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

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

// Pacing of a stream by the kernel, besides that of the whole path (path/path_core.cpp). The kernel spaces packets
// by the stream's window. That helps long transfers, whose windows then grow further (64 MB over 270 ms in 0.80 s
// instead of 0.97), but data sent after a pause take a quarter of a round trip or more to leave.

// Whether the kernel paces this TCP socket in any case: with any version of BBR.
bool is_paced(int descriptor);

// Makes the kernel pace a socket, at `rate` bytes a second at most: the rate of the whole path, since the streams'
// shares change all the time. 0: no bound; but a socket once paced stays so.
void bound_pacing(int descriptor, double rate);

// A limited number of connections, by origin: an origin with too many displaces its own, nobody else's. Refers to its
// members and owns none. For one thread.
template <class Member>
class Crowd {
 public:
  // A member already there counts as new, and of this origin.
  void enter(const std::string& origin, Member& member) {
    leave(member);
    places_[&member] = {origin, ++last_};
    origins_[origin][last_] = &member;
  }

  void leave(Member& member) {  // no effect if it is not there
    const auto place = places_.find(&member);
    if (place == places_.end()) return;
    const auto group = origins_.find(place->second.origin);
    group->second.erase(place->second.turn);
    if (group->second.empty()) origins_.erase(group);
    places_.erase(place);
  }

  std::size_t size() const { return places_.size(); }

  // The oldest member of the largest origin; of several such, the oldest of all. There must be one.
  Member& surplus() const {
    const auto smaller = [](const auto& a, const auto& b) {
      const auto &one = a.second, &other = b.second;
      return one.size() != other.size() ? one.size() < other.size() : one.begin()->first > other.begin()->first;
    };
    return *std::max_element(origins_.begin(), origins_.end(), smaller)->second.begin()->second;
  }

 private:
  struct Place {
    std::string origin;
    std::uint64_t turn = 0;
  };
  std::map<Member*, Place> places_;
  std::map<std::string, std::map<std::uint64_t, Member*>> origins_;
  std::uint64_t last_ = 0;
};

}  // namespace maki::wan
