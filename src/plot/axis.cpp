#include "src/plot/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace maki::plot {
namespace {

double scaled(const Axis& axis, double value) { return axis.log ? std::log10(value) : value; }

// Every decade, with 2 and 5 between them where there are few, or every second, third, ... where there are many.
std::vector<Mark> decades(const Axis& axis) {
  std::vector<Mark> all;
  const double span = axis.high - axis.low;
  const int step = std::max(1, static_cast<int>(std::ceil(span / 8)));
  for (int e = static_cast<int>(std::floor(axis.low)); e <= axis.high + 1e-9; ++e)
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10, e), place = std::log10(value);
      const bool wanted = digit == 1 ? e % step == 0 : span < 2.5;
      if (wanted && place > axis.low - 1e-9 && place < axis.high + 1e-9)
        all.push_back({value, fmt::format("{:g}", value)});
    }
  return all;
}

std::vector<Mark> even_marks(const Axis& axis) {
  std::vector<Mark> all;
  const double a = axis.log ? std::pow(10, axis.low) : axis.low, b = axis.log ? std::pow(10, axis.high) : axis.high;
  const double rough = (b - a) / 6, ten = std::pow(10, std::floor(std::log10(rough)));
  const double step = ten * (rough / ten > 5 ? 10 : rough / ten > 2 ? 5 : rough / ten > 1 ? 2 : 1);
  for (double v = std::ceil(a / step - 1e-9) * step; v <= b + 1e-9 * step; v += step)
    if (axis.shows(v)) all.push_back({v, fmt::format("{:g}", std::abs(v) < 1e-9 * step ? 0 : v)});
  return all;
}

}  // namespace

bool Axis::shows(double value) const { return std::isfinite(value) && (!log || value > 0); }

double Axis::at(double value) const { return from + (to - from) * (scaled(*this, value) - low) / (high - low); }

std::vector<Mark> Axis::marks() const { return log && high - low >= 1 ? decades(*this) : even_marks(*this); }

Axis axis_of(const std::vector<Line>& lines, const std::vector<double> Line::*values, bool log, bool from_zero) {
  Axis axis;
  axis.log = log;
  axis.low = std::numeric_limits<double>::infinity();
  axis.high = -axis.low;
  for (const Line& line : lines) {
    for (const double value : line.*values) {
      if (!axis.shows(value)) continue;
      axis.low = std::min(axis.low, scaled(axis, value));
      axis.high = std::max(axis.high, scaled(axis, value));
    }
  }
  if (!(axis.low <= axis.high)) axis.low = 0, axis.high = 1;
  if (!log && from_zero) axis.low = std::min(axis.low, 0.0), axis.high = std::max(axis.high, 0.0);
  const double least = 1e-9 * std::max({std::abs(axis.low), std::abs(axis.high), 1e-291});
  if (axis.high - axis.low < least) axis.high = axis.low + (log ? 1 : std::max(1e-6, std::abs(axis.low)));
  return axis;
}

}  // namespace maki::plot
