// Tables of `maki model` as text or CSV.
#pragma once

#include <string>
#include <vector>

namespace maki::model {

struct Table {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // as long as `heads`

  std::string text() const;  // columns as wide as their longest word, aligned right, the first aligned left
  std::string csv() const;   // words with commas or quotes in quotes
};

}  // namespace maki::model
