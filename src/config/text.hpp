// Words and files, as all readers of configurations need them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace maki {

// Insertions, deletions and replacements that lead from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b);

// The text without letter case, underscores and hyphens: HubbleParam and hubble_param are the same word.
std::string plain_word(const std::string& text);

// The name with the least edit_distance() to `word`, compared as plain words; `names` must not be empty.
std::string nearest_name(const std::vector<std::string>& names, const std::string& word);

// A whole file. Throws Error with `advice` where it cannot be read.
std::string read_text(const std::string& path, const std::string& advice);

}  // namespace maki
