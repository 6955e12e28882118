// Numbers with units as the settings have them: "4 MB", "800 Mbit/s", "10 min".
#pragma once

#include <string>

namespace maki::wan::mpw {

// A plain number is in bytes and in seconds; rates, in bytes a second, need a unit unless they are 0. Throw Error.
double parse_size(const std::string& text);
double parse_rate(const std::string& text);
double parse_seconds(const std::string& text);
int parse_integer(const std::string& text, int low, int high);

}  // namespace maki::wan::mpw
