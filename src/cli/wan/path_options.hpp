// The options that all `maki wan` commands share, and the file that may hold them: a [path] table.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "src/config/path_keys.hpp"

namespace maki {

// What a command line said: keep it alive until the command has run.
struct PathOptions {
  std::string file;                                       // --config
  std::map<std::string, std::vector<std::string>> given;  // by the name of the key
  std::map<std::string, bool> switches;
  std::vector<std::string> more_keys = {};  // key files of other options; where certificates are used: none
};

void add_path_options(CLI::App& command, PathOptions& options);

// `base`, what the file says, what the command line says: the later wins. Throws Error for an unreadable file, unknown
// keys (naming the nearest), values that do not fit (naming file and line, or the option), a path that is neither
// secured nor said to be insecure, a relay without key or target.
PathChoices read_path_options(const PathOptions& options, const PathChoices& base = {});

// The file alone, into `choices`; nothing is asked of the whole. `name` stands for the file in messages.
void read_path_table(const std::string& text, const std::string& name, PathChoices& choices);

// A [path] table of what differs from the defaults: to paste, and to be read again.
std::string path_toml(const PathChoices& choices);

}  // namespace maki
