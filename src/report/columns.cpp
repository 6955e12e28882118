#include "src/report/columns.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "kernels/error.hpp"

namespace maki::report {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

void take_row(const std::string& line, const std::vector<std::string>& names, Columns& all, const std::string& path) {
  std::istringstream in(line);
  const std::vector<double> row(std::istream_iterator<double>(in), {});
  if (row.empty()) return;
  if (row.size() != names.size())
    throw Error(fmt::format("cannot read '{}'", path),
                fmt::format("a row has {} numbers below {} names", row.size(), names.size()), "is the file whole?");
  for (std::size_t i = 0; i < row.size(); ++i) all.columns[names[i]].push_back(row[i]);
}

}  // namespace

double Columns::fact(const std::string& name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

const std::vector<double>& Columns::column(const std::string& name) const {
  static const std::vector<double> none;
  const auto found = columns.find(name);
  return found == columns.end() ? none : found->second;
}

std::string Columns::after(const std::string& words) const {
  const std::size_t at = comments.find(words);
  if (at == comments.npos) return "";
  const std::size_t begin = at + words.size();
  return comments.substr(begin, comments.find_first_of(",;\n", begin) - begin);
}

Columns read_columns(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("cannot read '{}'", path), "there is no such file, or it may not be read");
  Columns all;
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) {
      take_row(line, names, all, path);
      continue;
    }
    all.comments += line + '\n';
    names = words_of(line.substr(1));
    std::istringstream value(names.size() == 2 ? names[1] : "");
    if (double number = 0; value >> number) all.facts[names[0]] = number;
  }
  return all;
}

}  // namespace maki::report
