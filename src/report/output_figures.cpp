#include "src/report/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <optional>
#include <regex>
#include <sstream>

#include "kernels/error.hpp"
#include "src/analysis/picture.hpp"
#include "src/cosmology/cosmology.hpp"
#include "src/io/hdf5_file.hpp"
#include "src/lightcone/sky_map.hpp"
#include "src/report/html.hpp"

namespace maki::report {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

void take_row(const std::string& line, const std::vector<std::string>& names, Columns& all, const std::string& path) {
  std::istringstream in(line);
  const std::vector<double> row(std::istream_iterator<double>(in), {});
  if (row.empty()) return;
  if (row.size() != names.size())
    throw Error(fmt::format("cannot read '{}'", path),
                fmt::format("a row has {} numbers below {} names", row.size(), names.size()), "is the file whole?");
  for (std::size_t i = 0; i < row.size(); ++i) all.columns[names[i]].push_back(row[i]);
}

}  // namespace

double Columns::fact(const std::string& name) const {
  const auto found = facts.find(name);
  return found == facts.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

const std::vector<double>& Columns::column(const std::string& name) const {
  static const std::vector<double> none;
  const auto found = columns.find(name);
  return found == columns.end() ? none : found->second;
}

std::string Columns::after(const std::string& words) const {
  const std::size_t at = comments.find(words);
  if (at == comments.npos) return "";
  const std::size_t begin = at + words.size();
  return comments.substr(begin, comments.find_first_of(",;\n", begin) - begin);
}

Columns read_columns(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("cannot read '{}'", path), "there is no such file, or it may not be read");
  Columns all;
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) {
      take_row(line, names, all, path);
      continue;
    }
    all.comments += line + '\n';
    names = words_of(line.substr(1));
    std::istringstream value(names.size() == 2 ? names[1] : "");
    if (double number = 0; value >> number) all.facts[names[0]] = number;
  }
  return all;
}

namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::pair<int, std::string>>;

constexpr std::size_t kPictures = 8, kPicturePixels = 400, kSpectra = 6;

// Files and folders in the directory whose names are this expression, by the numbers in it.
Files numbered_files(const std::string& directory, const std::string& name) {
  const std::regex known(name);
  Files files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    std::smatch match;
    const std::string file = entry.path().filename().string();
    if (std::regex_match(file, match, known)) files.push_back({std::stoi(match[1].str()), entry.path().string()});
  }
  std::sort(files.begin(), files.end());
  return files;
}

