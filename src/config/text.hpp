// Words and files, as all readers of configurations need them.
#pragma once

#include <cstddef>
#include <string>

namespace maki {

// Insertions, deletions and replacements that lead from one word to the other.
std::size_t edit_distance(const std::string& a, const std::string& b);

// Without letter case, underscores and hyphens: HubbleParam and hubble_param are the same word.
std::string plain_word(const std::string& text);

// A whole file. Throws Error with `advice` where it cannot be read.
std::string read_text(const std::string& path, const std::string& advice);

}  // namespace maki
