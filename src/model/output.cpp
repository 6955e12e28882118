#include "src/model/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace maki::model {
namespace {

constexpr double kWidth = 720, kHeight = 480, kLeft = 80, kRight = 190, kTop = 40, kBottom = 60;  // pixels
constexpr std::array kColours = {"#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e09f3e", "#444444"};

std::string cell(const std::string& word) {
  if (word.find_first_of(",\"\n") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// One axis: from values to pixels, and where its marks are.
struct Axis {
  bool log = false;
  double low = 0, high = 1, from = 0, to = 1;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double scaled(double value) const { return log ? std::log10(value) : value; }
  double at(double value) const { return from + (to - from) * (scaled(value) - low) / (high - low); }

  std::vector<double> marks() const {
    std::vector<double> all;
    if (log && high - low >= 1) {
      for (double e = std::ceil(low - 1e-9); e <= high + 1e-9; ++e) all.push_back(std::pow(10, e));
      return all;
    }
    const double a = log ? std::pow(10, low) : low, b = log ? std::pow(10, high) : high;
    const double rough = (b - a) / 6, ten = std::pow(10, std::floor(std::log10(rough)));
    const double step = ten * (rough / ten > 5 ? 10 : rough / ten > 2 ? 5 : rough / ten > 1 ? 2 : 1);
    for (double v = std::ceil(a / step - 1e-9) * step; v <= b + 1e-9 * step; v += step)
      if (shows(v)) all.push_back(std::abs(v) < 1e-9 * step ? 0 : v);
    return all;
  }
};

Axis axis_of(const std::vector<Line>& lines, const std::vector<double> Line::*values, bool log, double from,
             double to) {
  Axis axis{log, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), from, to};
  for (const Line& line : lines)
    for (const double value : line.*values)
      if (axis.shows(value))
        axis.low = std::min(axis.low, axis.scaled(value)), axis.high = std::max(axis.high, axis.scaled(value));
  if (!(axis.low <= axis.high)) axis.low = 0, axis.high = 1;
  if (!log) axis.low = std::min(axis.low, 0.0);
  if (axis.high - axis.low < 1e-12) axis.high = axis.low + 1;
  return axis;
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    std::size_t width = heads[i].size();
    for (const auto& row : rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i)
      one += i == 0 ? fmt::format("{:<{}}", words[i], widths[i]) : fmt::format("  {:>{}}", words[i], widths[i]);
    one.erase(one.find_last_not_of(' ') + 1);
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

std::string Table::csv() const {
  const auto line = [](const std::vector<std::string>& words) {
    std::string one;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) one += ',';
      one += cell(words[i]);
    }
    one += '\n';
    return one;
  };
  std::string all = line(heads);
  for (const auto& row : rows) all += line(row);
  return all;
}

std::string Plot::svg() const {
  const Axis x = axis_of(lines, &Line::x, log_x, kLeft, kWidth - kRight);
  const Axis y = axis_of(lines, &Line::y, log_y, kHeight - kBottom, kTop);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(title));
  for (const double v : x.marks())
    out += fmt::format(
        "<path d=\"M{0:.1f} {1}V{2}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
        x.at(v), kTop, kHeight - kBottom, kHeight - kBottom + 18, v);
  for (const double v : y.marks())
    out += fmt::format(
        "<path d=\"M{1} {0:.1f}H{2}\" stroke=\"#ddd\"/>\n"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        y.at(v), kLeft, kWidth - kRight, kLeft - 6, y.at(v) + 4, v);
  out += fmt::format(
      "<rect x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" fill=\"none\" stroke=\"black\"/>\n"
      "<text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>\n"
      "<text transform=\"translate(20 {7}) rotate(-90)\" text-anchor=\"middle\">{8}</text>\n",
      kLeft, kTop, kWidth - kRight - kLeft, kHeight - kBottom - kTop, (kLeft + kWidth - kRight) / 2, kHeight - 18,
      escaped(x_name), (kTop + kHeight - kBottom) / 2, escaped(y_name));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const char* colour = kColours[i % kColours.size()];
    std::string path;
    for (std::size_t k = 0; k < lines[i].x.size(); ++k)
      if (x.shows(lines[i].x[k]) && y.shows(lines[i].y[k]))
        path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(lines[i].x[k]), y.at(lines[i].y[k]));
    out += fmt::format(
        "<path d=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\"/>\n"
        "<text x=\"{2}\" y=\"{3}\" fill=\"{1}\">{4}</text>\n",
        path, colour, kWidth - kRight + 10, kTop + 16 + 18 * static_cast<double>(i), escaped(lines[i].name));
  }
  return out + "</svg>\n";
}

}  // namespace maki::model
