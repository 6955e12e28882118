// The parts of a self-contained HTML page: no script, nothing from a network. The results of these functions are
// well-formed XML too.
#pragma once

#include <string>
#include <vector>

#include "src/plot/plot.hpp"

namespace maki::report {

using plot::escaped;

// "<p>...</p>" and so on; `text` is escaped, `html` is not.
std::string paragraph(const std::string& text);
std::string section(const std::string& title, const std::string& html);
std::string details(const std::string& summary, const std::string& html);
std::string preformatted(const std::string& text);
// Figures side by side where the window is wide enough.
std::string figures(const std::vector<std::string>& html);
// A plot as a figure, its lines thinned; "" where no line has a point.
std::string figure(plot::Plot plot);
// A figure with an embedded PNG file.
std::string picture(const std::vector<unsigned char>& png, const std::string& caption);

struct HtmlTable {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // as long as `heads`; texts
  // Lengths (0 to 1) of bars in an additional column; empty: no bars.
  std::vector<double> bars = {};
};
std::string html(const HtmlTable& table);

// The whole document, light or dark as the reader's system is set.
std::string document(const std::string& title, const std::string& body);

}  // namespace maki::report
