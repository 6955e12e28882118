#include "src/plot/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace maki::plot {

namespace {

constexpr double kLeft = 100, kTop = 40, kBottom = 60, kMargin = 20;  // pixels
constexpr double kLetter = 7.2;                                       // width of a letter of the legend
constexpr std::array kColours = {"#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e09f3e", "#444444"};

// One axis of a plot: conversion from values to pixels.
struct Axis {
  bool log = false;
  double low = 0, high = 1;  // ends, as log10 where `log`
  double from = 0, to = 1;   // pixels of the ends

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double scaled(double value) const { return log ? std::log10(value) : value; }
  double at(double value) const { return from + (to - from) * (scaled(value) - low) / (high - low); }  // pixel
};

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

std::vector<Mark> marks_of(const Axis& axis) {
  return axis.log && axis.high - axis.low >= 1 ? decades(axis) : even_marks(axis);
}

// An axis for all finite values of the lines; with `log` only values above zero.
Axis axis_of(const std::vector<Line>& lines, const std::vector<double> Line::*values, bool log, bool from_zero) {
  Axis axis;
  axis.log = log;
  axis.low = std::numeric_limits<double>::infinity();
  axis.high = -axis.low;
  for (const Line& line : lines) {
    for (const double value : line.*values) {
      if (!axis.shows(value)) continue;
      axis.low = std::min(axis.low, axis.scaled(value));
      axis.high = std::max(axis.high, axis.scaled(value));
    }
  }
  if (!(axis.low <= axis.high)) axis.low = 0, axis.high = 1;
  if (!log && from_zero) axis.low = std::min(axis.low, 0.0), axis.high = std::max(axis.high, 0.0);
  const double least = 1e-9 * std::max({std::abs(axis.low), std::abs(axis.high), 1e-291});
  if (axis.high - axis.low < least) axis.high = axis.low + (log ? 1 : std::max(1e-6, std::abs(axis.low)));
  return axis;
}

struct Area {
  double left, right, top, bottom;
};

// Room to the right for the names of the lines.
double legend_width(const Plot& plot) {
  std::size_t longest = 0;
  for (const Line& line : plot.lines) longest = std::max(longest, line.name.size());
  return longest == 0 ? kMargin : 30 + kLetter * static_cast<double>(longest);
}

std::string heading(const Plot& plot) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" role=\"img\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<title>{3}</title>\n<rect class=\"paper\" width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text class=\"ink\" x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      plot.width, plot.height, kLeft, escaped(plot.title));
}

std::string x_grid(const Axis& x, const std::vector<Mark>& marks, const Area& area) {
  std::string out;
  for (const Mark& mark : marks)
    out += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/>\n"
        "<text class=\"ink\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x.at(mark.at), area.top, area.bottom, area.bottom + 18, escaped(mark.label));
  return out;
}

std::string y_grid(const Axis& y, const Area& area) {
  std::string out;
  for (const Mark& mark : marks_of(y))
    out += fmt::format(
        "<path class=\"grid\" d=\"M{1} {0:.1f}H{2}\" stroke=\"#ddd\"/>\n"
        "<text class=\"ink\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
        y.at(mark.at), area.left, area.right, area.left - 6, y.at(mark.at) + 4, escaped(mark.label));
  return out;
}

std::string frame(const Plot& plot, const Area& area) {
  return fmt::format(
      "<rect class=\"frame\" x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"none\" stroke=\"black\"/>\n"
      "<text class=\"ink\" x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>\n"
      "<text class=\"ink\" transform=\"translate(20 {7}) rotate(-90)\" text-anchor=\"middle\">{8}</text>\n",
      area.left, area.top, area.right - area.left, area.bottom - area.top, (area.left + area.right) / 2,
      plot.height - 18, escaped(plot.x_name), (area.top + area.bottom) / 2, escaped(plot.y_name));
}

// Lines skip values that cannot be shown.
std::string path_of(const Line& line, const Axis& x, const Axis& y) {
  std::string path;
  const bool points = line.style == Style::kPoints;
  for (std::size_t k = 0; k < line.x.size(); ++k) {
    if (!x.shows(line.x[k]) || !y.shows(line.y[k])) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() || points ? "M" : "L", x.at(line.x[k]), y.at(line.y[k]));
    if (points) path += "h0";
  }
  return path;
}

