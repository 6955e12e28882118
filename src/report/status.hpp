// Where a run stands, for who watches it.
#pragma once

#include <string>
#include <vector>

#include "src/report/follower.hpp"

namespace maki::report {

enum class Life {
  kNotBegun,  // no line yet
  kUnderWay,
  kSilent,  // no line for far longer than steps take: it writes something large, hangs, or is gone
  kDead,    // silent, and gone for sure
  kEnded,   // also stopped, or without a site
};
Life life_of(const RunRecords& records, const Signs& signs);

// A screen of lines: time, steps, expected end, seconds by phase, energy, memory, ranks, sites, and how it lives.
std::vector<std::string> status_lines(const RunRecords& records, const Signs& signs);

// The same in one line, without phases.
std::string status_line(const RunRecords& records, const Signs& signs);

// How it lives in a sentence. `directory` stands in it.
std::string life_text(const RunRecords& records, const Signs& signs, const std::string& directory);

}  // namespace maki::report
