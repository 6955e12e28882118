#include "wan/net/socket/tcp.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "wan/net/error.hpp"

namespace maki::wan {
namespace {

struct AddressList {
  addrinfo* first = nullptr;
  AddressList() = default;
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  ~AddressList() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

Address from(const sockaddr* address, socklen_t length) {
  Address result;
  std::memcpy(&result.storage, address, length);
  result.length = length;
  return result;
}

Address wildcard(int family, std::uint16_t port) {
  Address address;
  if (family == AF_INET6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_any;
    six.sin6_port = htons(port);
    return from(reinterpret_cast<const sockaddr*>(&six), sizeof(six));
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_ANY);
  four.sin_port = htons(port);
  return from(reinterpret_cast<const sockaddr*>(&four), sizeof(four));
}

// An IPv4 peer of a socket that takes both families is shown as the IPv4 address that it is.
bool mapped(const Address& address) {
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return address.storage.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
}

std::vector<Address> look_up(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  AddressList list;
  const std::string port = std::to_string(endpoint.port);
  const int result = getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list.first);
  if (result != 0) {
    const std::string why = result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result);
    throw Error("cannot find the address of '" + endpoint.host + "'", why, "check the name, or give its IP address");
  }
  std::vector<Address> found;
  for (const addrinfo* i = list.first; i != nullptr; i = i->ai_next) {
    if (i->ai_family == AF_INET || i->ai_family == AF_INET6) found.push_back(from(i->ai_addr, i->ai_addrlen));
  }
  if (found.empty()) throw Error("cannot find the address of '" + endpoint.host + "'", "it has none of IPv4 or IPv6");
  return found;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

std::string Address::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr, text, sizeof(text));
  } else if (storage.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr, text, sizeof(text));
    if (mapped(*this)) return std::string(text).substr(std::strlen("::ffff:"));
  }
  return text;
}

std::uint16_t Address::port() const {
  if (storage.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  if (storage.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(storage).sin6_port);
  return 0;
}

std::string Address::text() const { return Endpoint{host(), port()}.text(); }

std::string Address::network() const {
  if (storage.ss_family != AF_INET6 || mapped(*this)) return host();
  Address first = *this;
  auto& six = reinterpret_cast<sockaddr_in6&>(first.storage).sin6_addr;
  std::fill(std::begin(six.s6_addr) + 8, std::end(six.s6_addr), std::uint8_t{0});
  return first.host() + "/64";
}

std::vector<Address> resolve(const Endpoint& endpoint) {
  if (endpoint.host.empty()) throw Error("cannot connect to '" + endpoint.text() + "'", "it names no host");
  const std::vector<Address> found = look_up(endpoint, 0);
  std::vector<Address> one, other, taken;
  for (const Address& address : found) {
    (address.storage.ss_family == found[0].storage.ss_family ? one : other).push_back(address);
  }
  for (std::size_t i = 0; i < std::max(one.size(), other.size()); ++i) {
    if (i < one.size()) taken.push_back(one[i]);
    if (i < other.size()) taken.push_back(other[i]);
  }
  return taken;
}

Address resolve_local(const Endpoint& endpoint) {
  if (!endpoint.host.empty()) return look_up(endpoint, AI_PASSIVE).front();
  const Socket six(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return wildcard(six.open() ? AF_INET6 : AF_INET, endpoint.port);
}

int connect_error(int descriptor) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  Address here, there;
  here.length = there.length = sizeof(sockaddr_storage);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&there.storage), &there.length) != 0) return errno;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&here.storage), &here.length) != 0) return errno;
  // On one machine, where nobody listens, TCP can connect a socket to itself: the port it was given is the port it asked for.
  const bool itself = here.length == there.length && std::memcmp(&here.storage, &there.storage, here.length) == 0;
  return itself ? ECONNREFUSED : 0;
}

Socket accept_from(int descriptor, Address& peer) {
  for (;;) {
    peer.length = sizeof(peer.storage);
    Socket socket(
        accept4(descriptor, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.open() || errno == EAGAIN || errno == EWOULDBLOCK) return socket;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      throw Error("cannot take a connection", std::strerror(errno),
                  "raise the limit of open files (ulimit -n), or lower the number of streams");
    }
    if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK || errno == EOPNOTSUPP) {
      throw Error("cannot take a connection", std::strerror(errno));
    }
    // Anything else is about a connection that broke before it was taken: the next one may be well.
  }
}

Address local_address(int descriptor) {
  Address address;
  address.length = sizeof(address.storage);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address;
}

Address peer_address(int descriptor) {
  Address address;
  address.length = sizeof(address.storage);
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) return {};
  return address;
}

bool within_this_machine(int descriptor) {
  const std::string there = peer_address(descriptor).host();
  return there == "::1" || there.starts_with("127.") || (!there.empty() && there == local_address(descriptor).host());
}

}  // namespace maki::wan