// At most `most` files, evenly chosen, always with the last one.
Files some_of(const Files& all, std::size_t most) {
  if (all.size() <= most) return all;
  Files some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

std::string moment(const RunRecords& records, const std::string& fallback, int index) {
  for (const Output& output : records.outputs) {
    if (output.index != index) continue;
    return records.comoving() ? fmt::format("z = {:.3g}", shown_redshift(1 / output.time - 1))
                              : "t = " + time_text(output.time, records.time_unit(), 4);
  }
  return fallback;
}

std::string name_of(const Columns& file) { return fmt::format("z = {:.3g}", shown_redshift(file.fact("Redshift"))); }

// Makes the call with the number and path of each file; its Errors become problems.
template <class Call>
void for_files(const Files& files, std::vector<std::string>& problems, Call call) {
  for (const auto& [number, path] : files) {
    try {
      call(number, path);
    } catch (const Error& error) {
      problems.push_back(error.what());
    }
  }
}

// The readable files that have these columns.
std::vector<Columns> read_all(const Files& files, const std::vector<std::string>& needed,
                              std::vector<std::string>& problems) {
  std::vector<Columns> all;
  for_files(files, problems, [&](int, const std::string& path) {
    Columns file = read_columns(path);
    if (file.columns.empty()) return;  // no group yet
    for (const std::string& name : needed)
      if (file.column(name).empty()) throw Error(fmt::format("'{}' has no column {}", path, name));
    all.push_back(std::move(file));
  });
  return all;
}

plot::Line line_of(const Columns& file, const char* column, plot::Style style, int colour) {
  plot::Line line{"", file.column("K"), file.column(column), style, colour};
  if (line.y.empty() || *std::max_element(line.y.begin(), line.y.end()) <= 0) line.x.clear(), line.y.clear();
  return line;
}

std::string unit_of(const Columns& spectrum) {
  const std::string unit = spectrum.after("K in radians per ");
  return unit.empty() ? "unit of length" : unit;
}

std::string spectrum_figure(const std::vector<Columns>& spectra) {
  const std::string unit = unit_of(spectra[0]);
  plot::Plot plot{"Power spectrum", "k, radians per " + unit, "P(k), (" + unit + ")^3", true, true};
  for (std::size_t i = 0; i < spectra.size(); ++i) {
    plot.lines.push_back(line_of(spectra[i], "P", plot::Style::kLine, static_cast<int>(i)));
    plot.lines.back().name = name_of(spectra[i]);
  }
  for (std::size_t i = 0; i < spectra.size(); ++i)
    plot.lines.push_back(line_of(spectra[i], "Linear", plot::Style::kDashed, static_cast<int>(i)));
  if (std::any_of(plot.lines.begin() + static_cast<std::ptrdiff_t>(spectra.size()), plot.lines.end(),
                  [](const plot::Line& line) { return !line.x.empty(); }))
    plot.title += "; dashed: linear theory";
  return figure(plot);
}

// Growth in bins of both spectra, up to the Nyquist wave number of the particles.
plot::Line growth_line(const Columns& first, const Columns& file, double nyquist, int colour) {
  plot::Line line{name_of(file), {}, {}, plot::Style::kLine, colour};
  const auto &k = file.column("K"), &k0 = first.column("K"), &p = file.column("P"), &p0 = first.column("P");
  const double linear = file.fact("GrowthFactor") / first.fact("GrowthFactor");
  for (std::size_t i = 0; i < std::min(p.size(), p0.size()) && !(k[i] > nyquist); ++i) {
    if (!(std::abs(k[i] / k0[i] - 1) < 1e-3)) continue;  // of another mesh
    line.x.push_back(k[i]);
    line.y.push_back(std::sqrt(p[i] / p0[i]) / linear);
  }
  return line;
}

std::string growth_figure(const std::vector<Columns>& spectra, double particles) {
  if (spectra.size() < 2 || !(spectra[0].fact("GrowthFactor") > 0)) return "";
  plot::Plot plot{"Growth since " + name_of(spectra[0]) + ", over linear growth",
                  "k, radians per " + unit_of(spectra[0]), "growth of modes / D", true, true};
  const double nyquist = std::numbers::pi * std::cbrt(particles) / spectra[0].fact("BoxSize");
  for (std::size_t i = 1; i < spectra.size(); ++i)
    plot.lines.push_back(growth_line(spectra[0], spectra[i], nyquist, static_cast<int>(i)));
  return figure(plot);
}

// The spectra over HALOFIT, up to the Nyquist wave number of the particles.
std::string nonlinear_figure(const std::vector<Columns>& spectra, double particles) {
  plot::Plot plot{"Power spectrum over HALOFIT (Takahashi et al. 2012)", "k, radians per " + unit_of(spectra[0]),
                  "P / P of HALOFIT", true, true};
  const double nyquist = std::numbers::pi * std::cbrt(particles) / spectra[0].fact("BoxSize");
  for (std::size_t i = 0; i < spectra.size(); ++i) {
    plot::Line line = line_of(spectra[i], "P/NonLinear", plot::Style::kLine, static_cast<int>(i));
    const auto end = std::upper_bound(line.x.begin(), line.x.end(), nyquist) - line.x.begin();
    line.x.resize(static_cast<std::size_t>(end));
    line.y.resize(static_cast<std::size_t>(end));
    line.name = name_of(spectra[i]);
    if (!line.x.empty()) plot.lines.push_back(line);
  }
  return plot.lines.empty() ? "" : figure(plot);
}

// Growth of the modes in the first bins, which stay linear longest.
double grown(const Columns& first, const Columns& file) {
  constexpr std::size_t kBins = 2;
  double before = 0, now = 0;
  for (std::size_t i = 0; i < std::min(kBins, file.column("P").size()); ++i) {
    const double modes = file.column("ModeCount")[i];
    before += modes * first.column("P")[i];
    now += modes * file.column("P")[i];
  }
  return std::sqrt(now / before);
}

std::string growth_table(const std::vector<Columns>& spectra) {
  if (spectra.size() < 2 || !(spectra[0].fact("GrowthFactor") > 0)) return "";
  const std::size_t least =
      std::min_element(spectra.begin(), spectra.end(),
                       [](const Columns& a, const Columns& b) { return a.column("P").size() < b.column("P").size(); })
          ->column("P")
          .size();
  if (least < 2) return "";
  HtmlTable table{{"growth of the largest modes", "measured", "linear", "measured / linear"}, {}};
  for (std::size_t i = 1; i < spectra.size(); ++i) {
    const double measured = grown(spectra[0], spectra[i]);
    const double linear = spectra[i].fact("GrowthFactor") / spectra[0].fact("GrowthFactor");
    table.rows.push_back({name_of(spectra[0]) + " to " + name_of(spectra[i]).substr(4), fmt::format("{:.4g}", measured),
                          fmt::format("{:.4g}", linear), fmt::format("{:.4f}", measured / linear)});
  }
  return html(table);
}

std::vector<double> masses_of(const Columns& file) {
  std::vector<double> masses;
  for (const double log_mass : file.column("log10(M)")) masses.push_back(std::pow(10, log_mass));
  return masses;
}

std::string mass_function_figure(const std::vector<Columns>& files) {
  const auto has_fit = [](const Columns& file) {
    const auto& fit = file.column("Tinker08");
    return !fit.empty() && fit[0] > 0;
  };
  const bool fits = std::ranges::any_of(files, has_fit);
  plot::Plot plot{fits ? "Mass function of groups; dashed: Tinker et al. 2008" : "Mass function of groups",
                  "M within 200 times the mean density, " + files[0].after("M in "), "dn / d ln M by volume", true,
                  true};
  for (std::size_t i = 0; i < files.size(); ++i)
    plot.lines.push_back({name_of(files[i]), masses_of(files[i]), files[i].column("dn/dlnM"), plot::Style::kPoints,
                          static_cast<int>(i), files[i].column("Error")});
  for (std::size_t i = 0; i < files.size(); ++i)
    if (has_fit(files[i]))
      plot.lines.push_back(
          {"", masses_of(files[i]), files[i].column("Tinker08"), plot::Style::kDashed, static_cast<int>(i)});
  return figure(plot);
}

}  // namespace

