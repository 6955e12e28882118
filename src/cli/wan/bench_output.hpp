// What `maki wan bench` found, for people and as JSON.
#pragma once

#include <string>

#include "src/config/path_keys.hpp"
#include "wan/net/tune/measure.hpp"

namespace maki {

struct BenchOutput {
  std::string peer;
  PathChoices choices;  // as the user gave them
  wan::Trial trial;     // as measured
  bool swept = false;
  wan::Tuned tuned;
  wan::BenchResult result;
  wan::KernelLimits here, there;
};

std::string bench_text(const BenchOutput& output);
std::string bench_json(const BenchOutput& output);

}  // namespace maki
