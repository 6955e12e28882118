// Plots as SVG: those of `maki model` and of a run's report.
#pragma once

#include <string>
#include <vector>

namespace maki::plot {

enum class Style { kLine, kDashed, kPoints };

struct Line {
  std::string name;          // "": not in the legend
  std::vector<double> x, y;  // of one length
  Style style = Style::kLine;
  int colour = -1;                 // 0 to 5; -1: by its place among the lines
  std::vector<double> error = {};  // of y, drawn as bars; empty, or as long as y
};

struct Mark {
  double at;  // value on the axis
  std::string label;
};

struct Plot {
  std::string title, x_name, y_name;
  bool log_x = false, log_y = false;  // values not above zero are left out
  std::vector<Line> lines = {};
  std::vector<Mark> x_marks = {};  // in place of evenly spaced ones
  // Linear y axes contain zero. Linear x axes without marks do where zero is nearer to the data than these are wide.
  bool from_zero = true;
  double width = 720, height = 480;

  // An <svg> element that stands alone as a file or within a page. Colours are attributes, which a style sheet
  // overrides by the classes paper, grid, frame, ink and s0 to s5.
  std::string svg() const;
};

// Text within XML or HTML, also within a quoted attribute.
std::string escaped(const std::string& text);

// At most about `most` points with the same outline: the smallest and the largest value of each of equal intervals of a
// longer line.
Line thinned(const Line& line, std::size_t most);

}  // namespace maki::plot
