#include "wan/net/socket/tcp.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "wan/net/error.hpp"

namespace maki::wan {

// ---- addresses -----------------------------------------------------------------------------------------------------

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

struct HostAddresses::Shared {
  const Endpoint endpoint;
  const LookUp look_up;
  std::mutex mutex;  // of what follows
  std::vector<Address> addresses;
  bool busy = false;
  std::chrono::steady_clock::time_point next{};

  Shared(const Endpoint& of, LookUp by) : endpoint(of), look_up(std::move(by)), addresses(look_up(endpoint)) {}

  void renew() {
    std::vector<Address> found;
    try {
      found = look_up(endpoint);
    } catch (const std::exception&) {  // the name server is away, as the host may be
    }
    const std::lock_guard lock(mutex);
    if (!found.empty()) addresses = std::move(found);
    busy = false;
    next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  }
};

HostAddresses::HostAddresses(const Endpoint& endpoint, LookUp look_up)
    : shared_(std::make_shared<Shared>(endpoint, std::move(look_up))) {}

std::vector<Address> HostAddresses::now() const {
  if (!shared_) return {};
  const std::lock_guard lock(shared_->mutex);
  return shared_->addresses;
}

void HostAddresses::look_up_again() const {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->busy || std::chrono::steady_clock::now() < shared_->next) return;
  try {
    std::thread([shared = shared_] { shared->renew(); }).detach();
    shared_->busy = true;
  } catch (const std::system_error&) {  // no thread now: a later failure asks again
  }
}

std::uint64_t open_files(std::uint64_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t target = std::min<rlim_t>(wanted, limit.rlim_max);
  const rlimit raised{target, limit.rlim_max};
  if (limit.rlim_cur < target && setrlimit(RLIMIT_NOFILE, &raised) == 0) return target;
  return limit.rlim_cur;
}

// ---- connections ---------------------------------------------------------------------------------------------------

int connect_error(int descriptor) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  if (error != 0) return error;
  const Address there = peer_address(descriptor);
  if (there.length == 0) return errno;
  const Address here = local_address(descriptor);
  // On one machine without a listener, TCP can connect a socket to itself: the port it was given is the port it called.
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
    // Any other error concerns a connection that broke before it was accepted: the next one may be fine.
  }
}

namespace {

// Empty if `ask`, getsockname or getpeername, fails.
template <class Ask>
Address address_by(Ask ask, int descriptor) {
  Address address;
  address.length = sizeof(address.storage);
  return ask(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length) == 0 ? address : Address{};
}

}  // namespace

Address local_address(int descriptor) { return address_by(getsockname, descriptor); }
Address peer_address(int descriptor) { return address_by(getpeername, descriptor); }

IoResult read_some(int descriptor, std::span<std::byte> buffer) {
  if (buffer.empty()) return {};
  ssize_t got;
  do got = recv(descriptor, buffer.data(), buffer.size(), MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got > 0) return {static_cast<std::size_t>(got), IoStatus::kDone};
  if (got == 0) errno = 0;
  return {0, errno == EAGAIN || errno == EWOULDBLOCK ? IoStatus::kWantRead : IoStatus::kClosed};
}

IoResult write_some(int descriptor, std::span<const std::byte> head, std::span<const std::byte> body) {
  const std::size_t all = head.size() + body.size();
  std::size_t taken = 0;
  while (taken < all) {
    const auto first = head.subspan(std::min(taken, head.size()));
    const auto second = body.subspan(taken > head.size() ? taken - head.size() : 0);
    // sendmsg does not modify these buffers; its type cannot say so.
    std::array<iovec, 2> parts = {iovec{const_cast<std::byte*>(first.data()), first.size()},
                                  iovec{const_cast<std::byte*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
      taken += static_cast<std::size_t>(sent);
    else if (errno != EINTR)
      return {taken, errno == EAGAIN || errno == EWOULDBLOCK ? IoStatus::kWantWrite : IoStatus::kClosed};
  }
  return {taken, IoStatus::kDone};
}

bool within_this_machine(int descriptor) {
  const std::string there = peer_address(descriptor).host();
  return there == "::1" || there.starts_with("127.") || (!there.empty() && there == local_address(descriptor).host());
}

// ---- socket options, and what the kernel grants --------------------------------------------------------------------

namespace {

// Limit of unsent bytes in a socket: they cannot move to another stream any more.
constexpr int kUnsent = 64 << 10;

void set(int descriptor, int level, int option, int value, const char* name) {
  if (setsockopt(descriptor, level, option, &value, sizeof(value)) != 0) {
    throw Error(fmt::format("cannot set {} of a socket", name), std::strerror(errno));
  }
}

void set_window(int descriptor, int option, std::size_t bytes, const char* setting) {
  set(descriptor, SOL_SOCKET, option, static_cast<int>(bytes), option == SO_SNDBUF ? "SO_SNDBUF" : "SO_RCVBUF");
  int given = 0;
  socklen_t length = sizeof(given);
  getsockopt(descriptor, SOL_SOCKET, option, &given, &length);
  // Linux reports twice what was requested, including its own overhead.
  if (static_cast<std::size_t>(given) / 2 >= bytes) return;
  log_once(
      LogLevel::kWarning,
      fmt::format(
          "a window of {} bytes was asked for, the kernel allows {}: raise the system's {} to {}, or set window = 0",
          bytes, given / 2, setting, bytes));
}

std::string available_congestion_controls() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string names;
  std::getline(file, names);
  return names.empty() ? "unknown" : names;
}

void set_congestion(int descriptor, const std::string& name) {
  if (setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.c_str(), static_cast<socklen_t>(name.size())) == 0)
    return;
  if (errno == EPERM) {
    throw Error("congestion = '" + name + "'", "this user may not choose it",
                "add it to the system's net.ipv4.tcp_allowed_congestion_control, or leave congestion empty");
  }
  throw Error("congestion = '" + name + "'", "the kernel has it not (" + std::string(std::strerror(errno)) + ")",
              "there are: " + available_congestion_controls() +
                  "; others may come with a kernel module (modprobe tcp_" + name + ")");
}

}  // namespace

