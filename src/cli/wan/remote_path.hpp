// HOST:PORT/path: a file or folder that another site serves.
#pragma once

#include <optional>
#include <string>

#include "wan/net/settings.hpp"

namespace maki {

struct RemotePath {
  wan::Endpoint host;
  std::string path;  // below the root that is served; what follows the first slash
};

// Nothing for what is a path of this machine: no port in front, or "./" to say so. "[::1]:6000/a", "host:6000" (the
// root).
std::optional<RemotePath> parse_remote(const std::string& text);

}  // namespace maki
