// One axis of a plot: from values to pixels, and where its marks are.
#pragma once

#include <string>
#include <vector>

#include "src/plot/plot.hpp"

namespace maki::plot {

struct Axis {
  bool log = false;
  double low = 0, high = 1;  // ends, as log10 where `log`
  double from = 0, to = 1;   // pixels of the ends

  bool shows(double value) const;
  double at(double value) const;  // pixel
  std::vector<Mark> marks() const;
};

// An axis that holds all finite values of the lines; `log` ones only where above zero.
Axis axis_of(const std::vector<Line>& lines, const std::vector<double> Line::*values, bool log, bool from_zero);

}  // namespace maki::plot