void apply_options(int descriptor, const PathSettings& settings) {
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  if (settings.window > 0) {
    set_window(descriptor, SO_SNDBUF, settings.window, "net.core.wmem_max");
    set_window(descriptor, SO_RCVBUF, settings.window, "net.core.rmem_max");
  }
  if (!settings.congestion.empty()) set_congestion(descriptor, settings.congestion);
  bound_pacing(descriptor, is_paced(descriptor) ? settings.pacing_rate : 0);
  // A single stream has no other to leave bytes to, and is faster with a full buffer; 0 is the kernel's default.
  set(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, settings.streams > 1 ? kUnsent : 0, "TCP_NOTSENT_LOWAT");
}

// ---- connecting and listening --------------------------------------------------------------------------------------

namespace {

Address source_of(const PathSettings& settings, const Address& target) {
  if (settings.local_address.empty()) return Address::any(target.storage.ss_family, 0);
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
  const int yes = 1;  // for ports whose last connection is in TIME_WAIT
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

// From one given port (0: any). On failure `error` is an errno, also for a port in use; other errors of bind() throw.
Socket try_from(const Address& target, Address source, std::uint16_t port, const PathSettings& settings, int& error) {
  Socket socket = make_socket(target.storage.ss_family);
  apply_options(socket.descriptor(), settings);
  error = 0;
  if (port != 0 || !settings.local_address.empty()) {
    if (port != 0) {
      allow_reuse(socket.descriptor());
    } else {
      const int yes = 1;  // the port is chosen at connect, and may serve several targets
      setsockopt(socket.descriptor(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
    }
    source.set_port(port);
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
    // Both mean that this port is in use, for all targets or for this one.
    if (error != EADDRINUSE && error != EADDRNOTAVAIL) break;
  }
  if (first != 0 && (error == EADDRINUSE || error == EADDRNOTAVAIL)) {
    throw Error(fmt::format("cannot connect to {} from ports {} to {}", address.text(), first,
                            settings.local_port_last),
                "all of them are taken", "give a wider range, at least two ports a stream");
  }
  throw Error("cannot connect to " + address.text(), std::strerror(error));
}

// If two sockets start to listen on a port at the same moment, both are refused although neither has it: the kernel
// lets both bind (SO_REUSEADDR), and each then sees the other about to listen. So they retry after different times.
Socket listen_on(const Endpoint& local, const PathSettings& settings, int backlog) {
  constexpr int kAttempts = 5;
  const Address address = resolve_local(local);
  for (int attempt = 1;; ++attempt) {
    Socket socket = make_socket(address.storage.ss_family);
    const int descriptor = socket.descriptor();
    allow_reuse(descriptor);
    if (address.storage.ss_family == AF_INET6) {
      const int only_six = local.host.empty() ? 0 : 1;  // without a host: both families
      setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof(only_six));
    }
    // Accepted sockets inherit them; the window must be known before the first segment.
    apply_options(descriptor, settings);
    int error = bind_to(descriptor, address);
    if (error == 0) error = listen(descriptor, backlog) == 0 ? 0 : errno;
    if (error == 0) return socket;
    if (error != EADDRINUSE || attempt == kAttempts)
      throw Error("cannot listen on " + address.text(), std::strerror(error), listen_advice(error));
    thread_local std::minstd_rand random(std::random_device{}());
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(100, 5000)(random)));
  }
}

bool is_paced(int descriptor) {
  std::array<char, 16> name{};  // TCP_CA_NAME_MAX
  socklen_t length = name.size();
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return false;
  return std::string_view(name.data(), strnlen(name.data(), name.size())).starts_with("bbr");
}

void bound_pacing(int descriptor, double rate) {
  const std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t bytes = rate > 0 ? static_cast<std::uint64_t>(std::llround(rate)) : none;
  if (setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof(bytes)) != 0 && rate > 0) {
    log_once(LogLevel::kWarning, std::string("the kernel does not pace sockets (") + std::strerror(errno) + ")");
  }
}

}  // namespace maki::wan
