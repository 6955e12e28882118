// Words, files, TOML and the names of path keys, for all readers of configurations.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/error.hpp"
#include "wan/net/settings.hpp"

namespace maki {

// Number of insertions, deletions and replacements that lead from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b);

// The text without letter case, underscores and hyphens: HubbleParam and hubble_param are the same word.
std::string plain_word(const std::string& text);

// The name with the least edit_distance() to `word`, compared as plain words; `names` must not be empty.
std::string nearest_name(const std::vector<std::string>& names, const std::string& word);

// A whole file. Throws Error with `advice` where it cannot be read.
std::string read_text(const std::string& path, const std::string& advice);

// The keys of paths (wan/net/settings.hpp) as configurations and command lines name them.
using wan::find_path_key;
using wan::path_keys;
using wan::PathChoices;
using wan::PathKey;

// The key that a user may have meant.
inline std::string nearest_path_key(const std::string& word) {
  std::vector<std::string> names;
  for (const PathKey& key : path_keys()) names.push_back(key.name);
  return nearest_name(names, word);
}

// The place of a value in TOML, which begins messages: "run.toml line 12".
inline std::string place_of(const std::string& name, const toml::node& value) {
  return fmt::format("{} line {}", name, value.source().begin.line);
}

// Parses TOML; `name` stands for the file in messages. Throws Error, with the line, where the text is no TOML.
inline toml::table parse_toml(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{} line {}: not valid TOML", name, error.source().begin.line),
                std::string(error.description()), "values with a unit, and other text, stand in quotes");
  }
}

// Whether TOML can hold a text; file names may have any bytes.
inline bool is_utf8(std::string text) {
  for (char& byte : text)
    if ((static_cast<unsigned char>(byte) & 0x80u) == 0) byte = ' ';
  try {
    (void)toml::parse("#" + text);
    return true;
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace maki
