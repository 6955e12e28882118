#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {

namespace {

// An IPv4 peer of a dual-stack socket is shown by its IPv4 address.
bool mapped(const Address& address) {
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address.storage);
  return address.storage.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
}

std::vector<Address> look_up(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int result = getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(first, freeaddrinfo);
  if (result != 0) {
    const std::string why = result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result);
    throw Error("cannot find the address of '" + endpoint.host + "'", why, "check the name, or give its IP address");
  }
  std::vector<Address> found;
  for (const addrinfo* i = list.get(); i != nullptr; i = i->ai_next) {
    if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
    std::memcpy(&found.emplace_back().storage, i->ai_addr, i->ai_addrlen);
    found.back().length = i->ai_addrlen;
  }
  if (found.empty()) throw Error("cannot find the address of '" + endpoint.host + "'", "it has none of IPv4 or IPv6");
  return found;
}

}  // namespace

// All zero but the family: equals INADDR_ANY and in6addr_any.
Address Address::any(sa_family_t family, std::uint16_t port) {
  Address address;
  address.storage.ss_family = family;
  address.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  address.set_port(port);
  return address;
}

void Address::set_port(std::uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(port);
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
  return Address::any(six.open() ? AF_INET6 : AF_INET, endpoint.port);
}

}  // namespace maki::wan
