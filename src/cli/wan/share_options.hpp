// The options of `maki wan serve` that say who may have which folder.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "wan/net/copy/server.hpp"
#include "wan/net/settings.hpp"

namespace maki {

// What a command line said: keep it alive until the command has run.
struct ShareOptions {
  std::string root = {};
  bool read_only = false;
  std::vector<std::string> allowed = {};  // "KEYFILE:ROOT[:ro|:rw]"
};

void add_share_options(CLI::App& command, ShareOptions& options);

struct Allowed {
  std::string who;  // a key file, or the name in a certificate
  std::string root;
  bool read_only = true;
};
// Throws Error where it is not KEYFILE:ROOT[:ro|:rw].
Allowed parse_allowed(const std::string& text);

std::vector<std::string> keys_of(const ShareOptions& options);
// Each of --allow gets its own folder, all others that `security` lets in --root. The last of security.key_files are
// keys_of(options), unless certificates are used. Throws Error where somebody has no folder, or a folder nobody.
void set_shares(const ShareOptions& options, const wan::Security& security, wan::copy::ServerOptions& server);
// One line for each peer and the folder that it may access.
std::vector<std::string> shares_text(const wan::copy::ServerOptions& server);

}  // namespace maki
