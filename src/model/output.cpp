#include "src/model/output.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace maki::model {
namespace {

std::string cell(const std::string& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::size_t width = heads[i].size();
    for (const auto& row : rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i)
      one += i == 0 ? fmt::format("{:<{}}", words[i], widths[i]) : fmt::format("  {:>{}}", words[i], widths[i]);
    one.erase(one.find_last_not_of(' ') + 1);
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

std::string Table::csv() const {
  const auto line = [](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) one += ',';
      one += cell(words[i]);
    }
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

}  // namespace maki::model