Part pictures_part(const std::string& directory, const RunRecords& records, std::size_t& bytes) {
  Part part;
  std::vector<std::string> all;
  const Files files = numbered_files(directory, R"(image_(\d{3,9})\.png)");
  for_files(some_of(files, kPictures), part.problems, [&](int number, const std::string& path) {
    const std::string file = fs::path(path).filename().string();
    const std::vector<unsigned char> png = thumbnail_of(path, kPicturePixels);
    all.push_back(picture(png, fmt::format("{} ({})", moment(records, "picture", number), file)));
    bytes += all.back().size();
  });
  part.html = figures(all);
  if (files.size() > kPictures)
    part.html += paragraph(fmt::format("{} of {} pictures; the others lie beside this page.", kPictures, files.size()));
  return part;
}

Part spectra_part(const std::string& directory, const RunRecords& records) {
  Part part;
  const std::vector<Columns> spectra = read_all(some_of(numbered_files(directory, R"(power_(\d{3,9})\.txt)"), kSpectra),
                                                {"K", "P", "ModeCount"}, part.problems);
  if (spectra.empty()) return part;
  const double particles = records.steps.empty() ? 0 : records.steps.front().particles;
  part.html =
      figures({spectrum_figure(spectra), growth_figure(spectra, particles), nonlinear_figure(spectra, particles)}) +
      growth_table(spectra);
  const auto& linear = spectra.back().column("Linear");
  if (linear.empty() || linear.front() <= 0)
    part.html += paragraph(
        "The linear spectrum is not known: the run did not make its initial conditions, or its table "
        "was not there.");
  return part;
}

