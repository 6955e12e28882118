#include "src/report/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "src/config/keys.hpp"
#include "src/io/safe_file.hpp"
#include "src/report/figures.hpp"
#include "src/report/html.hpp"
#include "src/simulation/progress.hpp"

namespace maki::report {
namespace {

namespace fs = std::filesystem;

// Input of the sections.
struct Source {
  std::string directory;
  RunRecords records;
  std::optional<Config> config;
  std::vector<std::string> problems;

  const Beginning& first() const { return records.beginnings.front(); }
  std::string path(const std::string& name) const { return (fs::path(directory) / name).string(); }
};

std::string take(Part part, Source& source) {
  source.problems.insert(source.problems.end(), part.problems.begin(), part.problems.end());
  return part.html;
}

std::string fact(const std::string& value, const std::string& name) {
  return fmt::format("<li><b>{}</b> {}</li>\n", escaped(value), escaped(name));
}

std::string facts(const RunRecords& records) {
  const std::vector<Step>& steps = records.steps;
  if (steps.empty()) return "";
  std::string all = fact(moment(records, records.reached()), "reached");
  all += fact(fmt::format("{}", records.last_step()), "steps");
  all += records.end ? fact(duration_text(records.end->elapsed),
                            records.beginnings.size() > 1 ? "since it was resumed" : "in all")
                     : fact(duration_text(steps.back().elapsed), "in steps so far");
  if (const double error = largest(steps, &Step::energy_error); std::isfinite(error))
    all += fact(fmt::format("{:.2g}", error), "largest energy error");
  if (const double memory = memory_at_the_peak(records); std::isfinite(memory))
    all += fact(fmt::format("{:.3g} MB", 1e-6 * memory), "device memory at the peak");
  return "<ul class=\"numbers\">\n" + all + "</ul>\n";
}

HtmlTable settings_table(const std::vector<std::string>& settings) {
  const Config defaults;
  HtmlTable table{{"setting", "value", "default", "meaning"}, {}};
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    std::string path = setting.substr(0, equals), value = equals == setting.npos ? "" : setting.substr(equals + 1);
    path.erase(path.find_last_not_of(' ') + 1);
    value.erase(0, value.find_first_not_of(' '));
    table.rows.push_back({path, value, "", ""});
    for (const Key& key : config_keys())
      if (key.path() == path || key.name == path)
        table.rows.back()[2] = key.get(defaults), table.rows.back()[3] = key.meaning;
  }
  return table;
}

std::string machine_words(const Beginning& begin) {
  std::string text = begin.provenance.device;
  if (begin.ranks > 1) text += fmt::format("; {} ranks", begin.ranks);
  if (!begin.host.empty()) text += "; host " + begin.host;
  if (!begin.site.empty()) text += "; site " + begin.site;
  return text;
}

std::string resumed_html(const Beginning& begin) {
  std::string text = fmt::format("Went on after step {}", *begin.resumed_at);
  if (!begin.began.empty()) text += fmt::format(" on {} UTC", begin.began);
  text += fmt::format(" ({}, commit {}), on {}.", begin.provenance.version, begin.provenance.git_hash,
                      machine_words(begin));
  return paragraph(text) + (begin.settings.empty() ? "" : html(settings_table(begin.settings)));
}

std::string run_section(const Source& source) {
  const Beginning& first = source.first();
  std::string text = source.config ? paragraph(what_was_run(source.records, *source.config)) : "";
  HtmlTable table{{"", ""},
                  {{"machine", machine_words(first)},
                   {"version", fmt::format("{}, commit {}, compiler {}", first.provenance.version,
                                           first.provenance.git_hash, first.provenance.compiler)}}};
  if (!first.began.empty()) table.rows.push_back({"began", first.began + " UTC"});
  table.rows.push_back({"name of the run", first.run});
  text += html(table);
  if (!first.settings.empty())
    text += "<h3>Settings that differ from the defaults</h3>\n" + html(settings_table(first.settings));
  for (const Beginning& begin : source.records.beginnings)
    if (begin.resumed_at) text += resumed_html(begin);
  return section("The run", text + details("All settings, as they were resolved at the last start",
                                           preformatted(source.records.beginnings.back().provenance.configuration)));
}

std::string phase_table(const RunRecords& records) {
  const PhaseSeconds phases = records.phases();
  double whole = 0;
  for (const auto& [path, seconds] : phases) whole += path.find('/') == path.npos ? seconds.mean : 0;
  if (!(whole > 0)) return "";
  const bool many = records.beginnings.back().ranks > 1 && records.end && !records.earlier_by_steps;
  HtmlTable table{{"phase", many ? "seconds, mean of ranks" : "seconds", "share"}, {}, {}};
  if (many) table.heads.insert(table.heads.end(), {"least", "most"});
  for (const auto& [path, seconds] : phases) {
    if (seconds.max == 0) continue;  // what this run does not do
    const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    std::string indent;
    for (std::size_t i = 0; i < depth; ++i) indent += "\u2003";
    table.rows.push_back({indent + path.substr(path.rfind('/') + 1), fmt::format("{:.3f}", seconds.mean),
                          fmt::format("{:.1f} %", 100 * seconds.mean / whole)});
    if (many)
      table.rows.back().insert(table.rows.back().end(),
                               {fmt::format("{:.3f}", seconds.min), fmt::format("{:.3f}", seconds.max)});
    table.bars.push_back(seconds.mean / whole);
  }
  return html(table);
}

std::string time_section(const RunRecords& records) {
  std::string text = figures({time_figures(records)}) + phase_table(records);
  if (text.empty()) return section("Where the time went", text);
  const std::size_t processes = records.beginnings.size();
  if (processes == 1 && !records.end) text += paragraph("Sums of the steps that have a line in metrics.jsonl.");
  if (processes > 1)
    text += paragraph(fmt::format(
        "The table is the sum over the {} processes of the run{}.", processes,
        records.end && !records.earlier_by_steps
            ? ""
            : "; those of which metrics.jsonl has no end count with the steps that have a line in it, and steps that a "
              "later process made anew count once"));
  return section("Where the time went", text);
}

std::string energy_section(const RunRecords& records) {
  std::string text = energy_figures(records);
  if (text.empty())
    return section("Energy",
                   records.steps.empty() ? "" : paragraph("No energies were computed (output.energy_interval)."));
  const auto number = [&](double value) { return fmt::format("{:.2e}", value); };
  HtmlTable table{{"", "largest", "last"}, {}};
  for (const auto& [name, field] : {std::pair{"energy error", &Step::energy_error},
                                    std::pair{"drift of the momentum, over sum m|p|", &Step::momentum_drift},
                                    std::pair{"sum of all forces, over sum m|a|", &Step::force_residual}})
    table.rows.push_back({name, number(largest(records.steps, field)), number(last(records.steps, field))});
  return section("Energy", text + html(table));
}

std::string steps_section(const RunRecords& records) {
  if (records.steps.empty()) return "";
  std::string text = step_figures(records);
  const auto count = [&](bool Step::*flag) {
    return std::count_if(records.steps.begin(), records.steps.end(), [flag](const Step& step) { return step.*flag; });
  };
  const double steps = records.end ? records.end->steps : static_cast<double>(records.steps.back().step);
  const double long_steps = records.end ? records.end->long_steps : static_cast<double>(count(&Step::long_step_end));
  const double rebuilds = records.end ? records.end->rebuilds : static_cast<double>(count(&Step::rebuilt));
  const std::string of_mesh = records.comoving() ? fmt::format(", in {:.0f} long steps of the mesh", long_steps) : "";
  const auto lines = static_cast<double>(records.steps.size());
  text += paragraph(
      records.end || lines >= steps
          ? fmt::format("{:.0f} steps, {:.0f} of them with new interaction lists{}.", steps, rebuilds, of_mesh)
          : fmt::format("{:.0f} steps. Of the {:.0f} that are recorded here, {:.0f} are with new interaction lists{}.",
                        steps, lines, rebuilds, of_mesh));
  if (records.every > 1)
    text +=
        paragraph(fmt::format("The lines of steps are too many for a page: one in {} is here, a sample, and largest "
                              "values are of these.",
                              records.every));
  return section("Steps", text);
}

std::string memory_table(const RunRecords& records) {
  if (!records.end || records.end->arrays.empty()) return "";
  const double particles = records.steps.empty() ? 0 : records.steps.back().particles / records.beginnings.back().ranks;
  HtmlTable table{{"device memory at the peak", "MB", "bytes a particle"}, {}, {}};
  double sum = 0;
  for (const auto& [name, bytes] : records.end->arrays) sum += bytes;
  for (const auto& [name, bytes] : records.end->arrays) {
    table.rows.push_back(
        {name, fmt::format("{:.2f}", 1e-6 * bytes), particles > 0 ? fmt::format("{:.1f}", bytes / particles) : ""});
    table.bars.push_back(bytes / sum);
  }
  return html(table);
}

std::string force_error_section(const RunRecords& records) {
  HtmlTable table{{"output", "rms error over the rms force", "median of each force", "99 %", "particles"}, {}};
  for (const Output& output : records.outputs) {
    if (!output.force_error) continue;
    const ForceError& e = *output.force_error;
    table.rows.push_back({moment(records, output.time), fmt::format("{:.2e}", e.rms), fmt::format("{:.2e}", e.median),
                          fmt::format("{:.2e}", e.percentile_99), fmt::format("{}", e.targets)});
  }
  const std::string lists = figures({list_figures(records)});
  if (table.rows.empty() && lists.empty()) return "";
  const std::string exact =
      table.rows.empty() ? paragraph("Forces were not compared with exact sums (output.error_targets).") : html(table);
  return section("Errors of forces", exact + lists);
}

std::string sites_section(const Source& source) {
  std::string text = site_figures(source.records);
  if (text.empty()) return "";
  std::map<std::string, SiteTraffic> sums;
  for (const Step& step : source.records.steps)
    for (const auto& [name, one] : step.site_traffic) {
      SiteTraffic& sum = sums[name];
      sum.waited += one.waited, sum.waits += one.waits, sum.sent += one.sent, sum.received += one.received;
    }
  HtmlTable table{{"messages of", "seconds waited", "waits", "MB sent", "MB received"}, {}};
  for (const auto& [name, sum] : sums)
    table.rows.push_back({name, fmt::format("{:.3f}", sum.waited), fmt::format("{:.0f}", sum.waits),
                          fmt::format("{:.3f}", 1e-6 * sum.sent), fmt::format("{:.3f}", 1e-6 * sum.received)});
  const std::string report = bytes_of_file(source.path("sites_report.txt"));
  return section("Sites",
                 text + html(table) +
                     (report.empty() ? paragraph("sites_report.txt is not there: it is written at the end of a run.")
                                     : preformatted(report)));
}

// The messages in the log; for a long run the first and the last ones.
std::string messages_section(Source& source) {
  constexpr std::size_t kMost = 150;
  std::ifstream file(source.path("log.txt"));
  if (!file) source.problems.push_back("log.txt is missing: what the run said is not shown");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("[")) lines.push_back(line);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines.size() > kMost && i == kMost / 2) text += "...\n", i = lines.size() - kMost / 2;
    text += lines[i] + "\n";
  }
  return text.empty() ? "" : details("What the run said", preformatted(text));
}