// A bar that would reach below the axis is clipped there.
std::string bars_of(const Line& line, const Axis& x, const Axis& y) {
  std::string path;
  for (std::size_t k = 0; k < line.error.size(); ++k) {
    if (!x.shows(line.x[k]) || !y.shows(line.y[k])) continue;
    const double low = line.y[k] - line.error[k];
    path += fmt::format("M{:.1f} {:.1f}V{:.1f}", x.at(line.x[k]),
                        y.shows(low) ? std::clamp(y.at(low), y.to, y.from) : y.from,
                        std::clamp(y.at(line.y[k] + line.error[k]), y.to, y.from));
  }
  return path;
}

std::string drawn(const Line& line, int colour, const Axis& x, const Axis& y) {
  const auto stroke = [&](const std::string& path, const std::string& how) {
    return path.empty() ? ""
                        : fmt::format("<path class=\"s{}\" d=\"{}\" fill=\"none\" stroke=\"{}\" {}/>\n", colour, path,
                                      kColours[static_cast<std::size_t>(colour)], how);
  };
  const char* how = line.style == Style::kPoints   ? "stroke-width=\"6\" stroke-linecap=\"round\""
                    : line.style == Style::kDashed ? "stroke-width=\"2\" stroke-dasharray=\"6 5\""
                                                   : "stroke-width=\"2\" stroke-linejoin=\"round\"";
  return stroke(bars_of(line, x, y), "stroke-width=\"1.5\"") + stroke(path_of(line, x, y), how);
}

std::string legend_entry(const Line& line, int colour, double x, double y) {
  if (line.name.empty()) return "";
  const char* how = line.style == Style::kDashed ? " stroke-dasharray=\"4 3\"" : "";
  return fmt::format(
      "<path class=\"s{0}\" d=\"M{1} {2}h12\" stroke=\"{3}\" stroke-width=\"3\"{4}/>\n"
      "<text class=\"ink\" x=\"{5}\" y=\"{6}\">{7}</text>\n",
      colour, x + 8, y - 4, kColours[static_cast<std::size_t>(colour)], how, x + 24, y, escaped(line.name));
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

Line thinned(const Line& line, std::size_t most) {
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  if (line.x.size() <= 2 * stretches || !line.error.empty()) return line;
  Line few{line.name, {}, {}, line.style, line.colour};
  const auto take = [&](std::size_t i) { few.x.push_back(line.x[i]), few.y.push_back(line.y[i]); };
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto begin = line.y.begin() + static_cast<std::ptrdiff_t>(s * line.y.size() / stretches);
    const auto end = line.y.begin() + static_cast<std::ptrdiff_t>((s + 1) * line.y.size() / stretches);
    const auto [low, high] = std::minmax_element(begin, end);
    const auto [first, second] = std::minmax({low - line.y.begin(), high - line.y.begin()});  // values, not references
    take(static_cast<std::size_t>(first));
    if (second != first) take(static_cast<std::size_t>(second));
  }
  return few;
}

std::string Plot::svg() const {
  const Area area{kLeft, width - legend_width(*this), kTop, height - kBottom};
  Axis x = axis_of(lines, &Line::x, log_x, false);
  if (from_zero && x_marks.empty() && x.low < x.high - x.low) x = axis_of(lines, &Line::x, log_x, true);
  Axis y = axis_of(lines, &Line::y, log_y, from_zero);
  x.from = area.left, x.to = area.right;
  y.from = area.bottom, y.to = area.top;
  std::string out =
      heading(*this) + x_grid(x, x_marks.empty() ? marks_of(x) : x_marks, area) + y_grid(y, area) + frame(*this, area);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const int colour = lines[i].colour >= 0 ? lines[i].colour : static_cast<int>(i % kColours.size());
    out += drawn(lines[i], colour, x, y);
    out += legend_entry(lines[i], colour, area.right, area.top + 16 + 18 * static_cast<double>(i));
  }
  return out + "</svg>\n";
}

}  // namespace maki::plot
