#include "src/cli/wan/remote_path.hpp"

namespace maki {

std::optional<RemotePath> parse_remote(const std::string& text) {
  const std::size_t host_end = text.starts_with('[') ? text.find("]:") : text.find(':');
  if (host_end == std::string::npos || host_end == 0) return {};
  const std::size_t port = text.find_first_of("0123456789", host_end);
  if (port != host_end + (text[host_end] == ']' ? 2 : 1)) return {};
  const std::size_t port_end = std::min(text.find_first_not_of("0123456789", port), text.size());
  if (text.find('/') < port || (port_end < text.size() && text[port_end] != '/')) return {};
  RemotePath remote;
  remote.host = wan::Endpoint::parse(text.substr(0, port_end));
  remote.path = port_end < text.size() ? text.substr(port_end + 1) : "";
  return remote;
}

}  // namespace maki
