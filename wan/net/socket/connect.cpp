// Sockets that connect and sockets that listen.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

void set_port(Address& address, std::uint16_t port) {
  if (address.storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  }
}

// Any address of the family, port 0.
Address any_of_family(sa_family_t family) {
  Address address;
  address.storage.ss_family = family;
  address.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return address;
}

Address source_of(const PathSettings& settings, const Address& target) {
  if (settings.local_address.empty()) return any_of_family(target.storage.ss_family);
  const Address source = resolve_local({settings.local_address, 0});
  if (source.storage.ss_family != target.storage.ss_family) {
    throw Error(fmt::format("cannot connect to {} from local_address = {}", target.text(), settings.local_address),
                "one is IPv4, the other IPv6");
  }
  return source;
}

Socket make_socket(sa_family_t family) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) throw Error("cannot make a socket", std::strerror(errno));
  return socket;
}

void allow_reuse(int descriptor) {
  const int yes = 1;  // of ports whose last connection is still being buried
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

int bind_to(int descriptor, const Address& address) {
  return bind(descriptor, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0 ? 0 : errno;
}

int connect_to(int descriptor, const Address& address) {
  const auto* target = reinterpret_cast<const sockaddr*>(&address.storage);
  if (connect(descriptor, target, address.length) == 0 || errno == EINPROGRESS || errno == EINTR) return 0;
  return errno;
}

// From one given port (0: any). An errno in `error` where it does not go; a port that is taken is no error of its own.
Socket try_from(const Address& target, Address source, std::uint16_t port, const PathSettings& settings, int& error) {
  Socket socket = make_socket(target.storage.ss_family);
  apply_options(socket.descriptor(), settings);
  error = 0;
  if (port != 0 || !settings.local_address.empty()) {
    if (port != 0) {
      allow_reuse(socket.descriptor());
    } else {
      const int yes = 1;  // the port is chosen when it connects, and may serve several targets
      setsockopt(socket.descriptor(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
    }
    set_port(source, port);
    error = bind_to(socket.descriptor(), source);
    if (error != 0 && error != EADDRINUSE) {
      throw Error(fmt::format("cannot connect from {}", source.text()), std::strerror(error),
                  "check local_address, local_port_first and local_port_last");
    }
  }
  if (error == 0) error = connect_to(socket.descriptor(), target);
  return socket;
}

std::string listen_advice(int error) {
  switch (error) {
    case EADDRINUSE: return "another program has the port: stop it, or choose another port";
    case EACCES: return "ports below 1024 need rights: choose a higher one";
    case EADDRNOTAVAIL: return "this machine has no such address: choose one of its own, or none for all";
    default: return "";
  }
}

}  // namespace

Socket start_connect(const Address& address, const PathSettings& settings) {
  const Address source = source_of(settings, address);
  const unsigned first = settings.local_port_first, count = first == 0 ? 1 : settings.local_port_last - first + 1u;
  static std::atomic<unsigned> turn{0};  // streams that start together begin at different ports
  const unsigned start = turn.fetch_add(1, std::memory_order_relaxed);
  int error = 0;
  for (unsigned i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(first == 0 ? 0 : first + (start + i) % count);
    Socket socket = try_from(address, source, port, settings, error);
    if (error == 0) return socket;
    // Both mean that this port is taken, for all targets or for this one.
    if (error != EADDRINUSE && error != EADDRNOTAVAIL) break;
  }
  if (first != 0 && (error == EADDRINUSE || error == EADDRNOTAVAIL)) {
    throw Error(fmt::format("cannot connect to {} from ports {} to {}", address.text(), first,
                            settings.local_port_last),
                "all of them are taken", "give a wider range, at least two ports a stream");
  }
  throw Error("cannot connect to " + address.text(), std::strerror(error));
}

namespace {

// 0 or errno. A port that two sockets try to listen on at the same moment is refused to both, although neither has it: the
// kernel lets both bind (SO_REUSEADDR) and each then sees the other about to listen. They try again at different times.
int listen_at(const Endpoint& local, const Address& address, const PathSettings& settings, int backlog, bool& nearly,
              Socket& socket) {
  socket = make_socket(address.storage.ss_family);
  const int descriptor = socket.descriptor();
  allow_reuse(descriptor);
  if (address.storage.ss_family == AF_INET6) {
    const int only_six = local.host.empty() ? 0 : 1;  // without a host: both families
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof(only_six));
  }
  apply_options(descriptor,
                settings);  // what is accepted inherits them; the window must be known before the first segment
  if (const int error = bind_to(descriptor, address); error != 0) return error;
  if (listen(descriptor, backlog) == 0) return 0;
  nearly = errno == EADDRINUSE;
  return errno;
}

}  // namespace

Socket listen_on(const Endpoint& local, const PathSettings& settings, int backlog) {
  constexpr int kAttempts = 5;
  const Address address = resolve_local(local);
  Socket socket;
  for (int attempt = 1;; ++attempt) {
    bool nearly = false;
    const int error = listen_at(local, address, settings, backlog, nearly, socket);
    if (error == 0) return socket;
    if (!nearly || attempt == kAttempts)
      throw Error("cannot listen on " + address.text(), std::strerror(error), listen_advice(error));
    thread_local std::minstd_rand random(std::random_device{}());
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(100, 5000)(random)));
  }
}

}  // namespace maki::wan
