// Sizes, rates and times in text form: "4 MB", "800 Mbit/s", "10 min".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace maki::wan {

// All throw Error that says what was expected. "4 MB" -> 4000000; a plain number is in bytes.
std::size_t parse_size(const std::string& text);
// "800 Mbit/s" -> 1e8 bytes a second; 0 needs no unit.
double parse_rate(const std::string& text);
// "10 min" -> 600; a plain number is in seconds.
double parse_seconds(const std::string& text);
int parse_integer(const std::string& text, int low, int high);

// The inverse, so that parsing gives the same number.
std::string size_text(std::size_t bytes);
std::string rate_text(double bytes_per_second);

// Rounded, for messages: "8 bytes", "1.5 MB".
std::string amount(std::uint64_t bytes);

using WallClock = std::chrono::steady_clock;

inline double seconds_since(WallClock::time_point begin) {
  return std::chrono::duration<double>(WallClock::now() - begin).count();
}

}  // namespace maki::wan
