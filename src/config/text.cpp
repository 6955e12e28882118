#include "src/config/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "kernels/error.hpp"

namespace maki {

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);  // of i - 2, i - 1 and i letters of `a`
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string plain_word(const std::string& text) {
  std::string word;
  for (const char c : text) {
    if (c != '_' && c != '-') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

std::string nearest_name(const std::vector<std::string>& names, const std::string& word) {
  return *std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(plain_word(a), plain_word(word)) < edit_distance(plain_word(b), plain_word(word));
  });
}

std::string read_text(const std::string& path, const std::string& advice) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure))
    throw Error(fmt::format("cannot read '{}'", path), "it is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(fmt::format("cannot read '{}'", path),
                std::filesystem::exists(path, failure) ? "no permission" : "no such file", advice);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace maki
