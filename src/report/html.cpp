#include "src/report/html.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

namespace maki::report {
namespace {

constexpr std::size_t kPointsOfLine = 600;

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2329; --soft: #5b6670; --grid: #e3e6ea; --frame: #8a939c;
  --s0: #1b6ca8; --s1: #d1495b; --s2: #2e8b57; --s3: #8e5ea2; --s4: #c07a10; --s5: #555c63; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181c; --ink: #e4e8ec; --soft: #9aa5af; --grid: #2b3138;
  --frame: #66707a; --s0: #6db3f2; --s1: #f08090; --s2: #6fce9b; --s3: #c79be0; --s4: #f0b95c; --s5: #b4bcc4; } }
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; max-width: 1180px;
  margin: 0 auto; padding: 1.5em; }
h1 { margin: 0 0 0.2em; } h2 { margin: 1.8em 0 0.5em; border-bottom: 1px solid var(--grid); }
.soft, figcaption, th { color: var(--soft); } .state { font-weight: bold; }
.open { color: var(--s1); } .done { color: var(--s2); }
.figures { display: flex; flex-wrap: wrap; gap: 1em; } figure { margin: 0; }
figure.plot { flex: 1 1 480px; min-width: 0; max-width: 720px; } figure.picture { width: 270px; }
figure.picture img { width: 100%; display: block; } figcaption { font-size: 0.85em; }
table { border-collapse: collapse; font-size: 0.9em; } th { font-weight: normal; text-align: left; }
td, th { padding: 0.15em 1.2em 0.15em 0; vertical-align: top; font-variant-numeric: tabular-nums; }
td.bar { width: 220px; } td.bar div { height: 0.8em; margin-top: 0.35em; background: var(--s0); }
pre { overflow-x: auto; font-size: 0.8em; line-height: 1.35; } .wide { overflow-x: auto; }
.numbers { display: flex; flex-wrap: wrap; gap: 0.5em 2.5em; padding: 0; } .numbers li { list-style: none; }
.numbers b { display: block; font-size: 1.3em; font-weight: 600; }
svg { width: 100%; height: auto; display: block; } svg .paper { fill: none; } svg .ink { fill: var(--ink); }
svg .grid { stroke: var(--grid); } svg .frame { stroke: var(--frame); }
svg .s0 { stroke: var(--s0); } svg .s1 { stroke: var(--s1); } svg .s2 { stroke: var(--s2); }
svg .s3 { stroke: var(--s3); } svg .s4 { stroke: var(--s4); } svg .s5 { stroke: var(--s5); }
)";

std::string base64(const std::vector<unsigned char>& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a zero
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string row(const std::vector<std::string>& words, const char* tag, const std::string& more) {
  std::string out = "<tr>";
  for (const std::string& word : words) out += fmt::format("<{0}>{1}</{0}>", tag, escaped(word));
  return out + more + "</tr>\n";
}

}  // namespace

std::string paragraph(const std::string& text) { return "<p>" + escaped(text) + "</p>\n"; }

std::string section(const std::string& title, const std::string& html) {
  return html.empty() ? "" : fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(title), html);
}

std::string details(const std::string& summary, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), html);
}

std::string preformatted(const std::string& text) { return "<pre>" + escaped(text) + "</pre>\n"; }

std::string figures(const std::vector<std::string>& html) {
  std::string all;
  for (const std::string& one : html) all += one;
  return all.empty() ? "" : "<div class=\"figures\">\n" + all + "</div>\n";
}

std::string figure(plot::Plot plot) {
  const auto is_empty = [](const plot::Line& line) { return line.x.empty(); };
  std::erase_if(plot.lines, is_empty);
  if (plot.lines.empty()) return "";
  for (plot::Line& line : plot.lines) line = plot::thinned(line, kPointsOfLine);
  return "<figure class=\"plot\">\n" + plot.svg() + "</figure>\n";
}

std::string picture(const std::vector<unsigned char>& png, const std::string& caption) {
  return fmt::format(
      "<figure class=\"picture\"><img alt=\"{0}\" src=\"data:image/png;base64,{1}\"/><figcaption>{0}</figcaption>"
      "</figure>\n",
      escaped(caption), base64(png));
}

std::string html(const HtmlTable& table) {
  const bool bars = !table.bars.empty();
  std::string out = "<div class=\"wide\"><table>\n" + row(table.heads, "th", bars ? "<th></th>" : "");
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    out += row(table.rows[i], "td",
               bars ? fmt::format("<td class=\"bar\"><div style=\"width: {:.1f}%\"></div></td>",
                                  100 * std::clamp(table.bars[i], 0.0, 1.0))
                    : "");
  return out + "</table></div>\n";
}

std::string document(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<link rel=\"icon\" href=\"data:,\"/>\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), kStyle, body);
}

}  // namespace maki::report
