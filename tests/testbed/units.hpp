// Numbers with units, as people write them: 270ms, 800Mbit, 10MB.
#pragma once

#include <string>

namespace maki::testbed {

double parse_seconds(const std::string& text);  // "270ms", "2.1 ms", "500us", "3s"; a bare number is seconds
double parse_rate(const std::string& text);     // bits a second: "800Mbit", "1Gbit", "100MB" (bytes a second)
double parse_bytes(const std::string& text);    // "10MB" (10^6), "64kB", "4MiB"

// All throw wan::Error for what is no such thing.

}  // namespace maki::testbed
