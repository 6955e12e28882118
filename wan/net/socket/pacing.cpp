#include "wan/net/socket/pacing.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "wan/net/error.hpp"

namespace maki::wan {

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
