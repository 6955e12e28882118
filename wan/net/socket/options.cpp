// What is asked of a stream's socket, and what the kernel gives.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include "wan/net/error.hpp"
#include "wan/net/log.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::wan {
namespace {

// Bytes that wait in a socket unsent: what lies there cannot go over another stream any more.
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
  // Linux keeps, and tells, twice what was asked, its own overhead included.
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

// The whole path's rate bounds each of its streams: how they share it changes from moment to moment.
void set_pacing(int descriptor, double rate) {
  const std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t bytes = rate > 0 ? static_cast<std::uint64_t>(std::llround(rate)) : none;
  if (setsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes, sizeof(bytes)) != 0 && rate > 0) {
    log_once(LogLevel::kWarning, std::string("the kernel does not pace sockets (") + std::strerror(errno) + ")");
  }
}

}  // namespace

void apply_options(int descriptor, const PathSettings& settings, bool bulk) {
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  if (settings.window > 0) {
    set_window(descriptor, SO_SNDBUF, settings.window, "net.core.wmem_max");
    set_window(descriptor, SO_RCVBUF, settings.window, "net.core.rmem_max");
  }
  if (!settings.congestion.empty()) set_congestion(descriptor, settings.congestion);
  set_pacing(descriptor, settings.pacing_rate);
  // A single stream has nobody to leave its bytes to, and does better with a full buffer; 0 is the kernel's own mark.
  set(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bulk && settings.streams > 1 ? kUnsent : 0, "TCP_NOTSENT_LOWAT");
}

}  // namespace maki::wan