Part mass_functions_part(const std::string& directory) {
  Part part;
  const Files files = numbered_files(directory, R"(groups_(\d{3,9})_mass_function\.txt)");
  const std::vector<Columns> all = read_all(some_of(files, kSpectra), {"log10(M)", "dn/dlnM", "Error"}, part.problems);
  if (!all.empty()) part.html = figures({mass_function_figure(all)});
  return part;
}

// ---- light cones ----------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kMostShells = 60;

// Facts of a shell from its files.
struct Shell {
  std::array<double, 2> redshifts{}, distances{};  // of its edges
  std::optional<std::uint64_t> particles;
  std::optional<int> nside;
};

std::array<double, 2> two_of(hid_t header, const char* name, const std::string& path) {
  const std::vector<double> numbers = read_attribute<double>(header, name);
  if (numbers.size() != 2) throw Error(fmt::format("'{}' is no shell of a light cone", path), name);
  return {numbers[0], numbers[1]};
}

void read_particles(const std::string& path, Shell& shell) {
  const Hdf5Turn turn;
  const H5Id file = open_hdf5(path);
  const H5Id header = open_group(file, "Header");
  shell.redshifts = two_of(header, "ShellRedshifts", path);
  shell.distances = two_of(header, "ShellDistances", path);
  const auto counts = read_attribute<std::uint64_t>(header, "NumPart_ThisFile");
  shell.particles = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

void read_map(const std::string& path, Shell& shell) {
  const std::vector<double> keys = sky_map_numbers(path, {"ZNEAR", "ZFAR", "DISTNEAR", "DISTFAR", "NSIDE"});
  shell.redshifts = {keys[0], keys[1]};
  shell.distances = {keys[2], keys[3]};
  shell.nside = static_cast<int>(keys[4]);
}

void add_rows(const fs::path& folder, HtmlTable& table, Part& part) {
  std::map<int, Shell> shells;
  for_files(numbered_files(folder.string(), R"(conesnap_(\d{3,9})(\.\d+)?\.hdf5)"), part.problems,
            [&](int number, const std::string& path) { read_particles(path, shells[number]); });
  for_files(numbered_files(folder.string(), R"(map_(\d{3,9})(\.\d+)?\.fits)"), part.problems,
            [&](int number, const std::string& path) { read_map(path, shells[number]); });
  for (const auto& [number, shell] : shells)
    if (shell.particles || shell.nside)
      table.rows.push_back({folder.filename().string(), fmt::format("{}", number),
                            fmt::format("{:.4g} to {:.4g}", shell.redshifts[0], shell.redshifts[1]),
                            fmt::format("{:.5g} to {:.5g}", shell.distances[0], shell.distances[1]),
                            shell.particles ? fmt::format("{}", *shell.particles) : "none written",
                            shell.nside ? fmt::format("NSIDE {}", *shell.nside) : "none"});
}

}  // namespace

Part light_cones_part(const std::string& directory) {
  Part part;
  HtmlTable table{{"observer", "shell", "redshifts", "comoving distances, units of the run", "particles", "map"},
                  {},
                  {}};
  for (const auto& [number, folder] : numbered_files(directory, R"(lightcone_(\d{2,9}))"))
    add_rows(folder, table, part);
  if (table.rows.empty()) return part;
  const std::size_t all = table.rows.size();
  table.rows.resize(std::min(all, kMostShells));
  part.html = html(table);
  if (all > kMostShells) part.html += paragraph(fmt::format("{} of {} shells.", kMostShells, all));
  return part;
}

}  // namespace maki::report
