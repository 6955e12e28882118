// The parts of an HTML page that carries all it shows: no script, nothing from a network. What these functions give is
// well-formed XML too.
#pragma once

#include <string>
#include <vector>

#include "src/plot/plot.hpp"

namespace maki::report {

using plot::escaped;

// "<p>...</p>" and so on; `text` is escaped, `html` is taken as it is.
std::string paragraph(const std::string& text);
std::string section(const std::string& title, const std::string& html);
std::string details(const std::string& summary, const std::string& html);
std::string preformatted(const std::string& text);
// Figures beside each other where the window is wide enough.
std::string figures(const std::vector<std::string>& html);
// A plot as a figure, its lines thinned; "" where no line has a point.
std::string figure(plot::Plot plot);
// A PNG file as a figure that holds it.
std::string picture(const std::vector<unsigned char>& png, const std::string& caption);

struct HtmlTable {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> rows;  // as long as `heads`; texts
  // With a bar in a further column, as long as these parts of one; empty: none.
  std::vector<double> bars = {};
};
std::string html(const HtmlTable& table);

// The whole document. Light and dark as the reader's system has it.
std::string document(const std::string& title, const std::string& body);

}  // namespace maki::report
