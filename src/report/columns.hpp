// Text files of columns with facts in comments: power_NNN.txt and groups_NNN_mass_function.txt.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace maki::report {

struct Columns {
  std::map<std::string, double> facts;                 // "# Redshift 3" in the comments
  std::map<std::string, std::vector<double>> columns;  // by the names in the last comment; of one length
  std::string comments;

  double fact(const std::string& name) const;                        // NaN where there is none
  const std::vector<double>& column(const std::string& name) const;  // empty where there is none
  // What stands in the comments between these words and the next comma or semicolon; "" where they are missing.
  std::string after(const std::string& words) const;
};

// Throws Error where the file cannot be read, or a row does not have as many numbers as there are names.
Columns read_columns(const std::string& path);

}  // namespace maki::report
