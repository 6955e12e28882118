// Spectra of several foldings as one, and of two sets.
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "kernels/error.hpp"
#include "kernels/measure/power_spectrum.hpp"

namespace maki {

std::vector<int> foldings_up_to(int highest) {
  if (highest < 1 || highest > 4096 || !std::has_single_bit(static_cast<unsigned>(highest)))
    throw Error("the box cannot be folded up to " + std::to_string(highest) + " times",
                "each folding is twice the one before", "give a power of two from 1 to 4096");
  std::vector<int> all;
  for (int folding = 1; folding <= highest; folding *= 2) all.push_back(folding);
  return all;
}

MeasurePowerOptions folded(MeasurePowerOptions options, int folding) {
  options.folding = folding;
  options.bin_width *= folding;
  return options;
}

WaveRange waves_of_folding(int folding, int highest, int cells) {
  const auto end_of = [cells](int f) { return std::numbers::pi * f * (cells - 1); };
  return {folding > 1 ? end_of(folding / 2) : 0,
          folding < highest ? end_of(folding) : std::numeric_limits<double>::infinity()};
}

double CrossBin::correlation() const { return first > 0 && second > 0 ? cross / std::sqrt(first * second) : 0; }

}  // namespace maki
