// Options of the `maki wan` commands: the common ones, with the file that may hold them (a [path] table); the folders
// of each peer (`maki wan serve`); and names of files at another site.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/config/text.hpp"
#include "wan/net/copy/server.hpp"
#include "wan/net/settings.hpp"

namespace maki {

// The options of a command line; has to live until the command has run.
struct PathOptions {
  std::string file;                                       // --config
  std::map<std::string, std::vector<std::string>> given;  // by the name of the key
  std::map<std::string, bool> switches;
  std::vector<std::string> more_keys = {};  // key files of other options; where certificates are used: none
};

void add_path_options(CLI::App& command, PathOptions& options);

// Merges `base`, the file and the command line; later ones override. Throws Error for an unreadable file, unknown keys
// (naming the nearest), values that do not fit (naming file and line, or the option), a path that is neither secured
// nor said to be insecure, a relay without key or target or with a key of the path.
PathChoices read_path_options(const PathOptions& options, const PathChoices& base = {});

// Reads only the file into `choices`, without checks across keys. `name` stands for the file in messages.
void read_path_table(const std::string& text, const std::string& name, PathChoices& choices);

// A [path] table of the settings that differ from the defaults, for a file.
std::string path_toml(const PathChoices& choices);

// The options of a command line about served folders; has to live until the command has run.
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
// Each peer of --allow gets its own folder; all other peers that `security` admits get --root. The last of
// security.key_files are keys_of(options), unless certificates are used. Throws Error where a peer has no folder, or a
// folder no peer.
void set_shares(const ShareOptions& options, const wan::Security& security, wan::copy::ServerOptions& server);
// One line for each peer and the folder that it may access.
std::vector<std::string> shares_text(const wan::copy::ServerOptions& server);

// HOST:PORT/path: a file or folder that another site serves.
struct RemotePath {
  wan::Endpoint host;
  std::string path;  // below the served root; the text after the first slash
};

// None for a path of this machine: without a port in front, or with "./". Remote: "[::1]:6000/a", "host:6000" (the
// root).
std::optional<RemotePath> parse_remote(const std::string& text);

}  // namespace maki
