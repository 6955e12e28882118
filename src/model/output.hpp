// What `maki model` prints: tables as text or CSV, and plots as SVG.
#pragma once

#include <string>
#include <vector>

namespace maki::model {

struct Table {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // as long as `heads`

  std::string text() const;  // columns as wide as their longest word, to the right; the first to the left
  std::string csv() const;   // words with commas or quotes in quotes
};

struct Line {
  std::string name;
  std::vector<double> x, y;  // of one length
};

struct Plot {
  std::string title, x_name, y_name;
  bool log_x = false, log_y = false;  // values not above zero are left out
  std::vector<Line> lines;

  std::string svg() const;
};

}  // namespace maki::model