std::string problems_html(const std::vector<std::string>& problems) {
  if (problems.empty()) return "";
  std::string all = "<section>\n<h2>Missing or damaged</h2>\n<ul>\n";
  for (const std::string& problem : problems) all += "<li>" + escaped(problem) + "</li>\n";
  return all + "</ul>\n</section>\n";
}

Source open(const std::string& directory) {
  Source source{directory, read_records(directory), {}, {}};
  source.problems = source.records.problems;
  std::string problem;
  source.config = configuration_of(source.records, problem);
  if (!problem.empty()) source.problems.push_back(problem);
  return source;
}

std::string heading(const Source& source) {
  const bool ended = state_of(source.records) == State::kEnded;
  return fmt::format("<h1>{}</h1>\n<p class=\"state {}\">{}</p>\n",
                     escaped(source.config ? source.config->run.name : source.directory), ended ? "done" : "open",
                     escaped(state_text(source.records, source.directory))) +
         facts(source.records);
}

std::string size_text(std::size_t bytes) {
  const auto kb = 1e-3 * static_cast<double>(bytes);
  return kb < 1000 ? fmt::format("{:.0f} kB", std::ceil(kb)) : fmt::format("{:.1f} MB", 1e-3 * kb);
}

}  // namespace

Page report_page(const std::string& directory) {
  Source source = open(directory);
  const RunRecords& records = source.records;
  Page page;
  const std::string pictures = section("Pictures", take(pictures_part(directory, records, page.picture_bytes), source));
  const std::string spectra = section("Power spectrum", take(spectra_part(directory, records), source));
  const std::string masses = section("Groups", take(mass_functions_part(directory), source));
  const std::string cones = section("Light cones", take(light_cones_part(directory), source));
  const std::string ranks = section(records.beginnings.back().ranks > 1 ? "Ranks and memory" : "Memory",
                                    rank_figures(records) + memory_table(records));
  const std::string messages = messages_section(source);
  std::string body =
      heading(source) + problems_html(source.problems) + run_section(source) + pictures + spectra + masses + cones;
  body += energy_section(records) + steps_section(records) + force_error_section(records) + time_section(records);
  body += ranks + sites_section(source) + messages;
  body += fmt::format(
      "<p class=\"soft\">{} of HTML, {} of them pictures; made from the files in this directory, needs no "
      "network. maki report makes it anew.</p>\n",
      size_text(body.size()), size_text(page.picture_bytes));
  page.html = document("Maki: " + (source.config ? source.config->run.name : directory), body);
  return page;
}

std::string write_report(const std::string& directory) {
  const Page page = report_page(directory);
  SafeFile file((fs::path(directory) / "report.html").string(), true);
  file.write(page.html);
  file.commit();
  return fmt::format("{} ({})", file.path(), size_text(page.html.size()));
}

}  // namespace maki::report
